"""Past copies as arrays: of float32 weights in the memory of this machine.

`NetworkCopies` measures all weights in one call. `ArrayCopies` cuts large ones, for several
threads, and measures without numba, too. Each weight is read once, together with its past value,
which is replaced in the same pass: 12 bytes per weight, at about memory speed.
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
from tb_pastnet.core.statistics import DELTA_MAX, VALUE_ROWS, channel_statistics

PIECE = 1 << 18
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


class NetworkCopies:
    """Past values of some weights, and their comparison with the current ones, in one call.

    `axes` describe how each splits into channels; `layout_of` must have a layout for it. `locate`
    returns the address of each, of C-contiguous float32 in the memory of this process, and what
    keeps them valid. `kernel` is `core.network_kernel`.
    """

    def __init__(
        self,
        axes: Sequence[ChannelAxis],
        locate: Callable[[], tuple[Sequence[int], object]],
        kernel: ModuleType,
    ) -> None:
        self._axes = axes
        self._locate = locate
        self._kernel = kernel
        layouts = [layout_of(axis, 1) for axis in axes]
        sizes = [axis.channels * axis.elements for axis in axes]
        channels = [axis.channels for axis in axes]
        self._begins, self._firsts = np.cumsum([0, *sizes]), np.cumsum([0, *channels])
        places = zip(self._begins.tolist(), self._firsts.tolist(), layouts, strict=False)
        rows = [(*place, *layout.sizes) for *place, layout in places if layout]
        self._sizes = np.array(rows, np.int64)
        self._past: Values = np.empty(self._begins[-1], np.float32)
        self.take()

    def take(self) -> None:
        """Makes the current values the past ones."""
        addresses, kept = self._locate()
        self._kernel.copy_network(np.array(addresses, np.int64), self._sizes, self._past)
        del kept

    def compare(self, *, replace: bool) -> Floats:
        """See `ArrayCopies`."""
        addresses, kept = self._locate()
        rows = np.empty((VALUE_ROWS, self._firsts[-1]), np.float32)
        places = np.array(addresses, np.int64)
        if self._kernel.network(places, self._sizes, self._past, rows, replace):
            return self._unfitting(rows, places, replace=replace)
        del kept
        return rows

    def _unfitting(self, rows: Floats, places: npt.NDArray[np.int64], *, replace: bool) -> Floats:
        """With the weights of which a norm doesn't fit into float32, by the definition."""
        rows = rows.astype(np.float64)
        for number, axis in enumerate(self._axes):
            own = slice(*self._firsts[number : number + 2])
            if np.isinf(rows[:DELTA_MAX, own]).any():
                past = self._past[slice(*self._begins[number : number + 2])]
                values = np.empty_like(past)
                # From its address, which may be in memory that is to be released at once.
                size = np.array([[0, *self._sizes[number, 1:]]], np.int64)
                self._kernel.copy_network(places[number : number + 1], size, values)
                both = values.reshape(axis.shape), past.reshape(axis.shape)
                rows[:, own] = channel_statistics(*both, axis)[:VALUE_ROWS]
                if replace:
                    past[:] = values
        return rows

    def past(self) -> list[Values]:
        """The past values: an array for each weight."""
        parts = np.split(self._past, self._begins[1:-1])
        return [
            part.reshape(axis.shape).copy() for part, axis in zip(parts, self._axes, strict=True)
        ]


def _parts(layout: MemoryLayout) -> int:
    rows, columns = layout.shape
    return max(1, min(processors(), rows * columns // PIECE))


def _size(layout: MemoryLayout, cut: Cut) -> int:
    lengths = zip(cut, layout.shape, strict=True)
    return prod(len(range(*part.indices(length))) for part, length in lengths)
