"""A user's own summary writer, in both loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tests import event_files as files
from tests.both_loaders import in_both
from tests.tensorboards import Board, board


def own_event(tag: str, step: int, channels: int, value: int) -> bytes:
    at = np.array([step])
    block = Block(at, at, at - 1, np.full((len(STATISTICS), 1, channels), value, np.int16))
    return files.event(
        tag,
        step,
        encode_block(block, tag=tag, lineage=0),
        content=encode_series(Series((3, channels), "-1", channels)),
        wall_time=files.CREATED + step,
    )


def write_own(logdir: Path, run: str, steps: list[int], name: str = "host") -> None:
    path = logdir / run / f"events.out.tfevents.1700000000.{name}.v2"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for at, step in enumerate(steps):
            for tag, channels in (("train/dense0/kernel", 4), ("train/dense0/bias", 2)):
                file.write(files.frame(own_event(tag, step, channels, at)))


def test_a_users_own_writer_is_a_run_too(tmp_path: Path) -> None:
    write_own(tmp_path, "mine", [1, 2, 3, 5])

    def look(here: Board) -> Any:
        index = here.json("/index")
        header, arrays = here.arrays("/layer", run="mine", layer="train/dense0")
        _, told = here.arrays("/records", run="mine")
        return index, header, arrays["steps"].tolist(), told["counts"].tolist()

    index, header, steps, counts = in_both(tmp_path, look)
    (run,) = index["runs"]
    assert (run["name"], run["source"], run["records"]) == ("mine", "summary", 4)
    assert run["wall_time"] == [files.CREATED + 1, files.CREATED + 5]
    (layer,) = index["networks"][0]["layers"]
    assert (layer["id"], layer["group"], layer["variable"]) == (
        "train/dense0",
        "train",
        "train/dense0/kernel",
    )
    assert [one["role"] for one in layer["variables"]] == ["bias", "kernel"]
    assert (layer["channels"], layer["weights"]) == (4, 12)
    assert steps == [1, 2, 3, 5]
    assert [[sum(one) for one in row] for row in counts] == [[4] * 4]
    assert header["account"]["offered"] == 4


def test_a_users_own_writer_that_goes_back_gives_one_picture(tmp_path: Path) -> None:
    write_own(tmp_path, "mine", [1, 2, 3, 4, 3, 4, 5])

    def look(here: Board) -> Any:
        _, arrays = here.arrays("/layer", run="mine", layer="train/dense0")
        channel = here.json("/channel", run="mine", layer="train/dense0", channel=0)
        return arrays["steps"].tolist(), channel

    steps, channel = in_both(tmp_path, look)
    assert steps == [1, 2, 3, 4, 5]
    assert channel["norm"] == pytest.approx([2 ** (n / 16) for n in (0, 1, 4, 5, 6)], rel=1e-3)


def test_both_kinds_of_one_name_stay_apart(tmp_path: Path) -> None:
    files.write_run(tmp_path, "a")
    write_own(tmp_path, "a", [1, 2])
    runs = in_both(tmp_path, lambda here: here.json("/index")["runs"])
    assert [(run["name"], run["source"]) for run in runs] == [
        ("a", "sink"),
        ("a (summary)", "summary"),
    ]


def test_a_message_of_several_records_is_shown_too(tmp_path: Path) -> None:
    """Our function writes one a message; what another one writes is no reason to fail."""
    steps, tag = np.array([3, 4, 7]), "train/dense0/kernel"
    block = Block(steps, steps, steps - 1, np.zeros((len(STATISTICS), 3, 4), np.int16))
    content = encode_series(Series((3, 4), "-1", 4))
    data = files.event(tag, 7, encode_block(block, tag=tag, lineage=0), content=content)
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "events.out.tfevents.1700000000.host.v2"
    path.write_bytes(files.frame(data))

    def look(here: Board) -> Any:
        header, arrays = here.arrays("/layer", run="mine", layer="train/dense0")
        return header["account"], arrays["steps"].tolist(), str(arrays["wall_times"].tolist())

    account, shown, walls = in_both(tmp_path, look)
    assert (account["offered"], account["shown"]) == (3, 3)
    assert shown == [3, 4, 7]
    assert walls == f"[nan, nan, {files.CREATED}.0]"


def test_a_damaged_record_is_noted_once(tmp_path: Path) -> None:
    write_own(tmp_path, "own", [0, 1, 2])
    (path,) = tmp_path.rglob("*tfevents*")
    data = bytearray(path.read_bytes())
    # Of the first record of the bias, the thinnest variable: the run's steps are read from it.
    data[data.index(b"PAST", data.index(b"dense0/bias")) + 40] ^= 1
    path.write_bytes(data)

    def look(here: Board) -> Any:
        assert here.json("/index")["runs"][0]["account"]["unreadable"] == 1
        return here.json("/violations", run="own")["notes"]

    with board(tmp_path, "fast") as here:
        assert [note["count"] for note in look(here)] == [1]
