"""How far the masks of runs overlap: all pairs at a step, or two runs over their steps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from tb_pastnet.core import overlap, thinning
from tb_pastnet.core.overlap import Words
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import (
    CHANNELS,
    UNKNOWN,
    WEIGHTS,
    Layers,
    Sets,
    distinct,
    drawn,
    each_weights,
    intersection,
    likeness,
    moment,
    names_in,
    read_channel_sets,
    records_in_force,
)
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.state_series import KERNEL
from tb_pastnet.reader.store import RunReader

_ORIGIN, _LAYERS, _NO_RECORD, _UNREADABLE = "origin", "layers", "no record", "unknown"
"""Why two runs can't be compared."""


@dataclass(frozen=True, eq=False)
class MaskComparison:
    """Runs whose masks are compared."""

    readers: Sequence[RunReader]  # of the runs, all of one store and one request
    unit: str  # "weights" or "channels"
    mask: str  # "kept" or "trainable"
    layer: str | None = None  # the id of one layer, None for all of them

    @property
    def runs(self) -> list[CatalogRun]:
        """The runs."""
        return [reader.run for reader in self.readers]

    def steps(self, number: int, lost: Notes) -> Integers:
        """The steps of a run's records, as the overview has them."""
        reader, run = self.readers[number], self.readers[number].run
        damaged = any(head.damaged or head.start is None for head in run.lineages)
        if not damaged or not run.layers:
            return run.axis.steps
        # A part of the timeline is lost: the first layer may have more.
        first = reader.state_series(run.layers[0].main)
        lost.update(first.notes)
        return np.union1d(run.axis.steps, first.steps)

    def record_at(self, number: int, step: int | None, lost: Notes) -> int | None:
        """The step of a run's newest record at or before a step, of the last one by default."""
        steps = self.steps(number, lost)
        if step is None:
            return int(steps[-1]) if len(steps) else None
        row = int(np.searchsorted(steps, step, side="right")) - 1
        return int(steps[row]) if row >= 0 else None

    def moment(self, number: int, step: int | None) -> Hashable:
        """A key that is equal for records of a run with the same sets, as far as is known."""
        reader = self.readers[number]
        if step is None or (self.unit, self.mask) != (WEIGHTS, "kept"):
            return reader.run.version, step
        return moment(reader.masks, step)

    @cached_property
    def related(self) -> Flags:
        """Which runs' weights and channels correspond, bool (runs, runs)."""
        origins = [run.origin for run in self.runs]
        return np.array([[a != "" and a == b for b in origins] for a in origins])

    def meet(self, steps: Sequence[Integers]) -> Flags:
        """Which runs are compared with each other: those that both have records there."""
        present = np.array([bool((own >= 0).any()) for own in steps])
        met: Flags = self.related & present & present[:, None]
        np.fill_diagonal(met, False)
        return met

    def layers(self, steps: Sequence[Integers]) -> dict[str, dict[int, VariableEntry]]:
        """The main variables of each layer, by the position of the runs.

        A variable that a resumed run no longer has is left out. The steps are int64 (columns,) for
        each run: of records, -1 for none.
        """
        layers: dict[str, dict[int, VariableEntry]] = {}
        for number, run in enumerate(self.runs):
            for id_, variable in drawn(run, self.layer).items():
                absent = self._absent(number, variable, steps[number])[steps[number] >= 0]
                if not len(absent) or not absent.all():
                    layers.setdefault(id_, {})[number] = variable
        return layers

    def each(
        self, steps: Sequence[Integers], layers: Layers, lost: Notes
    ) -> Iterator[Mapping[int, Sets]]:
        """The sets of each layer."""
        if self.unit == WEIGHTS:
            alone = np.logical_not(self.meet(steps).any(axis=1))
            every = each_weights(self.readers, steps, self.mask, layers, lost, alone)
        else:
            every = self._each_channels(steps, layers, lost)
        for layer, by_run in zip(layers, every, strict=True):
            yield {
                number: sets.without(self._absent(number, layer[number], steps[number]))
                for number, sets in by_run.items()
            }

    def _each_channels(
        self, steps: Sequence[Integers], layers: Layers, lost: Notes
    ) -> Iterator[Mapping[int, Sets]]:
        by_run = [
            read_channel_sets(reader, names_in(layers, number), lost)
            for number, reader in enumerate(self.readers)
        ]
        for layer in layers:
            yield {
                number: by_run[number][variable.id].sets(self.mask, steps[number])
                for number, variable in layer.items()
            }

    def _absent(self, number: int, variable: VariableEntry, steps: Integers) -> Flags:
        """Whether the network at each step lacks a variable that another lineage had."""
        lineages = self.readers[number].run.lineages
        absent = np.zeros(len(steps), bool)
        if len(lineages) > 1:
            standing = self.readers[number].masks.standing(steps)
            for position, head in enumerate(lineages):
                if head.description is not None and variable.id not in head.described:
                    absent |= standing == position
        return absent

    def note_axes(self, layers: Layers, lost: Notes) -> None:
        """Notes layers whose channels are along different axes, as the fingerprints of origins."""
        shared = [[*layer.values()] for layer in layers]
        other = sum(
            likeness(own, CHANNELS).any() and not likeness(own, WEIGHTS).any() for own in shared
        )
        if other:
            lost[notes.OTHER_AXES] += int(other)

    def counted(self, layer: Mapping[int, VariableEntry]) -> Flags:
        """In which runs a layer counts, bool (runs,): its weights if they could ever be pruned."""
        flags = np.zeros(len(self.readers), bool)
        for number, variable in layer.items():
            counts = self.unit != WEIGHTS or variable.role == KERNEL
            flags[number] = counts or self.readers[number].masks.pruned_once(variable.id)
        return flags


@dataclass(frozen=True, eq=False)
class Shared:
    """What each pair of runs shares in the layers that both have, added up."""

    common: Floats  # (runs, runs), elements in the sets of both, NaN where unknown
    own: Floats  # (runs, runs), those in the set of the row's run, in the same layers
    chance: Floats  # (runs, runs), the overlap by chance
    layers: Integers  # (runs, runs), how many layers both have
    unmatched: Integers  # (runs, runs), layers that only one has, or of another shape
    kept: Floats  # (runs,), elements in the set of each run, of all its layers
    elements: Floats  # (runs,), how many each run has
    notes: Notes  # what could not be read, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return 5 * self.common.nbytes


def overlap_view(comparison: MaskComparison, step: int | None) -> tuple[dict[str, Any], Notes]:
    """Compares all pairs of some runs at a step; None: at the last record of each."""
    runs = comparison.runs
    lost = sum((run.notes for run in runs), Notes())
    steps = [comparison.record_at(number, step, lost) for number in range(len(runs))]
    shared = _kept_shared(comparison, steps)
    lost += shared.notes
    pairs = combinations(range(len(runs)), 2)
    return {
        "step": step,
        "unit": comparison.unit,
        "mask": comparison.mask,
        "layer": comparison.layer,
        "runs": [_run(shared, comparison, number, steps[number]) for number in range(len(runs))],
        "pairs": [_pair(shared, comparison, steps, *pair) for pair in pairs],
        "notes": notes.listed(lost),
    }, lost


def _run(
    shared: Shared, comparison: MaskComparison, number: int, step: int | None
) -> dict[str, Any]:
    unknown = step is None or math.isnan(shared.kept[number])
    run = comparison.readers[number].run
    return {
        "name": run.name,
        "step": step,
        "origin": run.origin,
        "kept": None if unknown else int(shared.kept[number]),
        "elements": int(shared.elements[number]),
    }


def _pair(
    shared: Shared, comparison: MaskComparison, steps: Sequence[int | None], a: int, b: int
) -> dict[str, Any]:
    shared_count, first, second = shared.common[a, b], shared.own[a, b], shared.own[b, a]
    reason = None
    if any(comparison.runs[number].problem for number in (a, b)):
        reason = _UNREADABLE
    elif not comparison.related[a, b]:
        reason = _ORIGIN
    elif not shared.layers[a, b]:
        reason = _LAYERS
    elif None in (steps[a], steps[b]):
        reason = _NO_RECORD
    elif math.isnan(shared_count + first + second):
        reason = _UNREADABLE
    comparable = reason is None
    return {
        "a": a,
        "b": b,
        "comparable": comparable,
        "reason": reason,
        "overlap": float(overlap.overlap(shared_count, first, second)) if comparable else None,
        "chance": float(shared.chance[a, b]) if comparable else None,
        "intersection": int(shared_count) if comparable else None,
        "union": int(first + second - shared_count) if comparable else None,
        "layers": int(shared.layers[a, b]),
        "unmatched": int(shared.unmatched[a, b]),
    }


def _kept_shared(comparison: MaskComparison, steps: Sequence[int | None]) -> Shared:
    """The shared elements, counted once for all steps between two changes of masks."""
    moments = tuple(comparison.moment(number, step) for number, step in enumerate(steps))
    names = tuple(run.name for run in comparison.runs)
    reader = comparison.readers[0]
    asked = (reader.context.experiment, comparison.unit, comparison.mask, comparison.layer)
    key = ("overlaps", names, asked, moments)
    return reader.store.large.get(key, (), lambda: _share(comparison, steps))


def _share(comparison: MaskComparison, steps: Sequence[int | None]) -> Shared:
    count = len(steps)
    common, own = np.zeros((2, count, count))
    chance = overlap.ByChance((count, count))
    matched, unmatched = np.zeros((2, count, count), np.int64)
    kept, elements = np.zeros((2, count))
    lost = Notes()
    columns = [np.array([-1 if step is None else step]) for step in steps]
    layers = list(comparison.layers(columns).values())
    comparison.note_axes(layers, lost)
    meet = comparison.meet(columns)
    every = comparison.each(columns, layers, lost)
    for layer, sets in zip(layers, every, strict=True):
        counts = comparison.counted(layer)
        alike, sizes, widths = np.full(count, -1), np.full(count, np.nan), np.zeros(count)
        alike[list(layer)] = likeness(list(layer.values()), comparison.unit)
        for number, of_run in sets.items():
            sizes[number], widths[number] = of_run.size(int(of_run.positions[0])), of_run.elements
        any_counts = counts[:, None] | counts
        pairs = any_counts & (alike[:, None] == alike) & (alike >= 0)
        kept[counts] += sizes[counts]
        elements[counts] += widths[counts]
        matched[pairs] += 1
        unmatched[any_counts & ~pairs] += 1
        common[pairs] += _intersections(sizes, sets, meet & pairs)[pairs]
        own[pairs] += np.broadcast_to(sizes[:, None], pairs.shape)[pairs]
        chance.add(sizes[:, None], sizes, widths[:, None], pairs)
    return Shared(common, own, chance.overlap(), matched, unmatched, kept, elements, lost)


def _intersections(sizes: Floats, sets: Mapping[int, Sets], meet: Flags) -> Floats:
    """float64 (runs, runs), elements in the sets of both, valid for runs that are compared."""
    # Exact if one of the sets is empty or holds everything.
    counts = np.minimum(sizes[:, None], sizes)
    bits = {
        number: own.bits(position)
        for number, own in sets.items()
        if (position := int(own.positions[0])) != UNKNOWN
        and not own.plain(position)
        and meet[number].any()
    }
    for lost in [number for number, words in bits.items() if words is None]:
        counts[np.ix_([lost], list(bits))] = counts[np.ix_(list(bits), [lost])] = np.nan
    by_length: dict[int, dict[int, Words]] = {}
    for number, words in bits.items():
        if words is not None:
            by_length.setdefault(len(words), {})[number] = words
    for alike in by_length.values():
        numbers = list(alike)
        counts[np.ix_(numbers, numbers)] = overlap.count_pairs(np.stack(list(alike.values())))
    return counts


def overlap_layers_view(comparison: MaskComparison, most: int, step: int | None = None) -> Sections:
    """Compares two runs layer by layer, in columns to draw, or exactly at a step."""
    run, second = comparison.runs
    lost = run.notes + second.notes
    records = [comparison.steps(number, lost) for number in (0, 1)]
    firsts, lasts, rows = _columns(records, most, step)
    steps = [np.append(own, -1)[row] for own, row in zip(records, rows, strict=True)]
    matched, unmatched = _matched(comparison, steps)
    comparison.note_axes([*comparison.layers(steps).values()], lost)
    reason = _why_not(comparison, matched)
    kept, other_kept, shared = np.full((3, len(matched), len(firsts)), np.nan)
    elements = []
    for row, pair in enumerate(comparison.each(steps, list(matched.values()), lost)):
        elements.append(pair[0].elements)
        kept[row], other_kept[row], shared[row] = _count(pair[0], pair[1], reason is None)
    chance = overlap.by_chance(kept, other_kept, np.array(elements, np.float64)[:, None])
    chance[np.isnan(shared)] = np.nan
    header = {
        "run": run.name,
        "other": second.name,
        "unit": comparison.unit,
        "mask": comparison.mask,
        "comparable": reason is None,
        "reason": reason,
        "at": None if step is None else _records_at(steps),
        "layers": list(matched),
        "elements": elements,
        "unmatched": unmatched,
        "notes": notes.listed(lost),
    }
    arrays = {
        "first_steps": firsts.astype(np.float64),
        "steps": lasts.astype(np.float64),
        "overlap": overlap.overlap(shared, kept, other_kept),
        "chance": chance,
        "kept": kept,
        "other_kept": other_kept,
        "both": shared,
    }
    return header, arrays, lost


def _why_not(comparison: MaskComparison, matched: Mapping[str, Any]) -> str | None:
    """Why two runs can't be compared; None if they can."""
    if any(run.problem for run in comparison.runs):
        return _UNREADABLE
    if not comparison.related[0, 1]:
        return _ORIGIN
    return None if matched else _LAYERS


def _records_at(steps: Sequence[Integers]) -> list[int | None]:
    """The step of each run's record in the only column, None where it has none."""
    return [int(own[0]) if own[0] >= 0 else None for own in steps]


def _columns(
    records: Sequence[Integers], most: int, step: int | None
) -> tuple[Integers, Integers, list[Integers]]:
    """The first and the last step of each column, and each run's record there, -1 for none."""
    if step is not None:
        steps = np.array([step], np.int64)
        return steps, steps, [np.searchsorted(own, steps, side="right") - 1 for own in records]
    steps = np.union1d(*records)
    starts = thinning.columns(steps, most)
    ends = thinning.last_records(starts, len(steps))
    firsts, lasts = steps[starts], steps[ends]
    return firsts, lasts, [records_in_force(own, firsts, lasts) for own in records]


def _matched(
    comparison: MaskComparison, steps: Sequence[Integers]
) -> tuple[dict[str, Mapping[int, VariableEntry]], list[str]]:
    """The layers that both runs have, in the order of the first one, and all others."""
    matched: dict[str, Mapping[int, VariableEntry]] = {}
    rest = []
    for id_, layer in comparison.layers(steps).items():
        if not comparison.counted(layer).any():
            continue
        alike = not likeness(list(layer.values()), comparison.unit).any()
        if len(layer) == len(comparison.readers) and alike:
            matched[id_] = layer
        else:
            rest.append(id_)
    return matched, rest


def _count(first: Sets, second: Sets, comparable: bool) -> Floats:
    """float64 (3, columns), elements in the first set, in the second and in both."""
    kinds, columns_of = distinct(np.stack([first.positions, second.positions]))
    numbers = np.full((3, kinds.shape[1]), np.nan)
    # In the order of steps: the bits of each mask are decoded once.
    for column, (a, b) in enumerate(kinds.T.tolist()):
        numbers[:2, column] = first.size(a), second.size(b)
        if comparable:
            numbers[2, column] = intersection(first, a, second, b)
    result: Floats = numbers[:, columns_of]
    return result
