from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.promises import PROMISES, Promise
from tools import promises
from tools.columns import COLUMNS
from tools.steps import Failure

HERE = Promise("kill_9", "it is killed", "nothing | is lost")
PLACE = [one.name for one in PROMISES].index("versions")
OTHER = Promise("soak", "it is read for long", "quick")


def result(outcome="passed", promise="kill_9", **more):
    return {"promise": promise, "test": "t.py::t", "outcome": outcome, "seconds": 2.0, **more}


@pytest.mark.parametrize(
    ("results", "verdict", "tests", "figures"),
    [
        ([], "not run", "0 of 0", []),
        ([result(figures=["a"]), result(figures=["a", "b"])], "proven", "2 of 2", ["a", "b"]),
        ([result(), result(shorts=["p99 300 ms"])], "SHORT", "2 of 2", ["SHORT: p99 300 ms"]),
        ([result(), result("failed")], "FAILED", "1 of 2", ["FAILED: t.py::t"]),
        (
            [result(), result("skipped", why="Skipped: no root")],
            "partly",
            "1 of 2",
            ["skipped: no root"],
        ),
        ([result(promise="soak")], "not run", "0 of 0", []),
    ],
)
def test_a_row_is_judged_by_its_own_tests(results, verdict, tests, figures):
    row = promises.row(HERE, results)
    assert (row.verdict, row.tests, row.figures) == (verdict, tests, figures)


def test_the_terminal_says_it_in_full():
    rows = [promises.row(HERE, [result(figures=["1 of 2"])]), promises.row(OTHER, [])]
    assert promises.text(rows).splitlines() == [
        "proven   kill_9               1 of 1 tests, 2 s",
        "         it is killed",
        "         bar: nothing | is lost",
        "         1 of 2",
        "not run  soak                 0 of 0 tests, 0 s",
        "         it is read for long",
        "         bar: quick",
    ]


def test_what_was_shown_is_published_and_other_rows_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "PROMISES", (HERE, OTHER))
    page, published = tmp_path / "page.md", tmp_path / "promises.json"
    page.write_text(f"before\n{promises.BEGIN}\nold\n{promises.END}\nafter\n", "utf-8")
    kept = {"verdict": "proven", "tests": "2 of 2", "figures": ["a", "b"], "of": ["abc"]}
    published.write_text(json.dumps({"soak": kept, "kill_9": kept}))
    shown = promises.row(HERE, [result(figures=["1 of 2"], commit="def")])
    promises.publish([shown, promises.row(OTHER, [])], published)
    for _ in range(2):
        promises.write(page, published)
    text = page.read_text("utf-8")
    assert text.startswith(f"before\n{promises.BEGIN}\n\n| what")
    assert text.endswith(f" |\n\n{promises.END}\nafter\n")
    assert text.splitlines()[5:7] == [
        "| **kill_9**: it is killed | nothing \\| is lost | proven | 1 of 1 | 1 of 2 | def |",
        "| **soak**: it is read for long | quick | proven | 2 of 2 | a; b | abc |",
    ]


def test_a_row_that_was_never_run_says_so(monkeypatch):
    monkeypatch.setattr(promises, "PROMISES", (OTHER,))
    row = "| **soak**: it is read for long | quick | not run |  |  |  |"
    assert promises.markdown({}).splitlines()[2:] == [row]


def test_results_of_no_commit_are_refused(tmp_path):
    published = tmp_path / "promises.json"
    published.write_text("{}")
    row = promises.row(HERE, [result(commit="abc-dirty")])
    with pytest.raises(Failure, match="got those of kill_9 of abc-dirty. Commit, then call"):
        promises.publish([row], published)
    assert published.read_text() == "{}"


def test_the_page_is_what_the_published_rows_make():
    text = promises.PAGE.read_text("utf-8")
    assert promises.filled(text) == text
    assert "-dirty" not in promises.PUBLISHED.read_text("utf-8")


def test_the_newest_result_of_a_test_counts_and_a_whole_run_begins_anew(tmp_path):
    def keep(name, commit, outcome, at):
        result = {"promise": "kill_9", "test": "t", "outcome": outcome, "seconds": 1.0}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"commit": commit, "results": [result]}))
        os.utime(path, (at, at))

    keep("tests", "old", "failed", 1)
    keep("again-1", "new", "passed", 3)
    keep("again-0", "middle", "failed", 2)
    (newest,) = promises.load(tmp_path)
    assert (newest["outcome"], newest["commit"]) == ("passed", "new")
    keep("matrix-oldest", "old", "passed", 1)
    promises.forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["matrix-oldest.json"]


def test_columns_of_the_matrix_that_were_not_run_are_told(tmp_path):
    def keep(*columns):
        for name in columns:
            test = f"dev.py matrix {name}"
            found = {"results": [result(promise="versions", test=test)], "commit": "a"}
            (tmp_path / f"matrix-{name}.json").write_text(json.dumps(found))
        row = promises.rows(promises.load(tmp_path))[PLACE]
        return row.verdict, row.tests, row.figures

    names = [column.name for column in COLUMNS]
    assert keep() == ("not run", "0 of 0", [])
    verdict, tests, figures = keep(*names[:2])
    assert (verdict, tests) == ("partly", f"2 of {len(names)}")
    assert figures == sorted(f"skipped: column {name} wasn't run" for name in names[2:])
    assert keep(*names) == ("proven", f"{len(names)} of {len(names)}", [])


def test_every_row_has_a_name_of_its_own_and_a_test():
    names = [promise.name for promise in PROMISES]
    assert len(set(names)) == len(names)
    files = set((promises.ROOT / "tests").rglob("test_*.py")) - {Path(__file__)}
    files.discard(promises.ROOT / "tests/contract/test_proving.py")  # its tests are made up
    sources = "".join(path.read_text("utf-8") for path in files)
    # Versions are tried by a command, which writes results as tests do.
    missing = [name for name in names if f'promise("{name}")' not in sources]
    assert missing == ["versions"]


def test_the_page_has_both_marks():
    text = promises.PAGE.read_text("utf-8")
    assert text.index(promises.BEGIN) < text.index(promises.END)
