"""Restarts, second writers and torn tails: one picture in both loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import event_files as files
from tests.both_loaders import in_both, the_run
from tests.tensorboards import Board

pytestmark = pytest.mark.promise("back_in_time")


def test_a_restart_that_goes_back_gives_one_picture(tmp_path: Path) -> None:
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


def test_a_clock_that_was_set_back_changes_nothing(tmp_path: Path) -> None:
    files.write_run(tmp_path, steps=range(60), ordinal=1, lineage=5)
    files.write_run(tmp_path, steps=range(60, 120), ordinal=2, lineage=4, created=1_000_000_000)
    run = in_both(tmp_path, the_run)
    assert (run["records"], run["account"]["superseded"]) == (120, 0)


def test_two_writers_at_a_time_are_both_there(tmp_path: Path) -> None:
    one = files.LineageWriter(tmp_path, ordinal=1, lineage=7)
    two = files.LineageWriter(tmp_path, ordinal=2, lineage=3)
    for writer, first in ((one, 0), (two, 1)):
        writer.first_step = first
        writer.describe(first)
    for at in range(0, 200, 20):
        one.records(range(at, at + 20, 2))
        two.records(range(at + 1, at + 20, 2))
    run = in_both(tmp_path, the_run)
    assert len(run["lineages"]) == 2
    assert run["account"] == {
        "offered": 200,
        "shown": 101,
        "superseded": 99,
        "thinned": 0,
        "dropped": 0,
        "unreadable": 0,
    }


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
