"""How arrays are laid out and cut for the kernels, and how what these give is put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import kernels
from tb_pastnet.core.axes import ChannelAxis

LONGEST_PERIOD = 4096
"""Sums for so many places at most are kept beside each other; beyond, each row is summed alone."""

WIDTH = 128
"""Shorter periods are repeated up to about here: a loop over a few places doesn't pay."""

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MemoryLayout(ABC):
    """Variables as an array (members, before, channels, after), of which `channels` are told apart.

    Attributes:
        members: how many variables.
        before: elements before the channels.
        channels: of each variable.
        after: elements behind them.
    """

    members: int
    before: int
    channels: int
    after: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """That of the array that is cut and given to the kernel."""

    @abstractmethod
    def cuts(self, parts: int) -> list[tuple[slice, slice]]:
        """Cuts that array.

        Args:
            parts: how many are wanted; there may be fewer.
        """

    @abstractmethod
    def measure(
        self, current: Values, past: Values, cut: tuple[slice, slice], *, replace: bool
    ) -> Rows:
        """Gives one part to the kernel.

        Args:
            current: the array.
            past: likewise.
            cut: which part.
            replace: whether that part of `past` becomes that of `current`.

        Returns:
            float64 (kernels.ROWS, members, channels), of this part.
        """


class Interleaved(MemoryLayout):
    """The channels come in turn: 0, 1, …, 0, 1, …, each with the few elements behind it."""

    @property
    def shape(self) -> tuple[int, int]:
        """See `MemoryLayout`."""
        return self.members, self.before * self._period

    @property
    def _period(self) -> int:
        return self.channels * self.after

    @property
    def _width(self) -> int:
        return self._period * min(self.before, max(1, WIDTH // self._period))

    def cuts(self, parts: int) -> list[tuple[slice, slice]]:
        """See `MemoryLayout`. Several variables stay together: they are small."""
        size, width = self.shape[1], self._width
        parts = 1 if self.members > 1 else parts
        step = width * max(1, -(-size // (parts * width)))
        return [(slice(None), slice(at, at + step)) for at in range(0, size, step)]

    def measure(
        self, current: Values, past: Values, cut: tuple[slice, slice], *, replace: bool
    ) -> Rows:
        """See `MemoryLayout`."""
        out = np.empty((kernels.ROWS, self.members, self.channels))
        kernels.columns(current[cut], past[cut], self._width, self.after, out, replace)
        return out


class Contiguous(MemoryLayout):
    """Each channel has so many elements behind it that they are summed alone, row by row."""

    @property
    def shape(self) -> tuple[int, int]:
        """See `MemoryLayout`."""
        return self.members * self.before * self.channels, self.after

    def cuts(self, parts: int) -> list[tuple[slice, slice]]:
        """See `MemoryLayout`."""
        rows = self.shape[0]
        step = -(-rows // parts)
        return [(slice(at, at + step), slice(None)) for at in range(0, rows, step)]

    def measure(
        self, current: Values, past: Values, cut: tuple[slice, slice], *, replace: bool
    ) -> Rows:
        """See `MemoryLayout`."""
        out = np.zeros((kernels.ROWS, self.members, self.channels))
        kernels.rows(current[cut], past[cut], cut[0].start, self.before, out, replace)
        return out


def layout_of(axis: ChannelAxis, members: int) -> MemoryLayout | None:
    """How variables are laid out.

    Args:
        axis: how each splits into channels.
        members: how many they are.

    Returns:
        None where the channels are numbered by axes that don't lie side by side in their order, or
        there is nothing to measure.
    """
    first = axis.axes[0] if axis.axes else 0
    last = first + len(axis.axes)
    if axis.axes != tuple(range(first, last)) or not prod(axis.view):
        return None
    sizes = (members, prod(axis.view[:first]), axis.channels, prod(axis.view[last:]))
    short = sizes[2] * sizes[3] <= LONGEST_PERIOD or sizes[3] == 1
    return (Interleaved if short else Contiguous)(*sizes)


def united(parts: Sequence[Rows]) -> Rows:
    """Puts together what the parts of an array gave.

    Args:
        parts: at least one.
    """
    whole = parts[0]
    for part in parts[1:]:
        largest = np.maximum(whole[kernels.DELTA_MAX], part[kernels.DELTA_MAX])
        whole = whole + part
        whole[kernels.DELTA_MAX] = largest
    return whole
