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
    layers: tuple[str, ...] = ()  # whose rate it is; empty: that of all


def joined_jumps(jumps: Sequence[RateJump], rates: int) -> list[RateJump]:
    """Those of separate learning rates: at each step the highest, with the layers of all.

    Args:
        jumps: of some groups of weights, of which none may be without layers.
        rates: how many separate rates there are. If all of them jump, it is the rate of all.

    Example:
        >>> joined_jumps([RateJump(9, 0.1, 0.2, ("a",)), RateJump(9, 0.5, 1.0, ("b",))], rates=3)
        [RateJump(step=9, before=0.5, after=1.0, layers=('b', 'a'))]
    """
    by_step: dict[int, list[RateJump]] = {}
    for jump in sorted(jumps, key=lambda each: max(each.before, each.after), reverse=True):
        by_step.setdefault(jump.step, []).append(jump)
    joined = []
    for _, each in sorted(by_step.items()):
        every = len(each) == rates or not all(jump.layers for jump in each)
        layers = () if every else dict.fromkeys(name for jump in each for name in jump.layers)
        joined.append(each[0]._replace(layers=tuple(layers)))
    return joined


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
        [RateJump(step=20, before=0.1, after=0.01, layers=())]
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
