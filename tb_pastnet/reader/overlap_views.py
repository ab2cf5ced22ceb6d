"""How far the masks of runs overlap: each two of many at a step, or two over their steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tb_pastnet.core import overlap, thinning
from tb_pastnet.core.overlap import Words
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.comparison import MaskComparison
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import (
    UNKNOWN,
    Sets,
    count_of,
    distinct,
    intersection,
    likeness,
    records_in_force,
)
from tb_pastnet.reader.sections import Sections

_ORIGIN, _LAYERS, _NO_RECORD, _UNREADABLE = "origin", "layers", "no record", "unknown"
"""Why two runs can't be compared."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What each two runs share of the layers that both have, added up."""

    common: Floats  # (runs, runs), elements in the sets of both, NaN where unknown
    own: Floats  # (runs, runs), those in the set of the run of the row, of the same layers
    expected: Floats  # (runs, runs), elements in both by chance
    layers: Integers  # (runs, runs), how many layers both have
    unmatched: Integers  # (runs, runs), layers that only one has, or of another shape
    kept: Floats  # (runs,), elements in the set of each run, of all its layers
    elements: Floats  # (runs,), how many each run has
    notes: Notes  # what could not be read, and why

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return 5 * self.common.nbytes


def overlap_view(comparison: MaskComparison, step: int | None) -> tuple[dict[str, Any], Notes]:
    """Compares each two of some runs at a step; None: at the last record of each."""
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
    if not comparison.related[a, b]:
        reason = _ORIGIN
    elif not shared.layers[a, b]:
        reason = _LAYERS
    elif None in (steps[a], steps[b]):
        reason = _NO_RECORD
    elif math.isnan(shared_count + first + second):
        reason = _UNREADABLE
    comparable = reason is None
    by_chance = overlap.overlap(shared.expected[a, b], first, second)
    return {
        "a": a,
        "b": b,
        "comparable": comparable,
        "reason": reason,
        "overlap": float(overlap.overlap(shared_count, first, second)) if comparable else None,
        "chance": float(by_chance) if comparable else None,
        "intersection": int(shared_count) if comparable else None,
        "union": int(first + second - shared_count) if comparable else None,
        "layers": int(shared.layers[a, b]),
        "unmatched": int(shared.unmatched[a, b]),
    }


def _kept_shared(comparison: MaskComparison, steps: Sequence[int | None]) -> Shared:
    """What is shared: counted once for all steps between two changes of masks."""
    moments = tuple(comparison.moment(number, step) for number, step in enumerate(steps))
    names = tuple(run.name for run in comparison.runs)
    reader = comparison.readers[0]
    asked = (reader.context.experiment, comparison.unit, comparison.mask, comparison.layer)
    key = ("overlaps", names, asked, moments)
    return reader.store.large.get(key, (), lambda: _share(comparison, steps))


def _share(comparison: MaskComparison, steps: Sequence[int | None]) -> Shared:
    count = len(steps)
    common, own, expected = np.zeros((3, count, count))
    matched, unmatched = np.zeros((2, count, count), np.int64)
    kept, elements = np.zeros((2, count))
    lost = Notes()
    columns = [np.array([-1 if step is None else step]) for step in steps]
    layers = list(comparison.layers(columns).values())
    meet = comparison.meet(columns)
    every = comparison.each(columns, layers, lost)
    for layer, counts, sets in zip(layers, comparison.counted(layers), every, strict=True):
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
        expected[pairs] += overlap.expected_both(sizes[:, None], sizes, widths[:, None])[pairs]
    return Shared(common, own, expected, matched, unmatched, kept, elements, lost)


def _intersections(sizes: Floats, sets: Mapping[int, Sets], meet: Flags) -> Floats:
    """float64 (runs, runs), elements in the sets of both, right where two runs are compared."""
    # Right where one of the sets is empty or holds everything.
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
    """Compares two runs layer by layer, in columns that are drawn or exactly at a step."""
    run, second = comparison.runs
    lost = run.notes + second.notes
    records = [comparison.steps(number, lost) for number in (0, 1)]
    firsts, lasts, rows = _columns(records, most, step)
    steps = [np.append(own, -1)[row] for own, row in zip(records, rows, strict=True)]
    matched, unmatched = _matched(comparison, steps)
    reason = _ORIGIN if not comparison.related[0, 1] else None if matched else _LAYERS
    elements = [count_of(variable, comparison.unit) for variable, _ in matched.values()]
    kept, other_kept, shared = _counts(comparison, steps, matched.values(), lost, reason is None)
    expected = overlap.expected_both(kept, other_kept, np.array(elements, np.float64)[:, None])
    expected[np.isnan(shared)] = np.nan
    records_at = None if step is None else [int(own[0]) if own[0] >= 0 else None for own in steps]
    header = {
        "run": run.name,
        "other": second.name,
        "unit": comparison.unit,
        "mask": comparison.mask,
        "comparable": reason is None,
        "reason": reason,
        "at": records_at,
        "layers": list(matched),
        "elements": elements,
        "unmatched": unmatched,
        "notes": notes.listed(lost),
    }
    arrays = {
        "first_steps": firsts.astype(np.float64),
        "steps": lasts.astype(np.float64),
        "overlap": overlap.overlap(shared, kept, other_kept),
        "chance": overlap.overlap(expected, kept, other_kept),
        "kept": kept,
        "other_kept": other_kept,
        "both": shared,
    }
    return header, arrays, lost


def _counts(
    comparison: MaskComparison,
    steps: Sequence[Integers],
    pairs: Collection[tuple[VariableEntry, VariableEntry]],
    lost: Notes,
    comparable: bool,
) -> Floats:
    """What both runs keep of each pair, and in common, float64 (3, pairs, steps)."""
    numbers = np.full((3, len(pairs), len(steps[0])), np.nan)
    layers = [dict(enumerate(pair)) for pair in pairs]
    for row, sets in enumerate(comparison.each(steps, layers, lost)):
        numbers[:, row] = _count(sets[0], sets[1], comparable)
    return numbers


def _columns(
    records: Sequence[Integers], most: int, step: int | None
) -> tuple[Integers, Integers, list[Integers]]:
    """The first and the last step of each column, and of each run its record there, -1 for none."""
    if step is not None:
        steps = np.array([step], np.int64)
        return steps, steps, [np.searchsorted(own, steps, side="right") - 1 for own in records]
    steps = np.union1d(*records)
    starts = thinning.columns(steps, most)
    ends = np.append(starts[1:], len(steps))[: len(starts)] - 1
    firsts, lasts = steps[starts], steps[ends]
    return firsts, lasts, [records_in_force(own, firsts, lasts) for own in records]


def _matched(
    comparison: MaskComparison, steps: Sequence[Integers]
) -> tuple[dict[str, tuple[VariableEntry, VariableEntry]], list[str]]:
    """The layers that both runs have, in the order of the first one, and all others."""
    matched: dict[str, tuple[VariableEntry, VariableEntry]] = {}
    rest = []
    layers = comparison.layers(steps)
    counted = comparison.counted(list(layers.values()))
    for (id_, layer), counts in zip(layers.items(), counted, strict=True):
        if not counts.any():
            continue
        alike = not likeness(list(layer.values()), comparison.unit).any()
        if len(layer) == len(comparison.readers) and alike:
            matched[id_] = layer[0], layer[1]
        else:
            rest.append(id_)
    return matched, rest


def _count(first: Sets, second: Sets, comparable: bool) -> Floats:
    """float64 (3, columns), elements in the set of the one, of the other and of both."""
    kinds, columns_of = distinct(np.stack([first.positions, second.positions]))
    numbers = np.full((3, kinds.shape[1]), np.nan)
    # In the order of steps: the bits of each mask are decoded once.
    for column, (a, b) in enumerate(kinds.T.tolist()):
        numbers[:2, column] = first.size(a), second.size(b)
        if comparable:
            numbers[2, column] = intersection(first, a, second, b)
    result: Floats = numbers[:, columns_of]
    return result
