"""How far the masks of each two of many runs overlap at a step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.reader import notes
from tb_pastnet.reader.container import SCHEMA
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_question import LAYERS, ORIGIN, Question, origin, related
from tb_pastnet.reader.overlap_sets import UNKNOWN, Sets, likeness
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.store import UNKEPT

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_NO_RECORD, _UNKNOWN = "no record", "unknown"


@dataclass(frozen=True, eq=False)
class Shared:
    """What each two runs share of the layers that both have, added up.

    Attributes:
        both: float64 (runs, runs), elements in the sets of both, NaN where unknown.
        one: float64 (runs, runs), those in the set of the run of the row, of the same layers.
        expected: float64 (runs, runs), elements in both by chance.
        layers: int64 (runs, runs), how many layers both have.
        others: int64 (runs, runs), layers that only one has, or of another shape.
        kept: float64 (runs,), elements in the set of each run, of all its layers.
        elements: float64 (runs,), how many each run has.
        notes: what could not be read, and why.
    """

    both: Floats
    one: Floats
    expected: Floats
    layers: Integers
    others: Integers
    kept: Floats
    elements: Floats
    notes: Notes


def make_overlap(question: Question, runs: Sequence[Run], step: int | None) -> tuple[Any, bool]:
    """Compares each two of some runs.

    Args:
        question: what is compared.
        runs: from the catalog.
        step: where; None: at the last record of each.

    Returns:
        The answer as JSON values, and whether TensorBoard handed out all that it is made of.
    """
    said = sum((run.notes for run in runs), Notes())
    steps = [question.record_at(run, step, said) for run in runs]
    found = _kept(question, runs, steps)
    said += found.notes
    body = {
        "schema": SCHEMA,
        "step": step,
        "unit": question.unit,
        "mask": question.mask,
        "layer": question.layer,
        "runs": [_run(found, at, run, steps[at]) for at, run in enumerate(runs)],
        "pairs": [_pair(found, runs, steps, *pair) for pair in combinations(range(len(runs)), 2)],
        "notes": notes.listed(said),
    }
    return body, notes.WITHHELD not in said


def _run(found: Shared, at: int, run: Run, step: int | None) -> dict[str, Any]:
    unknown = step is None or math.isnan(found.kept[at])
    return {
        "name": run.name,
        "step": step,
        "origin": origin(run),
        "kept": None if unknown else int(found.kept[at]),
        "elements": int(found.elements[at]),
    }


def _pair(
    found: Shared, runs: Sequence[Run], steps: Sequence[int | None], a: int, b: int
) -> dict[str, Any]:
    both, one, other = found.both[a, b], found.one[a, b], found.one[b, a]
    reason = None
    if not related(runs[a], runs[b]):
        reason = ORIGIN
    elif not found.layers[a, b]:
        reason = LAYERS
    elif None in (steps[a], steps[b]):
        reason = _NO_RECORD
    elif math.isnan(both + one + other):
        reason = _UNKNOWN
    known = reason is None
    by_chance = overlap.overlap(found.expected[a, b], one, other)
    return {
        "a": a,
        "b": b,
        "comparable": known,
        "reason": reason,
        "overlap": float(overlap.overlap(both, one, other)) if known else None,
        "chance": float(by_chance) if known else None,
        "intersection": int(both) if known else None,
        "union": int(one + other - both) if known else None,
        "layers": int(found.layers[a, b]),
        "unmatched": int(found.others[a, b]),
    }


def _kept(question: Question, runs: Sequence[Run], steps: Sequence[int | None]) -> Shared:
    """What is shared: counted once for all steps between two changes of masks."""
    moments = tuple(map(question.moment, runs, steps))
    names = tuple(run.name for run in runs)
    what = (question.caller.experiment, question.unit, question.mask, question.layer)

    def make() -> tuple[Shared, int]:
        found = _share(question, runs, steps)
        size = 5 * found.both.nbytes
        return found, UNKEPT if notes.WITHHELD in found.notes else size

    return question.store.kept(("overlaps", names, what, moments), (), make)


def _share(question: Question, runs: Sequence[Run], steps: Sequence[int | None]) -> Shared:
    count = len(runs)
    both, one, expected = np.zeros((3, count, count))
    matched, others = np.zeros((2, count, count), np.int64)
    kept, elements = np.zeros((2, count))
    found = Shared(both, one, expected, matched, others, kept, elements, Notes())
    columns = [np.array([-1 if step is None else step]) for step in steps]
    layers = list(question.layers(runs, columns).values())
    counted = question.counted(runs, layers)
    meet = question.meet(runs, [step is not None for step in steps])
    read = question.each(runs, columns, layers, found.notes)
    for layer, counts, sets in zip(layers, counted, read, strict=True):
        alike = np.full(count, -1)
        alike[list(layer)] = likeness(list(layer.values()), question.unit)
        _add(found, alike, (counts, meet), sets)
    return found


def _add(
    found: Shared, alike: Integers, which: tuple[Flags, Flags], sets: Mapping[int, Sets]
) -> None:
    """Adds one layer.

    Args:
        found: gets it.
        alike: int64 (runs,), equal where runs have it with one shape, -1 where they don't have it.
        which: bool (runs,), where it counts, and bool (runs, runs), what is compared.
        sets: of the runs that have it, a column each.
    """
    counts, meet = which
    sizes, elements = np.full(len(alike), np.nan), np.zeros(len(alike))
    for at, one in sets.items():
        elements[at] = one.elements
        sizes[at] = math.nan if one.which[0] == UNKNOWN else one.size(int(one.which[0]))
    found.kept[counts] += sizes[counts]
    found.elements[counts] += elements[counts]
    either = counts[:, None] | counts
    matched = either & (alike[:, None] == alike) & (alike >= 0)
    found.layers[matched] += 1
    found.others[either & ~matched] += 1
    found.both[matched] += _both(sizes, sets, meet & matched)[matched]
    found.one[matched] += np.broadcast_to(sizes[:, None], matched.shape)[matched]
    expected = overlap.expected_both(sizes[:, None], sizes, elements[:, None])
    found.expected[matched] += expected[matched]


def _both(sizes: Floats, sets: Mapping[int, Sets], meet: Flags) -> Floats:
    """float64 (runs, runs), elements in the sets of both, right where two runs are compared."""
    # Right where one of the sets is empty or holds everything.
    both = np.minimum(sizes[:, None], sizes)
    bits = {
        at: one.bits(int(one.which[0]))
        for at, one in sets.items()
        if one.which[0] != UNKNOWN and not one.plain(int(one.which[0])) and meet[at].any()
    }
    for lost in [at for at, one in bits.items() if one is None]:
        both[np.ix_([lost], list(bits))] = both[np.ix_(list(bits), [lost])] = np.nan
    rows: dict[int, dict[int, Words]] = {}
    for at, one in bits.items():
        if one is not None:
            rows.setdefault(len(one), {})[at] = one
    for some in rows.values():
        both[np.ix_(list(some), list(some))] = overlap.count_pairs(np.stack(list(some.values())))
    return both
