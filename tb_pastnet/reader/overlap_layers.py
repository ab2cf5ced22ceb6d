"""How far the masks of two runs overlap, layer by layer over their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap, pooling
from tb_pastnet.format.description import Variable
from tb_pastnet.reader import container, notes
from tb_pastnet.reader.container import SCHEMA
from tb_pastnet.reader.overlap_question import LAYERS, ORIGIN, Question, related
from tb_pastnet.reader.overlap_sets import (
    UNKNOWN,
    Sets,
    both,
    count_of,
    distinct,
    in_force,
    likeness,
)
from tb_pastnet.reader.runs import Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def make_overlap_layers(
    question: Question, run: Run, other: Run, most: int, step: int | None = None
) -> tuple[bytes, bool]:
    """Compares two runs, in columns that are drawn or exactly at a step.

    Args:
        question: what is compared.
        run: the one run.
        other: the other one.
        most: columns at most, over the steps of both.
        step: then there is one column: of each run its newest record at or before the step.

    Returns:
        The container, and whether TensorBoard handed out all that it is made of.
    """
    pair = (run, other)
    said = run.notes + other.notes
    records = [question.steps(one, said) for one in pair]
    firsts, lasts, places = _places(records, most, step)
    steps = [np.append(one, -1)[here] for one, here in zip(records, places, strict=True)]
    matched, unmatched = _matched(question, pair, steps)
    reason = ORIGIN if not related(run, other) else None if matched else LAYERS
    numbers = np.full((3, len(matched), len(lasts)), np.nan)
    read = question.each(pair, steps, [dict(enumerate(two)) for two in matched.values()], said)
    for row, sets in enumerate(read):
        numbers[:, row] = _count(sets[0], sets[1], reason is None)
    elements = [count_of(one, question.unit) for one, _ in matched.values()]
    kept, other_kept, shared = numbers
    expected = overlap.expected_both(kept, other_kept, np.array(elements, np.float64)[:, None])
    expected[np.isnan(shared)] = np.nan
    header = {
        "schema": SCHEMA,
        "run": run.name,
        "other": other.name,
        "unit": question.unit,
        "mask": question.mask,
        "comparable": reason is None,
        "reason": reason,
        "at": None if step is None else [int(one[0]) if one[0] >= 0 else None for one in steps],
        "layers": list(matched),
        "elements": elements,
        "unmatched": unmatched,
        "notes": notes.listed(said),
    }
    sections: dict[str, npt.NDArray[Any]] = {
        "first_steps": firsts.astype(np.float64),
        "steps": lasts.astype(np.float64),
        "overlap": overlap.overlap(shared, kept, other_kept),
        "chance": overlap.overlap(expected, kept, other_kept),
        "kept": kept,
        "other_kept": other_kept,
        "both": shared,
    }
    return container.pack(header, sections), notes.WITHHELD not in said


def _places(
    records: Sequence[Integers], most: int, step: int | None
) -> tuple[Integers, Integers, list[Integers]]:
    """The first and the last step of each column, and of each run its record there, -1 for none."""
    if step is not None:
        at = np.array([step], np.int64)
        return at, at, [np.searchsorted(one, at, side="right") - 1 for one in records]
    firsts, lasts = _columns(np.union1d(*records), most)
    return firsts, lasts, [in_force(one, firsts, lasts) for one in records]


def _columns(steps: Integers, most: int) -> tuple[Integers, Integers]:
    """The first and the last step of each column."""
    starts = pooling.columns(steps, most)
    ends = np.append(starts[1:], len(steps))[: len(starts)] - 1
    return steps[starts], steps[ends]


def _matched(
    question: Question, pair: Sequence[Run], steps: Sequence[Integers]
) -> tuple[dict[str, tuple[Variable, Variable]], list[str]]:
    """The layers that both runs have, in the order of the first one, and all others."""
    matched: dict[str, tuple[Variable, Variable]] = {}
    rest = []
    layers = question.layers(pair, steps)
    counted = question.counted(pair, list(layers.values()))
    for (id_, layer), counts in zip(layers.items(), counted, strict=True):
        if not counts.any():
            continue
        if len(layer) == len(pair) and not likeness(list(layer.values()), question.unit).any():
            matched[id_] = layer[0], layer[1]
        else:
            rest.append(id_)
    return matched, rest


def _count(one: Sets, other: Sets, comparable: bool) -> Floats:
    """float64 (3, columns), elements in the set of the one, of the other and of both."""
    kinds, which = distinct(np.stack([one.which, other.which]))
    numbers = np.full((3, kinds.shape[1]), np.nan)
    # In the order of steps: the bits of each mask are decoded once.
    for at, (a, b) in enumerate(kinds.T.tolist()):
        if a != UNKNOWN:
            numbers[0, at] = one.size(a)
        if b != UNKNOWN:
            numbers[1, at] = other.size(b)
        if comparable and UNKNOWN not in (a, b):
            numbers[2, at] = both(one, a, other, b)
    found: Floats = numbers[:, which]
    return found
