"""What was changed while a run trained: learning rates, masks, and where it was resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_LEAST = 0.1
"""The share of the larger of two rates by which a jump changes it, at least."""

_STEEPER = 4.0
"""How much faster than in the neighbouring intervals a rate changes in a jump, at least."""


class RateJump(NamedTuple):
    """A learning rate that jumped between two records; `step` is that of the second."""

    step: int
    before: float
    after: float


class MaskSteps(NamedTuple):
    """The steps after its first record at which masks of a layer changed."""

    times: int
    first: int
    last: int


class Resumption(NamedTuple):
    """The first step of a lineage after the first, and the last step of those before it."""

    step: int
    last_before: int


class RunChanges(NamedTuple):
    """All changes of a run; those of masks are by layer."""

    rates: Sequence[RateJump] = ()
    masks: Mapping[str, MaskSteps] = {}
    resumed: Sequence[Resumption] = ()


def rate_jumps(steps: npt.NDArray[np.int64], rates: npt.NDArray[np.floating]) -> list[RateJump]:
    """The jumps of a learning rate, by its values at some steps.

    A jump changes the rate by a tenth or more between two records, and at least four times as fast
    as in the intervals before and after them. A rate that decays in steps has one for each step;
    cosines, linear and exponential schedules, and their warm-up, have none. The first interval has
    none, because nothing is known before it.

    Example:
        >>> rate_jumps(np.array([1, 10, 20, 30]), np.array([0.1, 0.1, 0.01, 0.01]))
        [RateJump(step=20, before=0.1, after=0.01)]
    """
    known = np.isfinite(rates)
    steps, rates = steps[known], rates[known]
    if len(steps) < 3:
        return []
    change = np.abs(np.diff(rates))
    slope = change / np.maximum(np.diff(steps), 1)
    largest = np.maximum(np.abs(rates[1:]), np.abs(rates[:-1]))
    padded = np.pad(slope, 1)
    neighbours = np.maximum(padded[:-2], padded[2:])
    jumps = (change > 0) & (change >= _LEAST * largest) & (slope >= _STEEPER * neighbours)
    return [
        RateJump(int(steps[at + 1]), float(rates[at]), float(rates[at + 1]))
        for at in np.flatnonzero(jumps).tolist()
        if at
    ]
