"""What this rank has of a weight, and the ranks together."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis, explicit_axis
from tb_pastnet.core.mask_input import spread
from tb_pastnet.core.sketch import BUCKETS, Sketch, sketch
from tb_pastnet.record.source import Ints


class RankGroup(Protocol):
    """All ranks of a training, each of which takes part in each call; `first` is that of rank 0."""

    count: int
    first: bool

    def all(self, item: Any) -> list[Any]:
        """The items of all ranks, in their order, on each rank."""

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by their maximum over all ranks, on each rank."""

    def total(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the sum over all ranks, on rank 0; elsewhere they are undefined."""

    def leave(self) -> None:
        """Releases what was made for this."""


@dataclass(frozen=True)
class Part:
    """The part of a weight on this rank, as a weight itself.

    Its channels are no coarser than those of the whole: if gates, heads or groups follow one
    another, they are rows, several of which make a channel.

    Attributes:
        weight: the part.
        channels: for each of its channels the channel of the whole weight that it belongs to.
        total: how many channels the whole weight has.
        runs: as many runs of its elements follow one another in the whole weight,
        first: the first of which begins at this position,
        apart: and the others so far from the one before.
        place: where it is in an array of the whole weight, as an index.
    """

    weight: Any
    channels: Ints
    total: int
    runs: int = 1
    first: int = 0
    apart: int = 0
    place: tuple[slice, ...] = ()

    def sketch(self) -> Sketch:
        """Its part of the sketch of the whole weight."""
        values = np.asarray(self.weight.effective())
        total = np.zeros(BUCKETS)
        if values.size:
            for number, run in enumerate(values.reshape(self.runs, -1)):
                total += sketch(run, self.first + number * self.apart)
        return total


def part_of(weight: Any, shape: tuple[int, ...], cut: tuple[int, int] | None) -> Part:
    """The part of that shape; `cut` is the axis that is cut, and the part's first row on it."""
    axes, numbers = _numbered(weight.axis)
    if cut is not None and cut[0] in axes:
        axis, begin = cut
        numbers = numbers.take(range(begin, begin + shape[axis]), axis=axis)
    part = copy(weight)
    part.shape, part.axis = shape, explicit_axis(axes, shape, weight.name)
    runs, place = (1, 0, 0), tuple[slice, ...]()
    if cut is not None:
        axis, begin = cut
        place = *[slice(None)] * axis, slice(begin, begin + shape[axis])
        inner = prod(shape[axis + 1 :])
        runs = prod(shape[:axis]), begin * inner, weight.shape[axis] * inner
    return Part(part, numbers.reshape(-1), weight.axis.channels, *runs, place)


def _numbered(axis: ChannelAxis) -> tuple[tuple[int, ...], Ints]:
    """The axes of the array itself that number channels, and the channel of each place on them."""
    axes = sorted(set(map(axis.own_axis, axis.axes)))
    # The same array with a single element on each other axis.
    view = (size if axis.own_axis(n) in axes else 1 for n, size in enumerate(axis.view))
    return tuple(axes), spread(np.arange(axis.channels), replace(axis, view=tuple(view)))
