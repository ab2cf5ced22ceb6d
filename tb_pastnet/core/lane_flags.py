"""Flags along a run: where channels were frozen, pruned, released, broken, or training resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]

KINDS = ("freeze", "unfreeze", "prune", "unprune", "nonfinite", "violation", "resume")


class LayerCounts(NamedTuple):
    """What each layer holds at each record, float64 (layers, records); 0 before its first."""

    frozen: Counts  # channels
    pruned: Counts  # channels
    weights: Counts  # pruned weights, NaN where unknown
    nonfinite: Counts  # channels
    violated: Counts  # channels


class Flag(NamedTuple):
    """Something that happened at a record, or at several records in a row."""

    kind: str  # one of `KINDS`
    first_step: int
    last_step: int
    times: int  # records at which it happened
    amount: int  # channels, or weights that are pruned or no longer are; 0 for "resume"


def flags(
    steps: npt.NDArray[np.int64], counts: LayerCounts, resumed: Iterable[int] = ()
) -> list[Flag]:
    """The flags of a run, by their first steps.

    The same kind at records in a row is one flag, so a schedule that prunes at each record has one.
    Layers are compared separately: freezing one and releasing another are two flags. A channel that
    is frozen and then pruned, or gets NaN, isn't released.

    Example:
        >>> import numpy as np
        >>> no = np.zeros((1, 4))
        >>> frozen = np.array([[0.0, 0.0, 3.0, 3.0]])
        >>> flags(np.array([1, 2, 3, 4]), LayerCounts(frozen, no, no, no, no))
        [Flag(kind='freeze', first_step=3, last_step=3, times=1, amount=3)]
    """
    listed = [
        flag
        for kind, amounts in _amounts(counts).items()
        for flag in _stretches(kind, steps, amounts)
    ]
    listed += [Flag("resume", step, step, 1, 0) for step in resumed]
    return sorted(listed, key=lambda flag: (flag.first_step, KINDS.index(flag.kind)))


def _amounts(counts: LayerCounts) -> Mapping[str, Counts]:
    """How much changed at each record, by kind, over all layers."""
    frozen, pruned, nonfinite, violated = (
        _changes(own) for own in (counts.frozen, counts.pruned, counts.nonfinite, counts.violated)
    )
    weights = np.nan_to_num(_changes(counts.weights))
    elsewhere = np.maximum(pruned, 0) + np.maximum(nonfinite, 0)
    each = {
        "freeze": frozen,
        "unfreeze": -frozen - elsewhere,
        "prune": weights,
        "unprune": -weights,
        "nonfinite": nonfinite,
        "violation": violated,
    }
    return {kind: np.maximum(own, 0).sum(axis=0) for kind, own in each.items()}


def _changes(counts: Counts) -> Counts:
    """By how much each layer changed since the record before; at the first, since nothing."""
    return np.diff(counts, axis=1, prepend=0)


def _stretches(kind: str, steps: npt.NDArray[np.int64], amounts: Counts) -> Iterator[Flag]:
    places = np.flatnonzero(amounts)
    for own in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        if len(own):
            first, last = int(steps[own[0]]), int(steps[own[-1]])
            yield Flag(kind, first, last, len(own), int(amounts[own].sum()))
