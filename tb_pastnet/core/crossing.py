"""From which threshold on a channel counts as settled, column by column of a picture.

Of all that makes a state only one thing depends on the threshold: whether a moving record is
settled. With a larger threshold more of them are, never less. So each channel and column has two
limits: below the first the column counts as moving, from the second on as settled, and between them
as another state. Whoever keeps these can answer every threshold without the records.

Limits are those that `states.quiet_limit` gives for thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.pooling import by_size
from tb_pastnet.core.quantize import NAN, ZERO, Codes

Integers = npt.NDArray[np.int64]

ALWAYS, NEVER = ZERO, 32767
"""Limits that every limit of a threshold reaches, and that none does."""

_NETWORK = 32
_OTHERS = (states.REACTIVATED, states.FROZEN, states.PRUNED)


@dataclass(frozen=True, eq=False)
class Crossing:
    """What each threshold makes of columns.

    Attributes:
        moving_below: int16 (columns, channels), moving where the limit is smaller than this.
        settled_from: int16 (columns, channels), settled where it is this or larger; never smaller
            than `moving_below`.
        between: uint8 (columns, channels), the state in between.
    """

    moving_below: Codes
    settled_from: Codes
    between: states.States


def settling(delta: Codes, unsettled: states.States, patience: int = states.PATIENCE) -> Codes:
    """Tells for each record the smallest limit at which it is settled.

    Args:
        delta: int16 (records, channels), codes of the relative delta.
        unsettled: uint8 (records, channels), states with none settled.
        patience: records for which a channel has to be quiet, at least 1.

    Returns:
        int16 (records, channels), `NEVER` where no threshold settles it.

    Example:
        >>> delta = np.array([[-9], [-7], [-8]], np.int16)
        >>> settling(delta, np.full((3, 1), states.MOVING, np.uint8), patience=2)[:, 0].tolist()
        [32767, -6, -6]
    """
    quiet_from = np.minimum(delta, np.int16(NAN)) + np.int16(1)
    odd = unsettled != states.MOVING
    some = bool(odd.any())
    if some:
        quiet_from[(unsettled & np.uint8(states.NONFINITE)) != 0] = NEVER
    found = quiet_from.copy()
    for back in range(1, patience):
        np.maximum(found[back:], quiet_from[:-back], out=found[back:])
    found[: patience - 1] = NEVER
    if some:
        found[(unsettled & np.uint8(states.STATE)) != states.MOVING] = NEVER
    return found


def crossing(settled_from: Codes, plain: states.States, starts: Integers) -> Crossing:
    """Pools records to columns, for all thresholds at once.

    Args:
        settled_from: int16 (records, channels), of `settling`.
        plain: uint8 (records, channels), the states without marks, none settled.
        starts: int64 (columns,), the first record of each column, as from `pooling.columns`.

    Returns:
        What `pooling.pool_states` makes of the states at every threshold.
    """
    records, channels = settled_from.shape
    shape = (len(starts), channels)
    below, since = np.empty((2, *shape), np.int16)
    between = np.full(shape, states.MOVING, np.uint8)
    odd = np.flatnonzero((plain != states.MOVING).any(axis=0))
    for here, rows in by_size(starts, records):
        codes = settled_from[rows]
        ranked, size = _ranked(codes), rows.shape[1]
        # The median; where there are two, what the last record is decides.
        found = codes[:, -1].clip(ranked[(size - 1) // 2], ranked[size // 2])
        below[here], since[here] = found, found
        if len(odd):
            at = np.ix_(here, odd)
            some = _mixed(codes[:, :, odd], plain[rows[:, :, None], odd], ranked[:, :, odd])
            below[at], since[at], between[at] = some
    return Crossing(below, since, between)


def _ranked(codes: Codes) -> Codes:
    """Sorts (columns, records, channels) by records, which come first in the result."""
    size = codes.shape[1]
    if size > _NETWORK:
        return np.ascontiguousarray(np.sort(codes, axis=1).swapaxes(0, 1))
    # Batcher's odd-even merge sort: for few records ten times as fast as numpy's.
    ranks = list(codes.swapaxes(0, 1))
    for low, high in _comparators(size):
        first, second = ranks[low], ranks[high]
        ranks[low], ranks[high] = np.minimum(first, second), np.maximum(first, second)
    return np.stack(ranks)


def _comparators(size: int) -> Iterator[tuple[int, int]]:
    length = 1  # of the parts that are sorted already
    while length < size:
        step = length
        while step:
            for start in range(step % length, size - step, 2 * step):
                for low in range(start, min(start + step, size - step)):
                    if low // (2 * length) == (low + step) // (2 * length):
                        yield low, low + step
            step //= 2
        length *= 2


def _mixed(codes: Codes, plain: states.States, ranked: Codes) -> tuple[Codes, Codes, states.States]:
    """Columns in which other states than moving occur; scores are those of `pool_states`."""
    last = plain[:, -1]
    moving = np.count_nonzero(plain == states.MOVING, axis=1)
    scores = {x: 2 * np.count_nonzero(plain == x, axis=1) + (last == x) for x in _OTHERS}
    most = np.max(list(scores.values()), axis=0)
    between = np.full(last.shape, states.MOVING, np.uint8)
    for state in reversed(_OTHERS):
        between[(scores[state] == most) & (most > 0)] = state
    # Settled has to beat reactivated, and to equal frozen and pruned.
    needed = np.maximum(scores[states.REACTIVATED] + 1, most)
    open_end = last == states.MOVING  # then the threshold decides on the last record, too
    edge = np.full((1, *last.shape), ALWAYS, np.int16), np.full((1, *last.shape), NEVER, np.int16)
    padded = np.concatenate([edge[0], ranked, edge[1]])

    def limit(low: npt.NDArray[np.intp], high: npt.NDArray[np.intp]) -> Codes:
        """What the last record is decides between two ranks."""
        first, second = (
            np.take_along_axis(padded, at.clip(-1, len(ranked))[None] + 1, axis=0)[0]
            for at in (low, high)
        )
        return np.where(open_end, codes[:, -1].clip(first, second), first).astype(np.int16)

    # Of the moving records `settled` may be settled, so that moving still wins:
    # 2 (moving - settled) + its last >= most, and >= 2 settled + the other's last.
    low = np.minimum((2 * moving - most) // 2, (2 * moving - open_end) // 4)
    high = np.minimum((2 * moving + 1 - most) // 2, (2 * moving + 1) // 4)
    below = limit(low, high)
    # At least so many must be, so that settled wins over moving and over the others.
    low = np.maximum((needed - open_end + 1) // 2, (2 * moving + 1 - open_end + 3) // 4)
    high = np.maximum((needed + 1) // 2, (2 * moving + 5) // 4)
    return below, limit(low - 1, high - 1), between
