"""A file cut at any byte, or with any bit flipped, is read back as the fast loader shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests import event_files as files
from tests.tensorboards import board

pytestmark = [pytest.mark.promise("read_back"), pytest.mark.promise("cut_and_flipped")]

STEPS = range(1, 7)


def whole(logdir: Path) -> tuple[bytes, Path, np.ndarray]:
    """A small file of two blocks a variable, where it lies, and its norms."""
    writer = files.LineageWriter(logdir, layers={"c": 2}, block=3)
    writer.describe(0)
    writer.records(STEPS)
    writer.close(6)
    norms = 2.0 ** (files.codes(STEPS, 2)[0] / 16)
    return writer.path.read_bytes(), writer.path.relative_to(logdir / "a"), norms


def damaged(data: bytes, every: int, bit: int) -> Iterator[tuple[str, bytes]]:
    for at in range(0, len(data), every):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at // every + bit) % 8
        yield f"flip{at:05d}", bytes(flipped)
        yield f"cut{at:05d}", data[:at]


def compare(folder: Path, every: int, bit: int = 0) -> int:
    """Compares every run: one of so many bytes, and one bit of it, another one each time.

    Returns:
        How many there are.
    """
    data, place, norms = whole(folder / "whole")
    for name, bad in damaged(data, every, bit):
        path = folder / "log" / name / place
        path.parent.mkdir(parents=True)
        path.write_bytes(bad)
    log = pastnet.read(folder / "log")
    with board(folder / "log", "fast") as here:
        index = here.json("/index")["runs"]
        assert list(log.runs) == [run["name"] for run in index]
        for known in index:
            run = log.runs[known["name"]]
            assert asdict(run.account) == known["account"], run
            assert dict(run.notes) == {one["text"]: one["count"] for one in known["notes"]}, run
            header, _ = here.arrays("/overview", run=run.name)
            assert [asdict(one.account) for one in run.layers.values()] == header["accounts"], run
            for layer in run.layers.values():
                assert set(layer.steps) <= set(STEPS), run
                np.testing.assert_array_equal(layer.norm, norms[layer.steps - 1], repr(run))
        return len(index)


def test_a_file_cut_or_flipped_here_and_there(tmp_path: Path) -> None:
    assert compare(tmp_path, 97) > 20


@pytest.mark.prove
@pytest.mark.parametrize("bit", range(8))
def test_a_file_cut_at_each_byte_or_with_each_bit_flipped(
    tmp_path: Path, bit: int, figure: Callable[[str], None]
) -> None:
    count = compare(tmp_path, 1, bit)
    figure(f"a file cut or flipped in {count:,} ways: all read back as the tab shows them")
