"""Measures how weights follow others, from record to record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.format import limits
from tb_pastnet.format.follows import COVERED, DISTANCE, MEASURES, MOVED, FollowPair
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.weight import Network, Weight

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[Any]


class Followed(NamedTuple):
    """What a record has of weights that follow others: see `format.follows.Follows`."""

    pairs: tuple[FollowPair, ...]
    past_step: int
    values: Floats


class FollowMeasures:
    """The pairs of a network, and the values of its targets at the record before.

    More channels than a message holds are left out.
    """

    def __init__(self, network: Network[Any], failures: Failures) -> None:
        weights = {weight.name: weight for weight in network.everything}
        self._failures = failures
        self._pairs: tuple[FollowPair, ...] = ()
        self._weights: list[tuple[Weight, Weight]] = []
        room = limits.MAX_VALUES // len(MEASURES)
        for name, source in network.follows.items():
            target = weights[name]
            room -= target.axis.channels
            if room >= 0:
                self._weights.append((target, weights[source]))
                self._pairs += (FollowPair(name, source, target.axis.channels),)
        self._before: list[Rows] = []
        self._step: int | None = None
        self._unequal: list[int] = []

    @noted("Could not read weights that follow others")
    def begin(self, step: int | None) -> None:
        """Takes the current values, of a step if it is known, as those before the next record."""
        self._step = step
        now = [self._read(*pair) for pair in self._weights]
        self._before = [target for target, _ in now]
        self._unequal = [int((target != source).any(axis=1).sum()) for target, source in now]

    @noted("Could not measure weights that follow others")
    def measure(self, step: int, start: int | None) -> Followed | None:
        """Measures how they moved since the record before.

        Args:
            step: of the current values.
            start: the step of the values before the first call; None: unknown.
        """
        if not self._weights:
            return None
        now = [self._read(*pair) for pair in self._weights]
        before, self._before = self._before, [target for target, _ in now]
        since, self._step = start if self._step is None else self._step, step
        if self._unequal:
            counts = self._unequal if since is not None and since <= 0 else [None] * len(now)
            pairs = zip(self._pairs, counts, strict=True)
            self._pairs = tuple(replace(pair, unequal=count) for pair, count in pairs)
            self._unequal = []
        if since is None or since >= step:
            return None
        each = [measured(*pair, old) for pair, old in zip(now, before, strict=True)]
        return Followed(self._pairs, max(since, 0), np.concatenate(each, axis=1).astype(np.float32))

    def _read(self, target: Weight, source: Weight) -> tuple[Rows, Rows]:
        """Both, in rows of the target's channels: copies in their own dtypes."""
        own, their = (
            np.array(target.axis.split(np.asarray(each.effective()))) for each in (target, source)
        )
        return own, their


def measured(target: Rows, source: Rows, before: Rows) -> npt.NDArray[np.float64]:
    """float64 (3, channels), of rows for each channel: see `format.follows.MEASURES`."""
    now, goal, old = (each.astype(np.float64) for each in (target, source, before))
    rows = np.empty((len(MEASURES), len(now)))
    with np.errstate(all="ignore"):
        path, gap = now - old, goal - old
        rows[DISTANCE] = np.linalg.norm(now - goal, axis=1)
        rows[COVERED] = (path * gap).sum(axis=1) / (gap * gap).sum(axis=1)
        rows[MOVED] = np.linalg.norm(path, axis=1)
    rows[:, ~np.isfinite(rows[[DISTANCE, MOVED]]).all(axis=0)] = np.nan
    return rows
