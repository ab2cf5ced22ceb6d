"""Runs that go on, appear and vanish, a server that goes away, and frames as notebooks have them."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.browser import BROWSER, clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.e2e.stories import LAYERS, STORY_RECORDS, STORY_RUNS, neighbour, story
from tests.event_files import LineageWriter, codes, write_run

LAYER = "block/conv2"
STATES = ("no data", "moving", "reactivated", "settled", "frozen", "pruned")
COLOURS = ("#425066", "#12b5cb", "#e52592", "#f9ab00")


@pytest.mark.parametrize("loader", ["fast", "slow"])
def test_new_columns_appear_and_the_cursor_follows(tmp_path: Path, loader: str) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "run", layers=LAYERS, created=time.time() - 10)
    writer.describe(0)
    writer.records(range(1, 11))
    flags = [] if loader == "fast" else ["--load_fast=false"]
    with tensorboard(logdir, "--reload_interval", "1", *flags) as tab:
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
    # What was resumed doesn't stand. TensorBoard tells of new runs and of new data, one after the other.
    # The slow loader may report one reload in several parts, each of which is asked for.
    assert resumed["asked"][0] == "40"
    assert resumed["asked"][-1] is None
    assert set(resumed["asked"]) == {"40", None}
    assert followed["asked"] == []
    assert "6 superseded" in resumed["account"][0]
    assert seen["flags"] == ["step 35: training was resumed here"]
    # The columns that were joined are those of the route.
    assert arrays["steps"].tolist() == list(range(1, 51))
    for row in seen["table"]:
        assert row[1] == STATES[int(arrays["state"][int(row[0]), -1]) & 7]
        shown = float("nan") if row[2] == "–" else number(row[2])
        assert np.isclose(shown, 2.0 ** (int(arrays["delta"][int(row[0]), -1]) / 16), rtol=0.05)


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
    assert set(gone["alerts"]) == {
        (
            "Could not reach TensorBoard's server: expected an answer, got none. "
            "See whether it still runs."
        )
    }
    assert (gone["side"], gone["title"], gone["axe"]) == (["a", "b"], [LAYER], [])
    assert found["before"]["heat"].startswith("a: 8 channels over 10 records")  # it was there
    assert found["before"]["alerts"] == []
    assert found["back"]["alerts"] == []
    assert found["back"]["side"] == ["a"]
    assert found["back"]["heat"].startswith("a: 16 channels over 10 records")


def test_all_addresses_lie_below_a_path_prefix(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    write_run(logdir, "a", range(1, 11), layers=LAYERS)
    with tensorboard(logdir, "--path_prefix", "/deep/er") as tab:
        below = Tab(f"{tab.base}/deep/er")
        wait(lambda: known(below, 1, 10), "the run")
        found = clean(below.drive("prefixed", layer=LAYER))
    assert found["alerts"] == []
    assert {url.partition("?")[0].rpartition("/")[2] for url in found["asked"]} >= {
        "index.js",
        "index",
        "overview",
        "layer",
        "channel",
    }
    assert all(url.startswith(f"{below.base}/") for url in [*found["asked"], found["link"]])


def test_each_view_fits_a_notebook_and_a_narrow_window(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    story(logdir)
    sizes = [(1200, 500), (800, 600), (800, 400)]
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, STORY_RUNS, STORY_RECORDS), "all records")
        found = clean(tab.drive("small", layer=LAYER, sizes=sizes))
    assert len(found) == 4 * len(sizes)
    for name, seen in found.items():
        assert (name, seen["axe"], seen["outside"], seen["wide"]) == (name, [], [], 0)
        wide = "1200" in name
        assert (seen["runs"], seen.get("opened")) == (
            (STORY_RUNS, None) if wide else (0, STORY_RUNS)
        )
        if "layer" in name:
            assert min(seen["plots"]) > 300
        if "network" in name:
            assert len(seen["plots"]) == STORY_RUNS + 1


def test_an_empty_directory_tells_what_to_do(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    logdir.mkdir()
    with tensorboard(logdir) as tab:
        found = clean(tab.drive("words"))
    assert "TensorBoard found no runs in this log directory." in found["main"][0]
    assert "PastNetCallback" in found["main"][0]
    assert found["axe"] == []


def test_a_run_without_records_yet_tells_when_they_come(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    neighbour(logdir)
    LineageWriter(logdir, "young", layers=LAYERS).describe(0)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 1, 0), "the run")
        for view in ("network", "layer", "compare", "function"):
            found = clean(tab.drive("words", hash={"v": view}))
            assert found["side"] == ["no records yet"]
            assert found["axe"] == []
            if view == "network":
                assert (
                    "The first record comes when training has done as many steps"
                    in found["main"][0]
                )
                assert "reload TensorBoard" in found["main"][0]


def test_a_killed_run_is_told_from_one_that_ended(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "killed", layers=LAYERS, created=time.time() - 9000)
    writer.describe(0)
    writer.records(range(1, 11))
    write_run(logdir, "whole", range(1, 11), lineage=0x51, layers=LAYERS)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 2, 20), "both runs")
        found = clean(tab.drive("words"))
    assert found["side"] == ["step 10 · silent for 2 hours", "step 10 · 10 records"]
    [note] = [text for text in found["notes"] if "no end" in text]
    assert note.strip().startswith("killed: no end was recorded. It was killed, or it trains on")
