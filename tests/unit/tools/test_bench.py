from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools import bench, commands
from tools.steps import ROOT


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


def test_tables_go_between_the_marks_of_their_benchmark(tmp_path):
    page, kept = tmp_path / "page.md", tmp_path / "here.json"
    mark = "<!-- begin of {0} -->\nold {0}\n<!-- end of {0} -->\n"
    page.write_text(f"a\n{mark.format('recording')}b\n{mark.format('masks')}c\n")
    bench.keep(body(), kept)
    assert bench.write(kept, page) == ["recording"]
    table = "**T**\n\n|  | CNN |\n| --- | --- |\n| ours | 2 % , bar 3 |".replace(" ,", ",")
    of = "Of abc, on 2 cores of X; python 3.11."
    filled = f"<!-- begin of recording -->\n\n{table}\n\n{of}\n\n<!-- end of recording -->\n"
    assert page.read_text() == f"a\n{filled}b\n{mark.format('masks')}c\n"
    bench.keep(body(value=1.0), kept)
    bench.write(kept, page)
    assert "| ours | 1 %, bar 3 |" in page.read_text()
    assert page.read_text().count("**T**") == 1


def test_the_page_has_a_mark_for_each_benchmark_that_it_shows():
    text = bench.PAGE.read_text("utf-8")
    names = [line.split()[3] for line in text.splitlines() if line.startswith("<!-- begin of ")]
    assert {"recording", "idle", "growth"} <= set(names)
    assert set(names) <= {path.stem for path in bench.choose(())}
    assert all(text.count(f"<!-- end of {name} -->") == 1 for name in names)


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
    monkeypatch.setattr(bench, "PAGE", page)
    assert commands.main(["bench", "--write", "--json", str(kept)]) == 0
    assert "| ours | 2 %, bar 3 |" in page.read_text()
    assert capsys.readouterr().out == "Wrote recording into page.md.\n"
