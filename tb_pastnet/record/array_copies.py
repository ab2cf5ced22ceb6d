"""Past copies as arrays: of weights in the memory of this machine.

`NetworkCopies` measures all weights in one compiled call; without numba, `ArrayCopies` does it in
NumPy. Each weight is read once, together with its past value, which is replaced in the same pass:
12 bytes per float32, at about memory speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from types import ModuleType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis, stacked
from tb_pastnet.core.fingerprint import Prints, fingerprints, tables
from tb_pastnet.core.float_words import WORDS, OtherValues, Words, values_of
from tb_pastnet.core.memory_layout import (
    Cut,
    MemoryLayout,
    Rows,
    Values,
    finished,
    layout_of,
    united,
)
from tb_pastnet.core.parallel import processors, start_helpers, together
from tb_pastnet.core.pieces import PIECE, PiecePlan
from tb_pastnet.core.sketch import BUCKETS
from tb_pastnet.core.sketch import tables as tables_of_sketches
from tb_pastnet.core.statistics import VALUE_ROWS

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]
Result = TypeVar("Result")

_SIGNED = {2: np.int16, 4: np.int32}
"""Words as `core.fingerprint` takes them, by their bytes."""


class ArrayCopies:
    """Past values of some arrays, and their comparison with the current ones.

    `axes` describe, for each array from `read`, how its members split into channels, and how many
    of them follow one another in it. `read` returns views of the current values, C-contiguous
    float32, which are released at once. Raises ValueError if `layout_of` has no layout.

    Attributes:
        prints: the fingerprints of all channels, as `compare` found them.
    """

    prints: Prints

    def __init__(
        self, axes: Sequence[tuple[ChannelAxis, int]], read: Callable[[], Sequence[Values]]
    ) -> None:
        self._axes = [axis for axis, _ in axes]
        self._stacks = [stacked(axis, members) for axis, members in axes]
        # Of each channel of all.
        self._elements = np.repeat(
            [axis.elements for axis in self._axes],
            [axis.channels * members for axis, members in axes],
        )
        layouts = [layout_of(axis, members) for axis, members in axes]
        self._layouts = [layout for layout in layouts if layout is not None]
        if len(self._layouts) < len(layouts):
            raise ValueError("expected channels that are side by side, got others")
        self._read = read
        # The largest first: threads then end at about the same time.
        self._cuts = sorted(
            (
                (number, part)
                for number, layout in enumerate(self._layouts)
                for part in layout.cuts(_parts(layout))
            ),
            key=lambda cut: -_size(self._layouts[cut[0]], cut[1]),
        )
        self._large = len(self._cuts) > len(self._axes)
        if self._large:
            start_helpers()
        self._past = [value.copy() for value in self._values()]

    def take(self) -> None:
        """Makes the current values the past ones."""
        values = self._values()
        self._each(lambda number, part: np.copyto(self._past[number][part], values[number][part]))

    def compare(self, *, replace: bool) -> Floats:
        """Compares the current values with the past ones, and may replace the past ones by them.

        Returns (6, channels of all): the rows of `core.statistics.STATISTICS` that depend only on
        values.
        """
        values = self._values()

        def measure(number: int, part: Cut) -> Rows:
            arrays = values[number], self._past[number]
            return self._layouts[number].measure(*arrays, part, replace=replace)

        parts: list[list[Rows]] = [[] for _ in self._axes]
        for (number, _), rows in zip(self._cuts, self._each(measure), strict=True):
            parts[number].append(rows)
        self.prints = np.concatenate(
            [
                fingerprints(value.reshape(axis.view), axis, fast=False)
                for axis, value in zip(self._stacks, values, strict=True)
            ]
        )
        sums = np.concatenate([united(own).reshape(VALUE_ROWS, -1) for own in parts], axis=1)
        return finished(sums, self._elements)

    @property
    def nbytes(self) -> int:
        """Bytes of the past values."""
        return sum(value.nbytes for value in self._past)

    def past(self) -> list[Values]:
        """The past values: an array for each member of each array."""
        return [
            value.reshape(axis.shape).copy()
            for axis, past in zip(self._axes, self._past, strict=True)
            for value in past.reshape(-1, axis.channels * axis.elements)
        ]

    def _values(self) -> list[Values]:
        pairs = zip(self._read(), self._layouts, strict=True)
        return [value.reshape(layout.shape) for value, layout in pairs]

    def _each(self, action: Callable[[int, Cut], Result]) -> list[Result]:
        actions = [partial(action, *cut) for cut in self._cuts]
        return together(actions) if self._large else [action() for action in actions]


class NetworkCopies:
    """Past values of some weights, and their comparison with the current ones, in one call.

    Several threads share what is large. `axes` describe how each weight splits into channels;
    `layout_of` must have a layout for it. `locate` returns, for a dtype of `core.float_words`, the
    address of each weight, C-contiguous words of it in the memory of this process, and what keeps
    them valid. Past values take as much memory as the weights, as long as these are of `dtype`:
    if one isn't any more, they become float32. `kernel` is `core.network_kernel`.

    Attributes:
        prints: the fingerprints of all channels, as `compare` found them.
        weights: how many there are.
    """

    prints: Prints

    def __init__(
        self,
        axes: Sequence[ChannelAxis],
        locate: Callable[[str], tuple[Sequence[int], object]],
        kernel: ModuleType,
        dtype: str = "float32",
    ) -> None:
        self._axes = axes
        self.weights = len(axes)
        self._locate = locate
        self._kernel = kernel
        self._dtype = dtype
        self._plan = PiecePlan(axes, processors())
        if len(self._plan.groups) > 1:
            start_helpers()
        sizes = [axis.channels * axis.elements for axis in axes]
        self._ends = np.cumsum(sizes)
        self._shape = VALUE_ROWS, sum(axis.channels for axis in axes)
        self._past: Words = np.empty(self._ends[-1], WORDS[dtype])
        self._tables = tables(self._plan.positions)
        self._prints = np.zeros(self._plan.prints, np.int64)
        # Compiles what is missing, without a look at any weight.
        self._measure(np.zeros(0, np.int64), self._plan.groups[0][:0], np.empty(self._shape))
        self.take()

    def take(self) -> None:
        """Makes the current values the past ones."""
        self._pass(np.empty((VALUE_ROWS, 0)), measures=False, replaces=True)

    def compare(self, *, replace: bool) -> Floats:
        """See `ArrayCopies`."""
        rows = np.empty(self._shape)
        self._prints = np.zeros(self._plan.prints, np.int64)
        fits = self._pass(rows, measures=True, replaces=replace)
        self.prints = self._plan.joined(self._prints)
        return rows.astype(np.float32) if fits else rows

    def sketches(self, members: Sequence[int]) -> npt.NDArray[np.float64]:
        """The sketches of some current weights, by number, (weights, 64): see `core.sketch`."""
        table, out = tables_of_sketches(), np.empty((len(members), BUCKETS))
        addresses, kept = self._located()
        sizes = np.array([prod(self._axes[member].shape) for member in members], np.int64)
        places = np.array([addresses[member] for member in members], np.int64)
        self._kernel.sketches(places, sizes, self._past, *table[:3], out)
        del kept
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of the past values."""
        return self._past.nbytes

    def past(self) -> list[Values]:
        """The past values: an array for each weight."""
        parts = np.split(values_of(self._past), self._ends[:-1])
        return [
            part.reshape(axis.shape).copy() for part, axis in zip(parts, self._axes, strict=True)
        ]

    def _pass(self, rows: Floats, *, measures: bool, replaces: bool) -> bool:
        """Passes all weights once; returns whether all norms fit into float32."""
        addresses, kept = self._located()
        places = np.array(addresses, np.int64)
        groups, last = self._plan.groups, self._plan.last
        if len(groups) == 1:
            fits = self._measure(places, groups[0], rows, measures, replaces)
        else:
            fits = all(
                together(
                    [
                        partial(self._measure, places, group, rows, measures, replaces)
                        for group in groups
                    ]
                )
            )
            if measures and len(last):
                fits = self._measure(places, last, rows, measures, replaces) and fits
        del kept
        return fits

    def _located(self) -> tuple[Sequence[int], object]:
        try:
            return self._locate(self._dtype)
        except OtherValues:
            self._past, self._dtype = values_of(self._past), "float32"
            return self._locate(self._dtype)

    def _measure(
        self,
        places: Integers,
        pieces: Integers,
        rows: Floats,
        measures: bool = True,
        replaces: bool = True,
    ) -> bool:
        words = self._past.view(_SIGNED[self._past.itemsize])
        sums = self._plan.squares, self._plan.counts, *self._tables, self._prints
        network = self._kernel.network
        return bool(network(places, pieces, self._past, words, *sums, rows, measures, replaces))


def _parts(layout: MemoryLayout) -> int:
    rows, columns = layout.shape
    return max(1, min(processors(), rows * columns // PIECE))


def _size(layout: MemoryLayout, cut: Cut) -> int:
    lengths = zip(cut, layout.shape, strict=True)
    return prod(len(range(*part.indices(length))) for part, length in lengths)
