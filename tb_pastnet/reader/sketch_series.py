"""The sketches of one run, and how far its layers travelled by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tb_pastnet.core.lineage import supersede
from tb_pastnet.core.sketch import BUCKETS
from tb_pastnet.core.travel import Distance, distances, together
from tb_pastnet.format.budget import SKETCH_VALUES
from tb_pastnet.format.sketches import Sketches, decode_sketches
from tb_pastnet.format.tags import TAG_SKETCHES
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import NO_FLOATS, NO_INTEGERS, Floats, Integers
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all, once
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class SketchSeries:
    """The sketches that count, oldest first."""

    variables: tuple[str, ...]  # ids of those that have any
    steps: Integers  # (sketches,), increasing
    # (sketches,): two are comparable if they have the same number here, 0 with those of other runs:
    # others are differences from first sketches that are lost
    frames: Integers
    values: Floats  # (sketches, variables, 64); NaN where unknown
    grid: Floats  # (sketches, variables), the distance of neighbours on the grid of each
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self.values.nbytes + self.grid.nbytes + 2 * self.steps.nbytes

    def of(self, variables: Sequence[str]) -> SketchSeries:
        """The sketches of some variables, in this order; NaN for those without any."""
        places = {name: place for place, name in enumerate(self.variables)}
        rows = np.array([places.get(name, _UNKNOWN) for name in variables], np.int64)
        sketched = rows != _UNKNOWN
        # Only theirs are copied: each layer of a run may be asked for by itself.
        values = np.full((len(self.steps), len(rows), BUCKETS), np.nan)
        values[:, sketched] = self.values[:, rows[sketched]]
        grid = np.zeros(values.shape[:2])
        grid[:, sketched] = self.grid[:, rows[sketched]]
        return replace(self, variables=tuple(variables), values=values, grid=grid)


class Travel(NamedTuple):
    """How far weights were from their first ones, at the steps that have a sketch.

    A sketch of NaN or infinity counts as none.

    Attributes:
        steps: int64 (sketches,), increasing.
        distances: float64 (sketches,), estimated Euclidean distances from the first sketch.
        errors: float64 (sketches,): in 19 of 20 cases the distance is at most so far from the
            estimate.
    """

    steps: Integers
    distances: Floats
    errors: Floats


def make_sketches(
    lineages: Sequence[LineageHead], readings: Mapping[SeriesName, Sequence[StoredMessage]]
) -> SketchSeries:
    """Decodes and joins the sketches of a run's lineages, in their order."""
    lost: Notes = Counter()
    parts = [
        _joined(lineage, number + 1, readings.get((lineage.tb_run, TAG_SKETCHES), ()), lost)
        for number, lineage in enumerate(lineages)
    ]
    stand = supersede([part.steps for part in parts], [lineage.start for lineage in lineages])
    names = tuple(dict.fromkeys(name for part in parts for name in part.variables))
    kept = [(part.of(names), np.flatnonzero(keep)) for part, keep in zip(parts, stand, strict=True)]
    steps, frames, values, grid = (
        np.concatenate([none, *(getattr(part, name)[rows] for part, rows in kept)])
        for name, none in (
            ("steps", NO_INTEGERS),
            ("frames", NO_INTEGERS),
            ("values", np.zeros((0, len(names), BUCKETS))),
            ("grid", np.zeros((0, len(names)))),
        )
    )
    order = np.argsort(steps, kind="stable")
    return SketchSeries(names, steps[order], frames[order], values[order], grid[order], lost)


def _joined(
    lineage: LineageHead, number: int, messages: Sequence[StoredMessage], lost: Notes
) -> SketchSeries:
    """The sketches of one lineage; differences are added to the first ones, if these are known."""
    described = lineage.description.variables if lineage.description else ()
    parts = [
        part for part in _decoded(lineage, messages, lost) if part.variables[-1] < len(described)
    ]
    if not parts:
        return SketchSeries(
            (), NO_INTEGERS, NO_INTEGERS, np.zeros((0, 0, BUCKETS)), np.zeros((0, 0))
        )
    numbers = parts[-1].variables
    # A recorder's are all of the same variables.
    parts = [part for part in parts if part.variables == numbers]
    first = next((part.values[0] for part in parts if part.whole), None)
    base = np.zeros_like(parts[0].values[0]) if first is None else np.nan_to_num(first)
    values = [part.values if part.whole else part.values + base for part in parts]
    rows = once(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("sequence", "steps"))
    )
    steps = np.concatenate([part.steps for part in parts])[rows]
    return SketchSeries(
        tuple(described[each].id for each in numbers),
        steps,
        np.full(len(steps), 0 if first is not None else number, np.int64),
        np.concatenate(values)[rows],
        np.concatenate([part.grid for part in parts])[rows],
    )


def _decoded(
    lineage: LineageHead, messages: Sequence[StoredMessage], lost: Notes
) -> list[Sketches]:
    """Each message within the budget."""
    parts: list[Sketches] = []
    work = stored = 0
    for message in messages:
        if work > SKETCH_VALUES.most(stored):
            lost[notes.IN_PART] += 1
            continue
        stored += len(message.data or b"")
        number = lineage.name.lineage
        for part in decode_all([message], decode_sketches, TAG_SKETCHES, number, lost):
            work += part.values.size
            parts.append(part)
    return parts


def travel(series: SketchSeries) -> Travel:
    """How far all variables of a series together were from the first of its sketches."""
    known = np.isfinite(series.values).all(axis=(1, 2))
    if not known.any():
        return Travel(NO_INTEGERS, NO_FLOATS, NO_FLOATS)
    known &= series.frames == series.frames[known][0]
    values, grid = series.values[known], series.grid[known]
    found = together(*distances(values - values[0], grid + grid[0]))
    return Travel(series.steps[known], *found)


def between(first: SketchSeries, step: int, second: SketchSeries, other_step: int) -> Distance:
    """The distance of all variables together at a step of one series from that at one of another.

    Taken are the last sketches up to these steps; NaN if there are none, or if these aren't
    comparable.
    """
    rows = [
        int(np.searchsorted(series.steps, at, side="right")) - 1
        for series, at in ((first, step), (second, other_step))
    ]
    unknown = Distance(np.nan, np.nan)
    if min(rows) < 0:
        return unknown
    frames = first.frames[rows[0]], second.frames[rows[1]]
    if frames[0] != frames[1] or (frames[0] and first is not second):
        return unknown
    apart = first.values[rows[0]] - second.values[rows[1]]
    value, error = together(*distances(apart, first.grid[rows[0]] + second.grid[rows[1]]))
    return Distance(float(value), float(error))
