"""Which masks make the sets of weights of a variable, before the bits of any of them are read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.names import (
    MASKS,
    TAG_DESCRIPTION,
    TAG_MASKS,
    TAG_VIOLATIONS,
    mask_of,
    mask_tag,
)
from tb_pastnet.format.description import Variable
from tb_pastnet.reader.lineages import Lineage
from tb_pastnet.reader.mask_changes import MaskLog
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.overlap_sets import UNKNOWN, distinct
from tb_pastnet.reader.runs import Run

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HEAD = (TAG_DESCRIPTION, TAG_MASKS, TAG_VIOLATIONS)

_ALL = -1
_STILL = -2
_LOST = -3


class Change(NamedTuple):
    """One mask after one change, and where its bits are.

    Attributes:
        lineage: who wrote it.
        tag: the series that holds its bits.
        number: which of the lineage's changes it is.
        position: the place in its series where it is, if nothing of that is lost.
        through: elements that it lets through.
        cost: bytes of its series, at most.
    """

    lineage: Lineage
    tag: str
    number: int
    position: int
    through: int
    cost: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The sets of one variable of one run before their bits are read.

    Attributes:
        which: as in `Sets`.
        sizes: likewise.
        masks: of each set those masks that don't let all through.
        elements: of the variable.
    """

    which: Integers
    sizes: Floats
    masks: tuple[tuple[Change, ...], ...]
    elements: int

    def cost(self, alone: bool) -> dict[tuple[str, str], int]:
        """The series to read, and how large they are at most.

        Args:
            alone: whether only the sizes matter.

        Returns:
            By TensorBoard's run and tag.
        """
        sizes = zip(self.masks, self.sizes.tolist(), strict=True)
        needed = (masks for masks, size in sizes if math.isnan(size) or (size and not alone))
        return {(one.lineage.tb_run, one.tag): one.cost for one in chain.from_iterable(needed)}


class Spans:
    """Steps of records, divided among the lineages of their run.

    Args:
        held: what the run tells of its masks.
        steps: int64 (columns,), of records, -1 for none.
    """

    def __init__(self, held: Held, steps: Integers) -> None:
        standing = held.standing(steps)
        self.steps = steps
        self.parts = [
            (at, held.lineages[at], log, here)
            for at, log in enumerate(held.logs)
            if log is not None and len(here := np.flatnonzero((standing == at) & (steps >= 0)))
        ]

    def plan(self, variable: Variable, mask: str, still: Flags | None = None) -> Plan:
        """Tells which masks make the sets of one variable.

        Args:
            variable: the variable.
            mask: "kept": weights that aren't pruned; "trainable": those that an update may change.
            still: bool (columns,), where `trainable=False` holds all of it.
        """
        elements = math.prod(variable.shape)
        chosen = MASKS[:1] if mask == "kept" else MASKS
        # A row a mask, then one for the lineage: equal columns have equal sets.
        table = np.full((len(chosen) + 1, len(self.steps)), _ALL)
        known = np.zeros(len(self.steps), bool)
        for at, _, log, here in self.parts:
            known[here] = True
            for row, name in enumerate(chosen):
                found = _in_force(log, (variable.id, name), elements, self.steps[here])
                table[row, here] = found
                known[here] &= found != _LOST
            table[-1, here] = at
        table[-1, (table[:-1] == _ALL).all(axis=0)] = _ALL
        if still is not None:
            table[:, still] = _STILL
            known |= still
        which = np.full(len(self.steps), UNKNOWN)
        kinds, which[known] = distinct(table[:, known])
        columns = kinds.T.tolist()
        masks = tuple(tuple(self._masks(variable, chosen, column, elements)) for column in columns)
        sizes = [
            0.0 if column[0] == _STILL else _size(some, elements)
            for column, some in zip(columns, masks, strict=True)
        ]
        return Plan(which, np.array(sizes, np.float64), masks, elements)

    def _masks(
        self, variable: Variable, chosen: Sequence[str], column: Sequence[int], elements: int
    ) -> Iterable[Change]:
        *positions, lineage = column
        for at, writer, log, _ in self.parts:
            for mask, position in zip(chosen, positions, strict=True):
                if at == lineage and position >= 0:
                    changes = log.of(variable.id, mask)
                    yield Change(
                        writer,
                        mask_tag(mask, variable.id),
                        int(changes.numbers[position]),
                        position,
                        int(changes.through[position]),
                        len(changes.steps) * (elements // 8 + 1),
                    )


def _in_force(
    log: MaskLog, which: tuple[str, str], elements: int, steps: Integers
) -> Integers | int:
    """The position of the change in force at each step."""
    if log.idle(*which):
        return _ALL
    changes = log.of(*which)
    at = changes.in_force(steps)
    if log.sure(*which, elements) and len(changes.steps):
        return np.where((at >= 0) & (changes.through[at] < elements), at, _ALL)
    holes = log.held(*which, elements, steps)
    return np.where(np.isnan(holes), _LOST, np.where(holes > 0, at, _ALL))


def _size(masks: Sequence[Change], elements: int) -> float:
    """The size of a set as far as the log tells it: not that of what two masks let through."""
    if len(masks) > 1 and all(one.through for one in masks):
        return math.nan
    return float(min((one.through for one in masks), default=elements))


def moment(held: Held, run: Run, step: int) -> Hashable:
    """The same for all steps of a run at which its masks are the same, as far as is known.

    Args:
        held: what the run tells of its masks.
        run: the run.
        step: of a record.
    """
    at = int(held.standing(np.array([step]))[0])
    log = held.logs[at] if at >= 0 else None
    told = () if log is None else (log.gaps_from, *(one.steps for one in log.changes.values()))
    before = sum(int(np.searchsorted(steps, step, side="right")) for steps in told)
    return at, before, tuple(map(_written, run.lineages))


def _written(lineage: Lineage) -> Hashable:
    """Changes when anything does that a lineage tells of its masks; small: a key of the cache."""
    stamps = (pair for pair in lineage.stamps.items() if pair[0] in _HEAD or mask_of(pair[0]))
    return lineage.tb_run, lineage.begin, hash(tuple(stamps))
