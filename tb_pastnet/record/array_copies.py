"""Past copies as arrays: of float32 weights in the memory of this machine.

Each weight is read once, together with its past value, which is replaced in the same pass: 12 bytes
per weight, at about memory speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from types import ModuleType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
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
from tb_pastnet.core.statistics import VALUE_ROWS

_PIECE = 1 << 18
"""The number of elements that is worth another thread."""

Floats = npt.NDArray[np.floating]
Result = TypeVar("Result")


class ArrayCopies:
    """Past values of some arrays, and their comparison with the current ones.

    `axes` describe, for each array from `read`, how its members split into channels, and how many
    of them follow one another in it. `read` returns views of the current values, C-contiguous
    float32, which are released at once. `kernels` compares them: `core.kernels`, or
    `core.plain_kernels`. Raises ValueError if `layout_of` has no layout.
    """

    def __init__(
        self,
        axes: Sequence[tuple[ChannelAxis, int]],
        read: Callable[[], Sequence[Values]],
        kernels: ModuleType,
    ) -> None:
        self._axes = [axis for axis, _ in axes]
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
        self._kernels = kernels
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
            return self._layouts[number].measure(self._kernels, *arrays, part, replace=replace)

        parts: list[list[Rows]] = [[] for _ in self._axes]
        for (number, _), rows in zip(self._cuts, self._each(measure), strict=True):
            parts[number].append(rows)
        sums = np.concatenate([united(own).reshape(VALUE_ROWS, -1) for own in parts], axis=1)
        return finished(sums, self._elements)

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


def _parts(layout: MemoryLayout) -> int:
    rows, columns = layout.shape
    return max(1, min(processors(), rows * columns // _PIECE))


def _size(layout: MemoryLayout, cut: Cut) -> int:
    lengths = zip(cut, layout.shape, strict=True)
    return prod(len(range(*part.indices(length))) for part, length in lengths)
