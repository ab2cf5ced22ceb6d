"""Restarts, second writers and torn tails: one picture in both loaders."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tb_pastnet as pastnet
from tb_pastnet.format.events import read_events
from tb_pastnet.reader.notes import AT_ONCE
from tests import event_files as files
from tests.both_loaders import in_both, the_run
from tests.interpreter import Interpreter
from tests.tensorboards import Board

pytestmark = pytest.mark.promise("back_in_time")


@pytest.mark.promise("supersession")
def test_a_restart_that_goes_back_gives_one_picture(tmp_path: Path, figure: Any) -> None:
    files.write_run(tmp_path, steps=range(100), ordinal=1, lineage=0xAAAAAAAA)
    files.write_run(tmp_path, steps=range(80, 150), ordinal=2, lineage=0x11111111)

    def look(here: Board) -> Any:
        run = the_run(here)
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        assert arrays["steps"].tolist() == list(range(150))
        return run, header

    run, header = in_both(tmp_path, look)
    assert (run["records"], run["account"]["superseded"]) == (150, 20)
    assert [one["ordinal"] for one in run["lineages"]] == [1, 2]
    assert header["account"] == run["account"]
    assert {"step": 80, "kind": "restart", "text": "training was resumed here"} in header["events"]
    figure("100 steps, then 70 from step 80: 150 shown and 20 superseded, in both loaders")


def test_a_clock_that_was_set_back_changes_nothing(tmp_path: Path) -> None:
    files.write_run(tmp_path, steps=range(60), ordinal=1, lineage=5)
    files.write_run(tmp_path, steps=range(60, 120), ordinal=2, lineage=4, created=1_000_000_000)
    run = in_both(tmp_path, the_run)
    assert (run["records"], run["account"]["superseded"]) == (120, 0)


@pytest.mark.promise("supersession")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_what_is_superseded_never_comes_back_wherever_the_resumed_run_was_torn(
    tmp_path: Path, figure: Any, whole: bool
) -> None:
    files.write_run(tmp_path, steps=range(1, 31), ordinal=1, lineage=5)
    files.write_run(tmp_path, steps=range(21, 41), ordinal=2, lineage=6, first_step=21)
    (torn,) = (tmp_path / "a").glob("pastnet.0002.*/*")
    data = torn.read_bytes()
    with torn.open("rb") as stream:
        frames = [event.offset for event in read_events(stream)]
    sizes = range(len(data) + 1) if whole else [*frames, *range(0, len(data), 401), len(data)]
    described = frames[1]  # behind the description
    for size in sizes:
        torn.write_bytes(data[:size])
        (run,) = pastnet.read(tmp_path).runs.values()
        layer = run.layers["conv1"]
        own = [step for step in layer.steps.tolist() if step > 20]
        if size < described:
            assert layer.steps.tolist() == [*range(1, 31)]
        else:
            assert layer.steps.tolist() == [*range(1, 21), *own]
            assert own in ([], [*range(21, 37)], [*range(21, 41)])
            assert run.account.superseded == 10
    if whole:
        figure(f"the resumed file torn at each of {len(data):,} bytes: 0 superseded records shown")


def test_two_writers_at_a_time_are_both_there(tmp_path: Path) -> None:
    created = {"created": files.CREATED}
    first = files.LineageWriter(tmp_path, ordinal=1, lineage=7, first_step=0, **created)
    second = files.LineageWriter(tmp_path, ordinal=2, lineage=3, first_step=1, **created)
    files.write_run(tmp_path, "a (2)", steps=range(5))
    for writer in (first, second):
        writer.describe(writer.first_step)
    for step in range(0, 200, 20):
        first.records(range(step, step + 20, 2))
        second.records(range(step + 1, step + 20, 2))

    def look(here: Board) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = here.json("/index")["runs"]
        return runs

    runs = in_both(tmp_path, look)
    assert [run["name"] for run in runs] == ["a", "a (2)", "a (2) (2)"]
    for run, writer in ((runs[0], first), (runs[2], second)):
        assert run["tb_runs"] == [writer.tb_run]
        assert (run["account"]["offered"], run["account"]["shown"]) == (100, 100)
        assert run["notes"] == [{"text": AT_ONCE, "count": 1}]
    assert runs[1]["notes"] == []
    read = pastnet.read(tmp_path).runs
    assert read["a"].steps.tolist() == [*range(0, 200, 2)]
    assert read["a (2) (2)"].steps.tolist() == [*range(1, 200, 2)]


def test_segments_are_one_lineage(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    for segment in range(3):
        writer.segment = segment
        first = 1 + 30 * segment
        writer.describe(first - 1)
        writer.records(range(first, first + 30))
    assert in_both(tmp_path, the_run)["records"] == 90


def test_a_group_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    first = writer.path.read_bytes()
    writer.segment = 1
    writer.path.write_bytes(first)
    writer.records(range(17, 33))
    run = in_both(tmp_path, the_run)
    assert run["account"]["shown"] == run["account"]["offered"] == 32


def test_a_torn_tail_costs_itself(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 33))
    data = writer.path.read_bytes()
    writer.path.write_bytes(data[:-7])

    def look(here: Board) -> Any:
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        _, pooled = here.arrays("/overview", run="a")
        assert pooled["steps"].tolist() == arrays["steps"].tolist()
        return the_run(here), header, arrays["steps"].tolist()

    run, header, steps = in_both(tmp_path, look)
    assert steps == list(range(1, 33))
    assert run["records"] == 16  # the last timeline was torn, the blocks before it are whole
    assert header["account"]["shown"] == 32


BEGIN = """
import io, logging
import numpy as np, keras
import tb_pastnet as pastnet
said = io.StringIO()
logging.getLogger("tb_pastnet").addHandler(logging.StreamHandler(said))
weight = keras.Variable(np.ones((2, 3), "f4"))
recorder = pastnet.Recorder({logdir!r}, {{"w": weight}}, every=1, initial_step=0)
shared |= {{"said": said, "weight": weight, "recorder": recorder}}
"""
TRAINING = """
for step in range(1, 21):
    weight.assign(weight + 0.1)
    recorder.record(step)
recorder.close()
print(said.getvalue())
"""


def test_two_processes_at_once_are_two_runs(tmp_path: Path) -> None:
    both = [Interpreter(BEGIN.format(logdir=str(tmp_path / "a"))) for _ in range(2)]
    for process in both:
        process.run("")  # it has begun
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda process: process.run(TRAINING), both))
    for process in both:
        process.close()
    assert sum("another process is recording into" in text for text in said) == 1
    runs = pastnet.read(tmp_path).runs
    assert list(runs) == ["a", "a/a_2"]
    for run in runs.values():
        assert (run.account.shown, run.account.superseded, len(run.lineages)) == (20, 0, 1)
