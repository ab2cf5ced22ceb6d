"""Tests tell the promises that they show, and what they show is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import promises

CONFTEST = """
from tests import proving
from tests.proving import figure

pytest_configure = proving.keep_results
pytest_itemcollected = proving.name_promises
pytest_collection_modifyitems = proving.leave_out_others
"""

PROGRAM = """
import pytest

@pytest.mark.promise("soak")
def test_figures(figure):
    figure("9 of 9")
    figure("p99 300 ms", met=False)

@pytest.mark.promise("soak")
def test_fails():
    assert False

@pytest.mark.promise("kill_9")
@pytest.mark.skip(reason="no root")
def test_skipped():
    pass

def test_of_no_row():
    pass
"""


def test_what_tests_show_is_kept(tmp_path):
    (tmp_path / "test_some.py").write_text(PROGRAM)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = run(tmp_path, tmp_path / "results" / "tests.json", "-n", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    results = promises.load(tmp_path / "results")
    assert all(one["commit"] and one["ended"] for one in results)
    found = {one["test"].partition("::")[2]: one for one in results}
    assert set(found) == {"test_figures", "test_fails", "test_skipped"}
    assert found["test_figures"]["figures"] == ["9 of 9"]
    assert found["test_figures"]["shorts"] == ["p99 300 ms"]
    assert found["test_fails"]["outcome"] == "failed"
    assert (found["test_skipped"]["outcome"], found["test_skipped"]["why"]) == (
        "skipped",
        "Skipped: no root",
    )
    verdicts = {row.promise.name: row.verdict for row in promises.rows(results)}
    assert (verdicts["soak"], verdicts["kill_9"], verdicts["ends"]) == (
        "FAILED",
        "partly",
        "not run",
    )


def test_of_chosen_rows_no_other_test_runs_and_no_other_row_is_shown(tmp_path, monkeypatch):
    more = (
        '@pytest.mark.promise("soak")\n@pytest.mark.promise("ends")\ndef test_both():\n    pass\n'
    )
    (tmp_path / "test_some.py").write_text(f"{PROGRAM}\n{more}")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    monkeypatch.setenv("PASTNET_PROMISES", "ends kill_9")
    done = run(tmp_path, tmp_path / "results" / "rows.json", "-n", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = {(one["promise"], one["test"][14:]) for one in promises.load(tmp_path / "results")}
    assert shown == {("ends", "test_both"), ("kill_9", "test_skipped")}


def test_what_was_shown_stays_where_a_run_is_cut_off(tmp_path):
    cut = "\n\ndef test_cut():\n    import os\n    os._exit(9)\n"
    (tmp_path / "test_some.py").write_text(PROGRAM + cut)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = run(tmp_path, tmp_path / "results" / "tests.json")
    assert done.returncode == 9, done.stdout + done.stderr
    shown = promises.load(tmp_path / "results")
    assert len(shown) == 3
    (row,) = (one for one in promises.rows(shown) if one.promise.name == "kill_9")
    assert row.figures[-1] == "cut off: some tests didn't run"


def test_a_row_that_nobody_promised_is_refused(tmp_path):
    text = PROGRAM.replace('"kill_9"', '"kill_10"')
    (tmp_path / "test_some.py").write_text(text)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = run(tmp_path, tmp_path / "results.json")
    assert done.returncode == 4
    assert "no promise 'kill_10' in tests/promises.py" in done.stdout + done.stderr


def run(folder: Path, results: Path, *crowd: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", *crowd, "-p", "no:cacheprovider"]
    # Where this test runs in a crowd, the one inside must not take itself for a part of it.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**own, "PASTNET_RESULTS": str(results)}
    return subprocess.run(
        [*command, "-c", str(promises.ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder)],
        cwd=promises.ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
