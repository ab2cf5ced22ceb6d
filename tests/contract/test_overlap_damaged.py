"""Damaged masks: an overlap is right, or it isn't told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard import context

from tb_pastnet.reader.overlap_views import MaskComparison, overlap_view
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.tensorboards import LOADERS, board

CALLER = RequestContext(context.RequestContext(), "")
KEPT, TRAINABLE = np.arange(18) % 3 > 0, np.arange(18) % 2 > 0
SIZES = {"kept": KEPT.sum(), "trainable": (KEPT & TRAINABLE).sum()}
OTHER = np.arange(18) < 11


def small(logdir: Path) -> tuple[files.LineageWriter, range]:
    """Three records of two channels, pruned and frozen in part, and where masks are in the file."""
    writer = files.LineageWriter(logdir, layers={"c": 2}, block=3)
    writer.describe(0)
    start = writer.path.stat().st_size
    writer.masks(2, {("kept", "c/kernel"): KEPT, ("trainable", "c/kernel"): TRAINABLE})
    span = range(start, writer.path.stat().st_size)
    codes = files.codes(range(1, 4), 2)
    files.hold(codes, slice(1, None), KEPT.reshape(9, 2), TRAINABLE.reshape(9, 2))
    writer.records(range(1, 4), {"c/kernel": codes})
    return writer, span


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(  # each third byte, and so each bit; all of all of them in the proof
    ("bit", "stride"), [(0, 3), *(pytest.param(n, 1, marks=pytest.mark.prove) for n in range(8))]
)
def test_one_bit_flipped_never_gives_a_wrong_overlap(
    tmp_path: Path, loader: str, bit: int, stride: int
) -> None:
    writer, whole = small(tmp_path / "whole")
    span = whole[::stride]
    data, place = writer.path.read_bytes(), writer.path.relative_to(tmp_path / "whole" / "a")
    for at in span:
        flipped = bytearray(data)
        flipped[at] ^= 1 << ((at + bit) % 8)
        path = tmp_path / "flips" / str(at) / place
        path.parent.mkdir(parents=True)
        path.write_bytes(flipped)
    other = files.LineageWriter(tmp_path / "flips", "other", lineage=5, layers={"c": 2})
    other.describe(0)
    other.masks(2, {("kept", "c/kernel"): OTHER})
    other.records(range(1, 4))
    with board(tmp_path / "flips", loader) as here:
        store = Store(here.provider, fresh_for=3600)
        runs = store.catalog(CALLER).runs
        with ThreadPoolExecutor(4) as threads:
            said = list(threads.map(lambda at: check(store, runs, str(at)), span))
    assert said.count("right") + said.count("not told") == len(span)
    # The slow loader ends a file at the first wrong checksum: no record is left.
    assert said.count("not told") > len(span) // 2


def check(store: Store, runs: Any, name: str) -> str:
    """What is told of a damaged run is right."""
    told = []
    for mask, size in SIZES.items():
        readers = [store.reader(CALLER, runs[run]) for run in (name, "other")]
        body, _ = overlap_view(MaskComparison(readers, "weights", mask), 3)
        (pair,), run = body["pairs"], body["runs"][0]
        assert run["kept"] in (None, size), name
        told.append(pair["comparable"])
        if pair["comparable"]:
            mine = KEPT if mask == "kept" else KEPT & TRAINABLE
            right = ((mine & OTHER).sum(), (mine | OTHER).sum())
            assert (pair["intersection"], pair["union"]) == right, name
        else:
            assert pair["reason"] in ("unknown", "no record"), name
    return "right" if all(told) else "not told"
