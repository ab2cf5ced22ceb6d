"""Runs that go on, appear and vanish, and a server that goes away."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.browser import BROWSER, clean
from tests.e2e.conftest import BROWSED, known, tensorboard, wait
from tests.e2e.stories import LAYERS
from tests.event_files import LineageWriter, codes, write_run

LAYER = "block/conv2"
STATES = ("no data", "moving", "reactivated", "quiet", "frozen", "pruned")
COLOURS = ("#425066", "#12b5cb", "#e52592", "#f9ab00")


@pytest.mark.parametrize("loader", BROWSED)
def test_new_columns_appear_and_the_cursor_follows(tmp_path: Path, loader: str) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "run", layers=LAYERS, created=time.time() - 10)
    writer.describe(0)
    writer.records(range(1, 11))
    with tensorboard(logdir, "--reload_interval", "1", loader=loader) as tab:
        wait(lambda: known(tab, 1, 10), "the first records")
        stages = [
            {"keys": [], "runs": {"run": [30, 1]}},
            {"keys": ["ArrowLeft"], "runs": {"run": [40, 1]}},
            {"keys": [], "runs": {"run": [50, 2]}},
        ]
        answers = BROWSER.answers(
            tab.base, "growing", {"layer": LAYER, "run": "run", "stages": stages}
        )
        next(answers)
        writer.records(range(11, 31))
        next(answers)
        writer.records(range(31, 41))
        next(answers)
        again = LineageWriter(
            logdir, "run", 2, 0x77, layers=LAYERS, first_step=35, created=time.time()
        )
        again.describe(34)
        kernel = f"{LAYER}/kernel"
        again.records(range(35, 51), {kernel: codes(range(35, 51), LAYERS[LAYER], seed=3)})
        seen = clean(next(answers))
        _, arrays = tab.arrays("layer", run="run", layer=LAYER)
    first, grown, left, resumed, followed = seen["found"]
    for stage, last, records in (
        (first, 10, 10),
        (grown, 30, 30),
        (left, 40, 40),
        (resumed, 50, 50),
    ):
        assert stage["side"] == [f" live · step {last}"]
        assert stage["live"] == 1
        assert f"channels over {records} records" in stage["heat"]
        assert (stage["alerts"], stage["skeletons"]) == ([], 0)
    assert [stage["pill"] for stage in seen["found"]] == [["10"], ["30"], ["29"], ["29"], ["50"]]
    assert first["asked"] == [None]
    assert grown["asked"] == ["10"]  # nothing that the page had is sent again
    assert left["asked"] == ["30"]
    # What was resumed doesn't stand: the page learns so where it left off, and asks for everything.
    # One reload may be reported in several parts, each of which is asked for: what the next part
    # gives up before it has come is asked anew, and nothing of what has come.
    asked = resumed["asked"]
    assert asked[0] == "40"
    whole = len(asked) - 1 - asked[::-1].index(None)
    assert set(asked[:whole]) <= {"40", None}
    later = asked[whole + 1 :]
    assert "40" not in later
    assert all(35 <= int(since) <= 50 for since in later)
    assert followed["asked"] == []
    assert "6 superseded" in resumed["account"][0]
    assert seen["flags"] == ["step 35: training was resumed here"]
    # The columns that were joined are those of the route.
    assert arrays["steps"].tolist() == list(range(1, 51))
    for row in seen["table"]:
        assert row[1] == STATES[int(arrays["state"][int(row[0]), -1]) & 7]
        shown = float("nan") if row[2] == "–" else number(row[2])
        assert np.isclose(shown, arrays["delta"][int(row[0]), -1], rtol=0.05)


def number(text: str) -> float:
    """0.0021 of "2.1×10⁻³"."""
    mantissa, _, power = text.rpartition("10") if "10" in text and "⁻" in text else (text, "", "")
    exponent = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    return float(mantissa.rstrip("×") or 1) * 10.0 ** int(exponent or 0)


def test_runs_may_appear_vanish_and_be_renamed(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    for at, run in enumerate(("a", "b", "c")):
        write_run(logdir, run, range(1, 11), lineage=0x50 + at, layers=LAYERS)
    with tensorboard(logdir, "--reload_interval", "1") as tab:
        wait(lambda: known(tab, 3, 30), "three runs")
        asked = {"v": "layer", "l": LAYER, "r": "b", "b": "b", "vs": 1, "of": "c", "o": "held"}
        runs = {"a": [10, 1], "d": [10, 1], "e": [20, 1]}
        answers = BROWSER.answers(tab.base, "coming", {"hash": asked, "runs": runs})
        next(answers)
        shutil.rmtree(logdir / "b")
        shutil.move(logdir / "c", logdir / "d")
        write_run(logdir, "e", range(1, 21), lineage=0x60, layers=LAYERS)
        before, after, network = clean(next(answers))
    assert (before["tabs"], before["chosen"]) == (["a", "b", "c"], ["b"])
    assert before["tags"] == ["Baseline: b"]
    assert before["colours"] == list(COLOURS[:3])
    assert after["tabs"] == after["side"] == ["a", "d", "e"]
    assert (after["chosen"], after["tags"]) == (["a"], ["Baseline: a"])
    assert after["heat"].startswith("a: 16 channels over 10 records")
    assert network["heads"] == ["a", "d", "e"]
    assert before["alerts"] == after["alerts"] == network["alerts"] == []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_the_page_outlives_its_server(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    for at, run in enumerate(("a", "b")):
        write_run(logdir, run, range(1, 11), lineage=0x50 + at, layers=LAYERS)
    port = str(free_port())
    with tensorboard(logdir, "--port", port) as tab:
        wait(lambda: known(tab, 2, 20), "both runs")
        answers = BROWSER.answers(tab.base, "leaving", {"layer": "conv1", "run": "a"})
        next(answers)
    next(answers)
    shutil.rmtree(logdir / "b")
    with tensorboard(logdir, "--port", port) as tab:
        wait(lambda: known(tab, 1, 10), "the run that is left")
        found = clean(next(answers))
    gone = found["gone"]
    lost = (
        "Could not reach TensorBoard's server: expected an answer, got none. "
        "Check that TensorBoard is still running."
    )
    assert set(gone["alerts"]) == {lost, f"b: not loaded. {lost}"}
    assert (gone["side"], gone["title"], gone["axe"]) == (["a", "b"], [LAYER], [])
    assert found["before"]["heat"].startswith("a: 8 channels over 10 records")  # it was there
    assert found["before"]["alerts"] == []
    assert found["back"]["alerts"] == []
    assert found["back"]["side"] == ["a"]
    assert found["back"]["heat"].startswith("a: 16 channels over 10 records")
