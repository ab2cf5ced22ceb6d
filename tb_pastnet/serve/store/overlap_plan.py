"""Which masks make the sets of weights of a variable, before the bits of any of them are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.description import Variable
from tb_pastnet.core.names import MASKS, mask_tag
from tb_pastnet.serve.store.held import Held
from tb_pastnet.serve.store.lineages import Lineage
from tb_pastnet.serve.store.overlap_sets import UNKNOWN, distinct

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STILL = -2


@dataclass(frozen=True)
class Change:
    """One mask after one change, and where its bits are.

    Attributes:
        lineage: who wrote it.
        tag: the series that holds its bits.
        number: which of the lineage's changes it is.
        position: the place in its series where it is, if nothing of that is lost.
        through: elements that it lets through.
    """

    lineage: Lineage
    tag: str
    number: int
    position: int
    through: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The sets of one variable of one run before their bits are read.

    Attributes:
        which: as in `Sets`.
        sizes: likewise.
        masks: of each set those masks that don't let all through.
        elements: of the variable.
        cost: bytes of the series that hold the bits, at most, by TensorBoard's run and tag.
    """

    which: Integers
    sizes: Floats
    masks: tuple[tuple[Change, ...], ...]
    elements: int
    cost: Mapping[tuple[str, str], int]


def plan(
    held: Held, variable: Variable, mask: str, steps: Integers, still: Flags | None = None
) -> Plan:
    """Tells which masks make the sets of one variable.

    Args:
        held: what its run tells of its masks.
        variable: the variable.
        mask: "kept": weights that aren't pruned; "trainable": those that an update may change.
        steps: int64 (columns,), of records, -1 for none.
        still: bool (columns,), where `trainable=False` holds all of it.
    """
    elements = math.prod(variable.shape)
    chosen = MASKS[:1] if mask == "kept" else MASKS
    standing = held.standing(steps)
    # A row a mask, then one for the lineage: equal columns have equal sets.
    table = np.zeros((len(chosen) + 1, len(steps)), np.int64)
    unknown = (steps < 0) | (standing < 0)
    for row, name in enumerate(chosen):
        table[row], lost = _changes(held, variable.id, name, elements, steps, standing)
        unknown |= lost
    table[-1] = np.where((table[:-1] >= 0).any(axis=0), standing, -1)
    if still is not None:
        table[:, still] = _STILL
        unknown &= ~still | (steps < 0)
    which = np.full(len(steps), UNKNOWN)
    known, which[~unknown] = distinct(table[:, ~unknown])
    masks = [_masks(held, variable.id, chosen, column) for column in known.T.tolist()]
    sizes = [
        0.0 if column[0] == _STILL else _size(found, elements)
        for column, found in zip(known.T.tolist(), masks, strict=True)
    ]
    return Plan(which, np.array(sizes, np.float64), tuple(masks), elements,
                _cost(held, variable.id, masks, elements))  # fmt: skip


def _changes(
    held: Held, variable: str, mask: str, elements: int, steps: Integers, standing: Integers
) -> tuple[Integers, Flags]:
    """The position of the change in force at each step, -1 where all is through; what is lost."""
    found = np.full(len(steps), -1)
    holes = held.count(variable, mask, elements, steps)
    for at, log in enumerate(held.logs):
        here = (standing == at) & (holes > 0)
        if log is not None and here.any():
            found[here] = log.of(variable, mask).in_force(steps[here])
    return found, np.isnan(holes)


def _masks(
    held: Held, variable: str, chosen: Sequence[str], column: Sequence[int]
) -> tuple[Change, ...]:
    *positions, at = column
    found = []
    for mask, position in zip(chosen, positions, strict=True):
        log = held.logs[at] if position >= 0 else None
        if log is not None:
            changes = log.of(variable, mask)
            number, through = int(changes.numbers[position]), int(changes.through[position])
            tag = mask_tag(mask, variable)
            found.append(Change(held.lineages[at], tag, number, position, through))
    return tuple(found)


def _size(masks: Sequence[Change], elements: int) -> float:
    """The size of a set as far as the log tells it: not that of what two masks let through."""
    if len(masks) > 1 and all(one.through for one in masks):
        return math.nan
    return float(min((one.through for one in masks), default=elements))


def _cost(
    held: Held, variable: str, masks: Sequence[Sequence[Change]], elements: int
) -> dict[tuple[str, str], int]:
    """The series that hold what isn't empty, and how large they are at most."""
    found: dict[tuple[str, str], int] = {}
    for one in chain.from_iterable(masks):
        if one.through:
            log = held.logs[held.lineages.index(one.lineage)]
            mask, _, _ = one.tag.partition("/")
            events = 0 if log is None else len(log.of(variable, mask).steps)
            found[one.lineage.tb_run, one.tag] = events * (elements // 8 + 1)
    return found
