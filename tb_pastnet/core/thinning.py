"""Long runs: which of the records that are due are stored, and which share a column of a picture.

What is written can't be taken back, so thinning is the writer's: after 1,024 due records every
second is stored, after 2,048 more every fourth, and so on. A run of any length stays bounded by
`CAPACITY * (1 + log2(1 + due / CAPACITY))` records, in addition to those that are always kept:
records in which a mask changed or a held weight moved, and the last one. Which they are is known in
advance: what isn't stored doesn't have to be measured.

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


def stride_at(number: int) -> int:
    """Of how many due records one is stored where that of a number is, from 0.

    Example:
        >>> [stride_at(number) for number in (0, 1023, 1024, 3071, 3072)]
        [1, 1, 2, 2, 4]
    """
    return 1 << (number // CAPACITY + 1).bit_length() - 1


def is_stored(number: int) -> bool:
    """Whether the due record of a number, from 0, is stored even if nothing happened.

    Each with a sketch is, see `has_sketch`.

    Example:
        >>> [sum(map(is_stored, range(count))) for count in (1024, 3072, 1 << 20)]
        [1024, 2048, 10241]
    """
    return number % stride_at(number) == 0


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
