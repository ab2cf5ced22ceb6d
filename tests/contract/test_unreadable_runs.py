"""A run whose data nobody foresaw: it says so, in every way to read it, and the others are as without it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.notes import UNREAD
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.tally import Tally, make_tally
from tests import event_files as files
from tests.commands import command
from tests.contract.test_own_writer import write_own
from tests.tensorboards import LOADERS, board


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A good run, and one of a user's own writer."""
    logdir = tmp_path / "log"
    files.write_run(logdir, "good", range(1, 5))
    write_own(logdir, "bad", [1, 2])
    return logdir


def listed(content: bytes) -> None:
    raise OverflowError("int too large")


def tallied(state: np.ndarray, *more: Any, **options: Any) -> Tally:
    if len(state) == 2:
        raise OverflowError("int too large")
    return make_tally(state, *more, **options)


STAGES = {
    "tb_pastnet.reader.summary_runs.decode_series": listed,
    "tb_pastnet.reader.run_summary.make_tally": tallied,
}
"""Functions that raise for the run: when it is listed, and when it is read."""


@pytest.fixture(params=STAGES)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(request.param, STAGES[request.param])
    return str(request.param)


def _facts(finding: dict[str, Any]) -> dict[str, Any]:
    """All but the sentence, which names the run if there are several."""
    return {name: value for name, value in finding.items() if name != "text"}


@pytest.mark.parametrize("loader", LOADERS)
def test_routes_say_so_and_answer_about_the_others(logdir: Path, loader: str, broken: str) -> None:
    with board(logdir, loader) as here:
        bad, good = here.json("/index")["runs"]
        findings = here.json("/findings", run=["bad", "good"])["findings"]
        pair = here.json("/overlap", run=["bad", "good"])["pairs"][0]
        records = here.get("/records", run=["bad", "good"]).get_data()
        alone = here.get("/overview", run="bad")
    if STAGES[broken] is listed:
        assert bad["notes"] == [{"text": f"{UNREAD}: OverflowError", "count": 1}]
    assert bad["name"] == "bad"
    assert alone.status_code == 422
    assert json.loads(alone.get_data())["error"]["code"] == "unreadable"
    assert (findings[0]["kind"], findings[0]["runs"]) == ("unreadable", ["bad"])
    assert (pair["comparable"], pair["reason"]) == (
        False, "unknown" if STAGES[broken] is listed else "origin",
    )  # fmt: skip
    assert b'"error":{"code":"unreadable"' in records
    shutil.rmtree(logdir / "bad")
    with board(logdir, loader) as here:
        assert [good] == [{**run, "network": 1} for run in here.json("/index")["runs"]]
        alone = here.json("/findings", run="good")["findings"]
        assert [_facts(one) for one in findings[1:]] == [_facts(one) for one in alone]
        assert records.endswith(here.get("/records", run="good").get_data())


@pytest.mark.usefixtures("broken")
def test_commands_go_on_and_say_so(logdir: Path, tmp_path: Path) -> None:
    report = command("report", logdir, "--fail-on", "violations")
    assert report.code == 1
    assert report.error == "failed: the run 'bad' could not be read, so it was not checked\n"
    assert command("report", logdir).code == 0
    told = command("report", logdir, "--json").json["runs"]
    assert [run.get("problem", "") for run in told] == [f"{UNREAD}: OverflowError", ""]
    assert command("check", logdir).code == 1
    assert command("verify", logdir, "--trains", "*").code == 2
    done = command("export", logdir, tmp_path / "csv")
    assert (done.code, done.error) == (1, f"left out: bad: {UNREAD}: OverflowError\n")
    manifest = json.loads((tmp_path / "csv" / "manifest.json").read_text())
    assert list(manifest["problems"]) == ["bad"]
    assert {table["run"] for table in manifest["tables"]} == {None, "good"}
    assert command("export", logdir, tmp_path / "a.html", "--format", "html").code == 1


def test_its_own_methods_raise_our_error(logdir: Path, broken: str) -> None:
    log = pastnet.read(logdir)
    if STAGES[broken] is listed:
        assert log["bad"].problem == f"{UNREAD}: OverflowError"
    else:
        with pytest.raises(pastnet.errors.UnreadableRun, match="OverflowError") as caught:
            log["bad"].overview()
        assert isinstance(caught.value.__cause__, OverflowError)
    assert "bad" in repr(log)
    assert "bad" in log._repr_html_()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_the_program_stops_it(
    logdir: Path, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(content: bytes) -> None:
        raise error

    monkeypatch.setattr("tb_pastnet.reader.summary_runs.decode_series", stop)
    with pytest.raises(error):
        pastnet.read(logdir)


def test_it_is_tried_again_when_there_is_memory_or_new_data(
    logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(FileSource(logdir), fresh_for=0)
    calls = []

    def fail(error: Exception) -> Callable[..., None]:
        def describe(*arguments: object) -> None:
            calls.append(error)
            raise error

        return describe

    for error, again in ((MemoryError(), True), (OverflowError(), False)):
        monkeypatch.setattr("tb_pastnet.reader.summary_runs.describe", fail(error))
        assert store.catalog(LOCAL).runs["bad"].problem
        calls.clear()
        assert store.catalog(LOCAL).runs["bad"].problem
        assert bool(calls) == again
    assert store.catalog(LOCAL).runs["good"].problem == ""
