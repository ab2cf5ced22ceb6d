"""Which records count when a run was interrupted and started again.

Training that restarts from a checkpoint writes some steps a second time. The rule: a lineage
replaces what earlier lineages of its writer recorded at and after its own first step. Order is by
ordinal, ties by id, so both TensorBoard loaders and every load order give one answer. The clock
only tells writers apart: a writer that records while another does isn't its restart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CLOCKS_DIFFER = 0.1
"""Seconds by which the clocks of two machines may differ."""


def run_number(origin: str, origins: Sequence[str | None], *, resumes: bool) -> int:
    """Which run a training continues, by its number; the number of runs if it is a new one.

    An origin is a fingerprint of the values that a training began with; None for a run that has
    recorded nothing. The oldest run is first. A training that resumes begins at a step above 0, as
    from a checkpoint, whose weights are no longer those of the beginning: if it isn't the run of
    its origin, it is the newest.
    """
    for wanted in (origin, None):
        if wanted in origins:
            return len(origins) - 1 - origins[::-1].index(wanted)
    return len(origins) - 1 if resumes and origins else len(origins)


def writers_of(spans: Sequence[tuple[float, float] | None]) -> list[int]:
    """The newest possible writer of each lineage of a run, from 0: those of one never overlap.

    Spans are the times of the first and the last record of each lineage, in seconds, in the order
    of the lineages; None for one without records, which belongs to the newest writer.

    Example:
        >>> writers_of([(0, 9), (5, 20), (10, 15), (30, 40)])
        [0, 1, 0, 1]
    """
    recorded: list[list[tuple[float, float]]] = [[]]
    writers = []
    for span in spans:
        free = (
            number
            for number in reversed(range(len(recorded)))
            if span is None or not any(_at_once(span, other) for other in recorded[number])
        )
        writer = next(free, len(recorded))
        if writer == len(recorded):
            recorded.append([])
        if span is not None:
            recorded[writer].append(span)
        writers.append(writer)
    return writers


def _at_once(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return min(first[1], second[1]) - max(first[0], second[0]) > CLOCKS_DIFFER


def first_steps_after(starts: Sequence[int | None]) -> list[int | None]:
    """The step at which later lineages cut each lineage off: the smallest start among these.

    None stands for a lineage that recorded nothing, and for one that isn't cut off.
    """
    cuts: list[int | None] = []
    cut: int | None = None
    for start in reversed(starts):
        cuts.append(cut)
        if start is not None:
            cut = start if cut is None else min(cut, start)
    return cuts[::-1]


def supersede(lineages: Sequence[Integers], starts: Sequence[int | None]) -> list[Flags]:
    """Marks the records that still count, as bool (records,) for each lineage: False = superseded.

    Lineages are their increasing steps (records,), in order. `starts` are their first steps where
    these are known from elsewhere, for example from the description when the first block of a
    variable is unreadable.
    """
    firsts = [_first_step(*lineage) for lineage in zip(lineages, starts, strict=True)]
    return [
        np.ones(len(steps), bool) if cut is None else steps < cut
        for steps, cut in zip(lineages, first_steps_after(firsts), strict=True)
    ]


def _first_step(steps: Integers, start: int | None) -> int | None:
    candidates = (*steps[:1].tolist(), start)
    return min((step for step in candidates if step is not None), default=None)
