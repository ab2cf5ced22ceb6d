"""Whether weights that follow others do: what their distances and steps show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]

FEWEST = 5
"""Records from which on a pair is judged."""

_FORWARD, _BACK = 1e-5, -1e-3
"""Shares between them may come from rounding; averages cover more in any step."""

_ALL = 0.9
"""A share of the distance from which on a single step covers nearly all."""

NEVER, SOME, STATISTICS = "never_moved", "some_never_moved", "statistics_never_moved"
AWAY, ALL, UNEQUAL = "moves_away", "covers_all", "unequal_at_start"

CAUSES: Mapping[str, str] = {
    NEVER: "never moved, while their sources did",
    SOME: "never moved, while others of the same targets follow",
    STATISTICS: "statistics that never moved, while the weights of their targets follow",
    AWAY: "move away from their sources",
    ALL: "cover the whole distance to their sources in each step, as with tau the wrong way round",
    UNEQUAL: "differed from their sources before the first step",
}
"""Causes of the finding `follows`."""


class FollowRecords(NamedTuple):
    """The records of a weight that follows another one, oldest first.

    Measures are float (records, channels), as in `format.follows`.
    """

    layer: str
    statistic: bool
    rounded: bool  # its dtype isn't that of its source
    steps: npt.NDArray[np.int64]
    past_steps: npt.NDArray[np.int64]  # of the target's values before
    distance: Floats
    covered: Floats
    moved: Floats
    unequal: int | None  # channels that differed before the first step


def follow_causes(pairs: Sequence[FollowRecords]) -> list[str | None]:
    """What is wrong with each pair: a key of `CAUSES`, or None.

    Example:
        >>> still, steps = np.zeros((5, 1)), np.arange(1, 6)
        >>> pair = FollowRecords("t", False, False, steps, steps - 1, still + 1, still, still, 0)
        >>> follow_causes([pair])
        ['never_moved']
    """
    causes = [_cause(pair) for pair in pairs]
    still = [pair for pair, cause in zip(pairs, causes, strict=True) if cause == NEVER]
    if len(still) < sum(len(pair.steps) >= FEWEST for pair in pairs):
        why = STATISTICS if all(pair.statistic for pair in still) else SOME
        causes = [why if cause == NEVER else cause for cause in causes]
    return causes


def _cause(pair: FollowRecords) -> str | None:
    begun = UNEQUAL if pair.unequal and not pair.rounded else None
    if len(pair.steps) < FEWEST or not np.isfinite(pair.distance).any():
        return begun
    apart = np.nansum(pair.distance, axis=1) > 0
    share = _shares(pair)
    goes = (share > _FORWARD) | (share < _BACK)
    single = goes & (pair.steps - pair.past_steps == 1)
    if not apart.any():
        gaps = [*(pair.steps - pair.past_steps).tolist()]
        return ALL if np.gcd.reduce(gaps) == 1 and (pair.moved > 0).any() else begun
    if not goes.any() or pair.statistic:
        # Its own inputs move a statistic, too: like inputs bring it near its source.
        return begun if goes.any() else NEVER
    if goes.sum() >= FEWEST and (share[goes] < 0).all():
        return AWAY
    if single.any() and (share[single] >= _ALL).all() and apart[single].all() and not pair.rounded:
        return ALL
    return begun


def _shares(pair: FollowRecords) -> Floats:
    """The share that each record covers of all channels, 0 where there was nothing to cover."""
    # Far channels count more: where there is hardly any distance, rounding covers any share.
    weights = np.nan_to_num(pair.distance**2 + pair.moved**2)
    total = weights.sum(axis=1)
    covered: Floats = (np.nan_to_num(pair.covered) * weights).sum(axis=1)
    shares: Floats = np.divide(covered, total, out=np.zeros_like(total), where=total > 0)
    return shares
