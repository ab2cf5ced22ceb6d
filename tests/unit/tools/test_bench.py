from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tools import bench, commands
from tools.steps import ROOT, Failure


def body(name="recording", value=2.0):
    row = {"table": "T", "name": "ours", "column": "CNN", "unit": "%", "value": value}
    row |= {"low": value, "high": value, "bar": 3.0, "met": True, "error": ""}
    found = {"benchmark": name, "machine": "2 cores of X", "versions": {"python": "3.11"}}
    return found | {"commit": "abc", "seconds": 1.0, "rows": [row]}


PROGRAM = """
import json, os, sys
from pathlib import Path
body = {body!r} | {{"seconds": len(sys.argv) - 1}}
Path(os.environ["PASTNET_ROWS"]).write_text(json.dumps(body))
sys.exit({code})
"""


def test_the_rows_of_each_benchmark_are_kept_beside_those_of_others(tmp_path):
    into = tmp_path / "of" / "here.json"
    paths = [tmp_path / "recording.py", tmp_path / "masks.py", tmp_path / "broken.py"]
    for path, code in zip(paths[:2], (0, 1), strict=True):
        path.write_text(PROGRAM.format(body=body(path.stem), code=code))
    paths[2].write_text("raise SystemExit(2)")
    run = lambda chosen: bench.run_all(chosen, Path(sys.executable), {}, ["--pairs", "2"], into)  # noqa: E731
    assert run(paths[:1]) == 0
    assert run(paths[1:]) == 2
    found = bench.load(into)
    assert set(found) == {"recording", "masks"}
    assert found["recording"]["seconds"] == 2


def test_nothing_is_kept_before_the_first_run(tmp_path):
    assert bench.load(tmp_path / "none.json") == {}


def test_tables_go_between_the_marks_of_their_benchmark():
    mark = "<!-- begin of {0} -->\nold {0}\n<!-- end of {0} -->\n"
    text = f"a\n{mark.format('recording')}b\n{mark.format('masks')}c\n{mark.format('other')}"
    after = bench.filled(text, {"recording": body()})
    table = "**T**\n\n|  | CNN |\n| --- | --- |\n| ours | 2 %, bar 3 |"
    of = "Of abc, on 2 cores of X; python 3.11."
    assert after == (
        f"a\n<!-- begin of recording -->\n\n{table}\n\n{of}\n\n<!-- end of recording -->\n"
        "b\n<!-- begin of masks -->\n\nNot measured yet: `python3 dev.py bench masks`.\n\n"
        f"<!-- end of masks -->\nc\n{mark.format('other')}"
    )
    assert "| ours | 1 %, bar 3 |" in bench.filled(after, {"recording": body(value=1.0)})
    assert bench.filled(after, {"recording": body()}) == after


def test_an_excerpt_has_some_rows_of_one_table():
    results = {"recording": body()}
    (row,) = results["recording"]["rows"]
    row["table"], row["name"] = bench.EXCERPTS["recording_in_short"][1], "ours, every=1"
    results["recording"]["rows"] += [row | {"name": "another"}, row | {"table": "another"}]
    text = "<!-- begin of recording_in_short --><!-- end of recording_in_short -->"
    lines = bench.filled(text, results).splitlines()
    assert [line for line in lines if line.startswith("| ours")] == [
        "| ours, every=1 | 2 %, bar 3 |"
    ]
    assert "another" not in "".join(lines)


def test_bars_that_are_missed_are_listed():
    results = {"recording": body(), "masks": body("masks", value=4.0)}
    results["masks"]["rows"][0]["met"] = False
    assert bench.missed(results) == "- masks, T, ours, CNN: 4 %, bar 3 MISSED"
    assert bench.missed({"recording": body()}) == "None."


def test_what_was_measured_here_moves_to_what_the_tables_are_made_of(tmp_path):
    kept, into = tmp_path / "here.json", tmp_path / "results.json"
    bench.keep(body("masks"), into)
    bench.keep(body("recording", value=1.0), into)
    bench.keep(body("recording", value=2.0), kept)
    assert bench.publish(kept, into) == ["recording"]
    assert not kept.exists()
    assert bench.load(into) == {"masks": body("masks"), "recording": body("recording", value=2.0)}
    assert bench.publish(kept, into) == []


@pytest.mark.parametrize("commit", ["abc-dirty", "unknown"])
def test_figures_of_no_commit_are_refused_and_stay(tmp_path, commit):
    kept, into = tmp_path / "here.json", tmp_path / "results.json"
    bench.keep(body("masks"), kept)
    bench.keep(body() | {"commit": commit}, kept)
    text = f"expected figures of a commit, got those of recording of {commit}. Commit, then call"
    with pytest.raises(Failure, match=text):
        bench.publish(kept, into)
    assert not into.exists()
    assert set(bench.load(kept)) == {"masks", "recording"}


@pytest.mark.parametrize("page", bench.pages(), ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_that_the_rows_make(page):
    text = page.read_text("utf-8")
    assert bench.filled(text, bench.load(bench.PUBLISHED)) == text


def test_each_benchmark_has_a_table_in_one_page_and_all_are_of_commits():
    texts = "".join(page.read_text("utf-8") for page in bench.pages())
    for path in bench.choose(()):
        assert texts.count(f"<!-- begin of {path.stem} -->") == 1, path.stem
    commits = [one["commit"] for one in bench.load(bench.PUBLISHED).values()]
    assert all(re.fullmatch("[0-9a-f]{7,40}", commit) for commit in commits)


def test_what_follows_two_dashes_goes_to_the_benchmarks(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    monkeypatch.setattr(bench, "run", lambda command, env: ran.append(command) or 0)
    into = tmp_path / "x.json"
    line = ["bench", "idle", "--json", str(into), "--", "--pairs", "3"]
    assert commands.main(line) == 0
    assert ran == [[Path(sys.executable), ROOT / "benchmarks" / "idle.py", "--pairs", "3"]]


def test_only_to_write_tables_runs_nothing(monkeypatch, tmp_path, capsys):
    page, kept = tmp_path / "page.md", tmp_path / "here.json"
    page.write_text("<!-- begin of recording --><!-- end of recording -->")
    kept.write_text(json.dumps({"recording": body()}))
    monkeypatch.setattr(bench, "run", lambda *_: pytest.fail("something ran"))
    monkeypatch.setattr(bench, "pages", lambda: [page])
    monkeypatch.setattr(bench, "PUBLISHED", tmp_path / "results.json")
    assert commands.main(["bench", "--write", "--json", str(kept)]) == 0
    assert "| ours | 2 %, bar 3 |" in page.read_text()
    assert capsys.readouterr().out == "Wrote the tables; new: recording.\n"
