"""Long runs: which of the records that are due are stored, and which share a column of a picture.

What is written can't be taken back, so thinning is the writer's: after each `capacity` stored
records its stride doubles. A run of any length stays bounded by `capacity * (1 + log2(1 + due /
capacity))` records, in addition to those that are always kept: records in which a mask changed, and
the last one.

Columns are even ranges of steps, never of records: runs with different strides stay aligned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument

Integers = npt.NDArray[np.int64]

CAPACITY = 1024
"""Records stored at each stride: all of the first 1,024, every second of the next 2,048, …"""


_EACH, _EIGHTH = 64, 256
"""So many due records have each a sketch, and so many at least every eighth."""


def has_sketch(number: int) -> bool:
    """Whether the due record of a number, from 0, is sketched.

    Each of the first 64, then every eighth, from 256 on every sixteenth, from 2,048 on every 32nd,
    and so on: at least 64 in the last half of a longer run.

    Example:
        >>> [sum(map(has_sketch, range(count))) for count in (64, 256, 1024, 1 << 20)]
        [64, 88, 136, 776]
    """
    if number < _EACH:
        return True
    stride = 8 if number < _EIGHTH else max(16, 1 << (number.bit_length() - 7))
    return number % stride == 0


class Thinning:
    """Decides for each due record whether it is stored: after `capacity` the stride doubles."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise InvalidArgument(
                f"Could not set up thinning: expected a capacity of at least 1, got {capacity}. "
                f"Leave it out for {CAPACITY}."
            )
        self._capacity = capacity
        self._stride = 1
        self._kept = 0
        self._due_in = 0

    @property
    def keeps_next(self) -> bool:
        """Whether the next due record is stored even if no mask has changed."""
        return self._due_in == 0

    def keep(self, changed: bool = False) -> bool:
        """Whether the next due record is stored.

        If a mask has changed since the last stored record, it always is, and doesn't count against
        the capacity.
        """
        if self._due_in > 0:
            self._due_in -= 1
            return changed
        self._kept += 1
        if self._kept == self._capacity:
            self._kept = 0
            self._stride *= 2
        self._due_in = self._stride - 1
        return True


def columns(steps: Integers, most: int) -> Integers:
    """The index of the first record of each column, of increasing steps in even ranges.

    Each record is a column if there are no more than `most`.
    """
    if most < 1:
        raise InvalidArgument(
            f"Could not pool records: expected at least 1 column, got {most}. Ask for more."
        )
    if len(steps) <= most:
        return np.arange(len(steps))
    edges = np.linspace(steps[0], steps[-1] + 1, most + 1)[:-1]
    return np.unique(np.searchsorted(steps, edges)).astype(np.int64)


def last_records(starts: Integers, records: int) -> Integers:
    """The index of the last record of each column, given the first ones, of so many records.

    Example:
        >>> last_records(np.array([0, 3, 4]), 9)
        array([2, 3, 8])
    """
    return np.append(starts[1:], records)[: len(starts)] - 1
