from __future__ import annotations

import json
import os

import pytest

from tests.promises import PROMISES, Promise
from tools import promises
from tools.columns import COLUMNS
from tools.steps import Failure

HERE = Promise("kill_9", "it is killed", "nothing | is lost")
PLACE = [one.name for one in PROMISES].index("versions")
OTHER = Promise("soak", "it is read for long", "quick")
KILLS = "{:,} kills: {:,} acknowledged"


def result(outcome="passed", promise="kill_9", **more):
    return {"promise": promise, "test": "t.py::t", "outcome": outcome, "seconds": 2.0, **more}


@pytest.mark.parametrize(
    ("results", "verdict", "tests", "figures"),
    [
        ([], "not run", "0 of 0", []),
        ([result(figures=["a"]), result(figures=["a", "b"])], "proven", "2 of 2", ["a", "b"]),
        (
            [
                result(sums=[[KILLS, 700, 8]]),
                result(sums=[["{} cuts", 2]]),
                result(figures=["a"], sums=[[KILLS, 700, 1]]),
            ],
            "proven",
            "3 of 3",
            ["a", "1,400 kills: 9 acknowledged", "2 cuts"],
        ),
        ([result(), result(shorts=["p99 300 ms"])], "SHORT", "2 of 2", ["SHORT: p99 300 ms"]),
        ([result(), result("failed")], "FAILED", "1 of 2", ["FAILED: t.py::t"]),
        (
            [result(), result("skipped", why="Skipped: no root")],
            "partly",
            "1 of 2",
            ["skipped: no root"],
        ),
        ([result(ended=False)], "partly", "1 of 1", ["cut off: some tests didn't run"]),
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


NEVER = Promise("ends", "it ends", "no deadlock")


class Changed:
    """How many files have changed since some commits, for every row."""

    def __init__(self, **since):
        self._since = since

    def changed(self, row, commits):
        return max((self._since[commit] for commit in commits), default=None)


def test_what_was_shown_is_published_and_the_fresher_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "PROMISES", (HERE, OTHER, NEVER))
    page, file = tmp_path / "page.md", tmp_path / "promises.json"
    page.write_text(f"before\n{promises.BEGIN}\nold\n{promises.END}\nafter\n", "utf-8")
    kept = {"verdict": "SHORT", "tests": "2 of 2", "figures": ["a_b", "<c>"], "seconds": 180}
    rows = {name: {**kept, "commits": ["old"]} for name in ("soak", "kill_9")}
    file.write_text(json.dumps({"commit": "before", "rows": rows}))
    told = [result(figures=["1 of 2"], commit="new"), result(promise="soak", commit="older")]
    table = promises.fresher(
        promises.rows(told), promises.published(file), Changed(new=0, old=3, older=4)
    )
    promises.publish(table, "now", file)
    for _ in range(2):
        promises.write(page, file)
    text = page.read_text("utf-8")
    assert text.startswith(
        f"before\n{promises.BEGIN}\n\nAt commit now, 1 of 3 rows are fresh.\n\n|"
    )
    assert text.endswith(f"\n\n{promises.END}\nafter\n")
    assert text.splitlines()[7:-3] == [
        "| [kill_9](#kill_9) | proven | 1 of 1 | 2 s | new | fresh |",
        "| [soak](#soak) | SHORT | 2 of 2 | 3 min | old | stale: 3 files changed |",
        "| [ends](#ends) | not run |  |  |  | never shown |",
        *("", "### kill_9", "", "it is killed.", "", "Bar: nothing | is lost.", "", "- 1 of 2"),
        *("", "### soak", "", "it is read for long.", "", "Bar: quick."),
        *("", "- a\\_b", "- \\<c>"),
        *("", "### ends", "", "it ends.", "", "Bar: no deadlock."),
    ]
    assert [line.split() for line in promises.brief(table).splitlines()][1] == [
        *("soak", "SHORT", "2", "of", "2", "3", "min", "old", "stale:", "3", "files", "changed"),
    ]


def test_what_nobody_can_know_is_no_fresh_row():
    row = promises.row(HERE, [result(commit="gone")])
    (judged,) = promises.fresher([row], [promises.row(HERE, [])], Changed(gone=None))
    assert (judged.state, judged.verdict) == ("unknown", "proven")


def test_results_of_no_commit_are_refused(tmp_path):
    published = tmp_path / "promises.json"
    published.write_text("{}")
    row = promises.row(HERE, [result(commit="abc-dirty")])
    with pytest.raises(Failure, match="got those of kill_9 of abc-dirty. Commit, then call"):
        promises.publish([row], "abc", published)
    assert published.read_text() == "{}"


def test_a_row_that_is_not_promised_cannot_be_proven():
    assert promises.choose(["soak", "ends"]) == ["soak", "ends"]
    with pytest.raises(
        Failure, match=r"Could not prove soap: expected rows of kill_9, .*read_back"
    ):
        promises.choose(["ends", "soap"])


def test_the_page_is_what_the_published_rows_make():
    text = promises.PAGE.read_text("utf-8")
    assert promises.filled(text) == text
    kept = json.loads(promises.PUBLISHED.read_text("utf-8"))["rows"]
    assert kept.keys() <= {one.name for one in PROMISES}
    assert "-dirty" not in promises.PUBLISHED.read_text("utf-8")


def test_the_newest_result_of_a_test_counts_and_a_row_begins_anew(tmp_path):
    def keep(name, commit, outcome, at, promise="kill_9"):
        result = {"promise": promise, "test": "t", "outcome": outcome, "seconds": 1.0}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"commit": commit, "results": [result]}))
        os.utime(path, (at, at))

    keep("tests", "old", "failed", 1)
    keep("again-1", "new", "passed", 3)
    keep("again-0", "middle", "failed", 2)
    (newest,) = promises.load(tmp_path)
    assert (newest["outcome"], newest["commit"]) == ("passed", "new")
    keep("again-2", "new", "passed", 4, "soak")
    assert promises.load(tmp_path) == [newest]
    (tmp_path / "again-2.json").unlink()
    keep("rows", "old", "passed", 1, "soak")
    promises.forget({"kill_9", "ends"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]


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


def test_every_row_has_a_name_of_its_own():
    names = [promise.name for promise in PROMISES]
    assert len(set(names)) == len(names)


def test_the_page_has_both_marks():
    text = promises.PAGE.read_text("utf-8")
    assert text.index(promises.BEGIN) < text.index(promises.END)
