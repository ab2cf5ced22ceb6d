"""Which of many magnitudes are the smallest, over one variable or over several together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating]


class Ranked(NamedTuple):
    """The weights, or channels, of one variable that may be pruned.

    Attributes:
        candidates: flat, True where it isn't pruned yet.
        scores: float of shape (number of candidates,), never NaN.
    """

    candidates: Mask
    scores: Floats


def rank(sizes: npt.NDArray[Any], live: npt.NDArray[Any]) -> Ranked:
    """Scores what is still live by its size.

    Args:
        sizes: magnitudes or norms.
        live: bool of the same shape.
    """
    candidates = np.ascontiguousarray(live).reshape(-1)
    return Ranked(candidates, scores(sizes.reshape(-1)[candidates]))


def prune_smallest(group: Sequence[Ranked], share: float) -> list[Mask]:
    """Prunes the smallest of all variables together, but never the largest of one.

    Args:
        group: the variables.
        share: fraction of all that is pruned afterwards, what is pruned already included.

    Returns:
        Of each variable what stays, flat. Of equal ones the first goes first.
    """
    total = sum(one.candidates.size for one in group)
    live = sum(one.scores.size for one in group)
    free = [_without_largest(one.scores) for one in group]
    ranked = np.concatenate([one.scores[at] for one, at in zip(group, free, strict=True)])
    more = min(round(share * total) - (total - live), ranked.size)
    if more <= 0:
        return [one.candidates for one in group]
    goes = np.split(_smallest(ranked, more), np.cumsum([np.count_nonzero(at) for at in free])[:-1])
    return [_without(*parts) for parts in zip(group, free, goes, strict=True)]


def magnitudes(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The magnitude of each weight, in its own dtype where that is a floating one."""
    return np.asarray(np.abs(values.astype(np.float64) if values.dtype.kind in "biu" else values))


def norms(values: npt.NDArray[Any], kept: Mask) -> Floats:
    """The 2-norm of each row of (channels, elements), pruned ones as 0, over √elements."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.where(kept, np.square(values.astype(np.float64)), 0)
        return np.asarray(np.sqrt(squares.sum(axis=1) / max(values.shape[1], 1)))


def scores(sizes: npt.NDArray[Any]) -> Floats:
    """Sizes as float32 or float64, what isn't finite as infinity."""
    wide = sizes if sizes.dtype == np.float64 else sizes.astype(np.float32)
    wide = wide.copy() if wide is sizes else wide
    wide[~np.isfinite(wide)] = np.inf
    return wide


def _without_largest(sizes: Floats) -> Mask:
    """All but the largest, of equal ones the last, as that would be pruned last."""
    free = np.ones(sizes.size, bool)
    if sizes.size:
        free[sizes.size - 1 - int(sizes[::-1].argmax())] = False
    return free


def _smallest(sizes: Floats, count: int) -> Mask:
    # As a stable sort would choose them, without sorting.
    limit = np.partition(sizes, count - 1)[count - 1]
    goes = np.asarray(sizes < limit)
    ties = np.flatnonzero(sizes == limit)
    goes[ties[: count - int(np.count_nonzero(goes))]] = True
    return goes


def _without(one: Ranked, free: Mask, goes: Mask) -> Mask:
    stays = np.ones(one.scores.size, bool)
    stays[free] = ~goes
    through = one.candidates.copy()
    through[one.candidates] = stays
    return through
