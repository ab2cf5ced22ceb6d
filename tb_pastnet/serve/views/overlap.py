"""How far the masks of each two of many runs overlap at a step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.description import Variable
from tb_pastnet.core.overlap import Words
from tb_pastnet.serve.http.failures import SCHEMA
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.notes import Notes
from tb_pastnet.serve.store.overlap_sets import Sets, fit
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.views.overlap_read import Question, origin, prunable

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ORIGIN, LAYERS, NO_RECORD, UNKNOWN = "origin", "layers", "no record", "unknown"


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
        elements: how many each run has.
    """

    both: Floats
    one: Floats
    expected: Floats
    layers: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    kept: Floats
    elements: list[int]


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
    found = _share(question, runs, steps, said)
    body = {
        "schema": SCHEMA,
        "step": step,
        "unit": question.unit,
        "mask": question.mask,
        "layer": question.layer,
        "runs": [
            {
                "name": run.name,
                "step": at,
                "origin": origin(run),
                "kept": None if at is None or math.isnan(kept) else int(kept),
                "elements": elements,
            }
            for run, at, kept, elements in zip(runs, steps, found.kept, found.elements, strict=True)
        ],
        "pairs": [
            _pair(found, runs, steps, a, b)
            for a in range(len(runs))
            for b in range(a + 1, len(runs))
        ],
        "notes": notes.listed(said),
    }
    return body, notes.WITHHELD not in said


def _pair(
    found: Shared, runs: Sequence[Run], steps: Sequence[int | None], a: int, b: int
) -> dict[str, Any]:
    both, one, other = (float(x) for x in (found.both[a, b], found.one[a, b], found.one[b, a]))
    reason = reason_of(runs[a], runs[b], int(found.layers[a, b]))
    if reason is None and None in (steps[a], steps[b]):
        reason = NO_RECORD
    if reason is None and math.isnan(both + one + other):
        reason = UNKNOWN
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


def reason_of(one: Run, other: Run, layers: int) -> str | None:
    """Why the channels of two runs don't stand for each other, None where they do."""
    if not origin(one) or origin(one) != origin(other):
        return ORIGIN
    return None if layers else LAYERS


def _share(
    question: Question, runs: Sequence[Run], steps: Sequence[int | None], said: Notes
) -> Shared:
    count = len(runs)
    shape = (count, count)
    found = Shared(
        np.zeros(shape), np.zeros(shape), np.zeros(shape),
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(count), [0] * count,
    )  # fmt: skip
    layers = question.layers(runs)
    columns = [np.array([-1 if step is None else step]) for step in steps]
    counted = prunable(question, runs, layers)
    for layer, counts, sets in zip(
        layers, counted, question.each(runs, columns, layers, said), strict=True
    ):
        _add(found, layer, counts, sets, question)
    return found


def _add(
    found: Shared,
    layer: Mapping[int, Variable],
    counts: Flags,
    sets: Mapping[int, Sets],
    question: Question,
) -> None:
    """Adds one layer."""
    runs = list(layer)
    sizes = np.full(len(counts), np.nan)
    elements = np.zeros(len(counts))
    for at, one in sets.items():
        elements[at] = one.elements
        which = int(one.which[0])
        sizes[at] = math.nan if which < 0 else one.size(which)
        if counts[at]:
            found.kept[at] += sizes[at]
            found.elements[at] += one.elements
    matched = np.zeros((len(counts), len(counts)), bool)
    for a in runs:
        for b in runs:
            matched[a, b] = (counts[a] or counts[b]) and fit(layer[a], layer[b], question.unit)
    here = np.isin(np.arange(len(counts)), runs)
    counts = counts & here
    found.layers[:] += matched
    found.others[:] += (counts[:, None] | counts) & ~matched
    both = np.where(matched, _both(sizes, sets), 0)
    found.both[:] += both
    found.one[:] += np.where(matched, sizes[:, None], 0)
    expected = overlap.expected_both(sizes[:, None], sizes, elements[:, None])
    found.expected[:] += np.where(matched, expected, 0)


def _both(sizes: Floats, sets: Mapping[int, Sets]) -> Floats:
    """float64 (runs, runs), elements in the sets of both."""
    # Right where one of the sets is empty or holds everything.
    both = np.minimum(sizes[:, None], sizes)
    bits = {
        at: one.bits(int(one.which[0]))
        for at, one in sets.items()
        if one.which[0] >= 0 and not one.plain(int(one.which[0]))
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
