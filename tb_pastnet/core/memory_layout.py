"""How arrays are laid out and cut for the kernels, and how their results are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import plain_kernels
from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    VALUE_ROWS,
    channel_statistics,
)

LONGEST_PERIOD = 4096
"""At most this many sums are kept side by side; beyond that, each row is summed by itself."""

LONG_ROW = 8
"""Rows of so many elements, each a channel's, are summed one by one, not side by side."""

WIDTH = 128
"""Shorter periods are repeated up to about here: a loop over a few places is slow."""

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]
Cut = tuple[slice, slice]

_LARGEST = np.finfo(np.float32).max
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


@dataclass(frozen=True)
class _Sizes:
    """Variables as an array (members, outer, channels, inner).

    `measure` gives one cut of it to a kernel of `core.plain_kernels`, replaces that part of `past`
    if asked to, and returns float64 (VALUE_ROWS, members, channels).
    """

    members: int
    outer: int
    channels: int
    inner: int


class Interleaved(_Sizes):
    """The channels come in turn: 0, 1, …, 0, 1, …, each with the few elements behind it."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array that is cut and passed to the kernel."""
        return self.members, self.outer * self._period

    @property
    def _period(self) -> int:
        return self.channels * self.inner

    @property
    def _width(self) -> int:
        return self._period * min(self.outer, max(1, WIDTH // self._period))

    def cuts(self, parts: int) -> list[Cut]:
        """Cuts that array in at most so many parts. Variables stay together: they are small."""
        size, width = self.shape[1], self._width
        parts = 1 if self.members > 1 else parts
        step = width * max(1, -(-size // (parts * width)))
        return [(slice(None), slice(start, start + step)) for start in range(0, size, step)]

    def measure(self, current: Values, past: Values, cut: Cut, *, replace: bool) -> Rows:
        """See `_Sizes`."""
        out = np.empty((VALUE_ROWS, self.members, self.channels))
        plain_kernels.columns(current[cut], past[cut], self._width, self.inner, out, replace)
        return out


class Contiguous(_Sizes):
    """Each channel has so many elements behind it that they are summed row by row."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array that is cut and passed to the kernel."""
        return self.members * self.outer * self.channels, self.inner

    def cuts(self, parts: int) -> list[Cut]:
        """Cuts that array in at most so many parts."""
        rows = self.shape[0]
        step = -(-rows // parts)
        return [(slice(start, start + step), slice(None)) for start in range(0, rows, step)]

    def measure(self, current: Values, past: Values, cut: Cut, *, replace: bool) -> Rows:
        """See `_Sizes`."""
        out = np.zeros((VALUE_ROWS, self.members, self.channels))
        plain_kernels.rows(current[cut], past[cut], cut[0].start, self.outer, out, replace)
        return out


MemoryLayout = Interleaved | Contiguous


def layout_of(axis: ChannelAxis, members: int) -> MemoryLayout | None:
    """The layout of this many variables of one axis.

    None if the channels are numbered by axes that aren't next to each other in this order, or if
    there is nothing to measure.
    """
    first = axis.axes[0] if axis.axes else 0
    last = first + len(axis.axes)
    if axis.axes != tuple(range(first, last)) or not prod(axis.view):
        return None
    sizes = (members, prod(axis.view[:first]), axis.channels, prod(axis.view[last:]))
    short = sizes[2] * sizes[3] <= LONGEST_PERIOD or sizes[3] == 1
    short = short and not (sizes[1] == 1 and sizes[3] >= LONG_ROW)
    return Interleaved(*sizes) if short else Contiguous(*sizes)


def statistics_of(
    current: npt.NDArray[Any], past: npt.NDArray[Any], axis: ChannelAxis
) -> npt.NDArray[np.floating]:
    """The first `VALUE_ROWS` of `channel_statistics`, of float32 by a kernel."""
    layout = layout_of(axis, 1)
    if layout is None or current.dtype != np.float32 or past.dtype != np.float32:
        return channel_statistics(current, past, axis)[:VALUE_ROWS]
    arrays = [np.ascontiguousarray(each).reshape(layout.shape) for each in (current, past)]
    rows = [layout.measure(arrays[0], arrays[1], cut, replace=False) for cut in layout.cuts(1)]
    return finished(united(rows).reshape(VALUE_ROWS, -1), np.repeat(axis.elements, axis.channels))


def united(parts: Sequence[Rows]) -> Rows:
    """Combines the results of the parts of an array, at least one."""
    total = parts[0]
    for part in parts[1:]:
        largest = np.maximum(total[DELTA_MAX], part[DELTA_MAX])
        total = total + part
        total[DELTA_MAX] = largest
    return total


def finished(sums: Rows, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
    """Makes statistics of sums over so many elements each, (VALUE_ROWS, channels); spoils them.

    They are float32, unless the norm of the largest values doesn't fit.
    """
    norms = sums[: DELTA_NORM + 1]
    np.sqrt(norms, out=norms)
    sums[CHANGED] /= elements
    if not (norms <= _LARGEST).all():
        return sums
    result = sums.astype(np.float32)
    # A share is 1 only where it is exactly that.
    np.minimum(result[CHANGED], _BELOW_ONE, out=result[CHANGED], where=sums[CHANGED] < 1)
    return result
