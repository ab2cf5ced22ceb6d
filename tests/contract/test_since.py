"""`since` of a layer: what is new can be joined to what a page has, and it is told where it can't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tb_pastnet.core.violation import Violation
from tests import event_files as files
from tests.tensorboards import Board, board

QUERY = {"run": "a", "layer": "conv1"}


def layer(here: Board, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return here.arrays("/layer", **QUERY, **more)


def test_columns_that_still_stand_can_be_joined(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 21))
    with board(tmp_path, "slow") as here:
        seen, had = layer(here)
    writer.records(range(21, 41))
    with board(tmp_path, "slow") as here:
        whole_header, whole = layer(here)
        header, new = layer(here, since=20)
    assert header["before"] == seen["digest"] != header["digest"]
    assert header["digest"] == whole_header["digest"]
    assert whole_header["before"] == "00000000"  # nothing is left out
    for name, array in whole.items():
        assert np.concatenate([had[name], new[name]], axis=-1).tobytes() == array.tobytes()


def test_nothing_new_is_told_as_such(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    with board(tmp_path, "slow") as here:
        header, arrays = layer(here, since=40)
    assert header["before"] == header["digest"]
    assert arrays["steps"].size == 0


def test_a_restart_that_goes_back_changes_what_stands(tmp_path: Path) -> None:
    files.write_run(tmp_path, steps=range(40), ordinal=1, lineage=7)
    with board(tmp_path, "slow") as here:
        seen, _ = layer(here)
    other = files.LineageWriter(tmp_path, ordinal=2, lineage=8, first_step=30)
    other.describe(30)
    moved = {"conv1/kernel": files.codes(range(30, 60), 4, seed=5)}
    other.records(range(30, 60), moved)
    with board(tmp_path, "slow") as here:
        assert layer(here, since=39)[0]["before"] != seen["digest"]
        until_restart, _ = layer(here, since=29)
    files.write_run(tmp_path / "short", steps=range(30))
    with board(tmp_path / "short", "slow") as here:
        assert layer(here)[0]["digest"] == until_restart["before"]


def test_a_finding_about_earlier_records_changes_what_stands(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 21))
    with board(tmp_path, "slow") as here:
        seen, _ = layer(here)
    writer.violations(20, [Violation("conv1/kernel", 1, 5, 9, 1, 9, 0.5, "momentum")])
    with board(tmp_path, "slow") as here:
        assert layer(here, since=20)[0]["before"] != seen["digest"]
