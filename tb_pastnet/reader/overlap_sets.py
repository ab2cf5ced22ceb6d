"""Sets of weights or of channels, as overlaps ask for them: which set stands when, and its bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.format.description import Variable
from tb_pastnet.reader.runs import Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WEIGHTS, CHANNELS = UNITS = ("weights", "channels")

UNKNOWN = -1
"""The position of a set that isn't known: `numpy.searchsorted` tells it, less one."""


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets that one variable of one run has at some steps.

    Attributes:
        which: int64 (columns,), the position of the set at each step, `UNKNOWN` where it isn't
            known.
        sizes: float64 (sets,), how many elements are in each; NaN where only its bits tell.
        bits: gives the bits of a set; None where they can't be read.
        elements: how many there could be.
    """

    which: Integers
    sizes: Floats
    bits: Callable[[int], Words | None]
    elements: int

    def size(self, at: int) -> float:
        """How many elements are in a set, NaN where that isn't known."""
        known = float(self.sizes[at])
        if not math.isnan(known):
            return known
        bits = self.bits(at)
        return math.nan if bits is None else float(overlap.count(bits))

    def plain(self, at: int) -> bool:
        """Whether a set is empty or holds everything: its bits needn't be read."""
        return self.sizes[at] in (0, self.elements)

    def without(self, columns: npt.NDArray[np.bool_]) -> Sets:
        """The same with nothing known in some columns."""
        if not columns.any():
            return self
        return replace(self, which=np.where(columns, UNKNOWN, self.which))


def both(one: Sets, at: int, other: Sets, of: int) -> float:
    """How many elements two sets share, NaN where that isn't known."""
    if one.plain(at):
        return other.size(of) if one.sizes[at] else 0.0
    if other.plain(of):
        return one.size(at) if other.sizes[of] else 0.0
    bits, more = one.bits(at), other.bits(of)
    if bits is None or more is None or bits.shape != more.shape:
        return math.nan
    return float(overlap.count(bits & more))


def drawn(run: Run, layer: str | None = None) -> dict[str, Variable]:
    """The variables that the layers of a run are drawn by, by layer.

    One that two layers share stands for the first of them.

    Args:
        run: the run.
        layer: the id of the only layer to look for.
    """
    if layer is not None:
        return {one.id: run.variables[one.main] for one in run.layers if one.id == layer}
    firsts: dict[str, str] = {}
    for one in run.layers:
        firsts.setdefault(one.main, one.id)
    return {id_: run.variables[main] for main, id_ in firsts.items()}


def count_of(variable: Variable, unit: str) -> int:
    """How many weights or channels a variable has."""
    return variable.channels if unit == CHANNELS else math.prod(variable.shape)


def likeness(variables: Sequence[Variable], unit: str) -> Integers:
    """Numbers that are equal where the elements of variables stand for each other, by position.

    Args:
        variables: of one layer in several runs.
        unit: "weights": those of one shape; "channels": along the same axis, too.
    """
    kinds: dict[object, int] = {}
    keys = (
        one.shape if unit == WEIGHTS else (one.shape, one.axis, one.channels) for one in variables
    )
    return np.array([kinds.setdefault(key, len(kinds)) for key in keys], np.int64)


def in_force(steps: Integers, firsts: Integers, lasts: Integers) -> Integers:
    """The record that stands in each column.

    Args:
        steps: int64 (records,), increasing.
        firsts: int64 (columns,), the first step of each column.
        lasts: int64 (columns,), the last one.

    Returns:
        int64 (columns,): the position of the last record in it or before it; -1 before the first
        record, and where the last one has ended, which is as long as the gap before it.

    Example:
        >>> ends = np.array([0, 10, 25, 29, 30])
        >>> in_force(np.array([10, 20]), ends, ends).tolist()
        [-1, 0, 1, 1, -1]
    """
    at = np.searchsorted(steps, lasts, side="right") - 1
    if len(steps):
        gap = max(int(steps[-1] - steps[-2]), 1) if len(steps) > 1 else 1
        at[firsts >= steps[-1] + gap] = -1
    return at


def distinct(columns: Integers) -> tuple[Integers, Integers]:
    """The columns that differ, in the order in which they first come.

    Args:
        columns: int64 (rows, columns).

    Returns:
        int64 (rows, kinds), and the kind of each column, int64 (columns,).

    Example:
        >>> distinct(np.array([[7, 5, 7], [1, 1, 1]]))[1].tolist()
        [0, 1, 0]
    """
    if columns.shape[1] == 1:
        return columns, np.zeros(1, np.int64)
    new = np.ones(columns.shape[1], bool)
    new[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    starts = columns[:, new].T.tolist()
    kinds: dict[tuple[int, ...], int] = {}
    which = np.array([kinds.setdefault(tuple(one), len(kinds)) for one in starts], np.int64)
    found = np.array(list(kinds), np.int64).reshape(-1, len(columns)).T
    return found, np.repeat(which, np.diff(np.append(np.flatnonzero(new), len(new))))
