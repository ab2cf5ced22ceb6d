"""One training of weights of many sizes, set by the suite: what was true at each step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tb_pastnet as pastnet
from tests.conformance.room import Arrays, Room

SIZES = (1, 7, 8, 9, 63, 64, 65, 129, 4097)
"""Around the bounds of bytes, words and blocks."""

EVERY, STEPS = 3, 35
"""More than a block of 16 records with `every=1`; here 12 records."""


def wide(seed: int = 0) -> Arrays:
    """A kernel of each number of channels, a bias and a scalar."""
    rng = np.random.default_rng(seed)
    kernels = {f"d{size}/kernel": rng.normal(size=(3, size)).astype("f4") for size in SIZES}
    return {
        **kernels,
        "d9/bias": rng.normal(size=9).astype("f4"),
        "deep/kernel": rng.normal(size=(2, 3, 2, 7)).astype("f4"),
    }


def small() -> Arrays:
    """Two layers, of 7 and 9 channels."""
    return {name: value for name, value in wide().items() if name[:3] in ("d7/", "d9/")}


def moved(values: Arrays, step: int) -> Arrays:
    """The next values: a third of the elements stay, one channel is at rest."""
    rng = np.random.default_rng(1000 + step)
    after = {}
    for name, value in values.items():
        change = rng.normal(size=value.shape) * 0.01 * (rng.random(value.shape) < 0.7)
        change[..., -1] *= value.shape[-1] == 1  # the last channel rests
        after[name] = (value + change).astype(value.dtype)
    return after


@dataclass
class Story:
    """`at` has the values by step, that of the beginning first."""

    logdir: Path
    at: list[Arrays]
    flushed: bool
    notes: dict[str, int]

    @cached_property
    def run(self) -> Any:
        (run,) = pastnet.read(self.logdir).runs.values()
        return run


def tell(kind: type[Room], logdir: Path) -> Story:
    at = [wide()]
    room = kind(logdir, at[0], every=EVERY)
    room.recorder.expect_end(STEPS)
    for step in range(1, STEPS + 1):
        at.append(moved(at[-1], step))
        room.put(at[-1])
        room.record(step)
    flushed, notes = room.recorder.flush(30), dict(room.recorder.notes.counts())
    room.close()
    return Story(logdir, at, flushed, notes)
