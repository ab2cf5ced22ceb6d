"""Zeros and restores held elements in place, by masks of one bit an element, in compiled calls.

Bits are in the order of `numpy.packbits`. Elements are words of their size: nothing computes with
them. Importing this module needs numba.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from tb_pastnet.core.compiling import compiled, pointer_to

Bits = npt.NDArray[np.uint8]
Words = npt.NDArray[Any]


@numba.njit(inline="always")
def _run_end(bits: Bits, second: Bits, byte: int) -> int:  # pragma: no cover  compiled
    """The byte up to which two masks continue with the same bytes."""
    end = byte + 1
    while end < bits.size and bits[end] == bits[byte] and second[end] == second[byte]:
        end += 1
    return end


@compiled
def zero(
    address: int, like: Words, count: int, through: Bits
) -> None:  # pragma: no cover  compiled
    """Sets elements to zero that a mask doesn't let through.

    Args:
        address: of the first element; they are contiguous.
        like: an array of words of their size.
        count: how many elements there are.
        through: the mask, 1 = through, ceil(count / 8) bytes.
    """
    words = pointer_to(address, like)
    byte = 0
    while byte < through.size:
        bits, end = through[byte], _run_end(through, through, byte)
        stop = min(8 * end, count)
        if bits == 0:
            for place in range(8 * byte, stop):
                words[place] = 0
        elif bits != 255:
            for place in range(8 * byte, stop):
                # Without a branch, which would often be predicted wrongly.
                free = np.uint64(bits >> (7 - place % 8)) & np.uint64(1)
                words[place] = words[place] & (np.uint64(0) - free)
        byte = end


@compiled
def restore(
    address: int, values: Words, count: int, kept: Bits, through: Bits
) -> None:  # pragma: no cover  compiled
    """Writes held elements: zero where they aren't kept, else their values.

    Args:
        address: of the first element; they are contiguous.
        values: words of those that are kept, but not let through, in their order, and one more.
        count: how many elements there are.
        kept: a mask, 0 = pruned, ceil(count / 8) bytes.
        through: a mask, 0 = held, of the same size.
    """
    words = pointer_to(address, values)
    byte, next_value = 0, np.int64(0)
    while byte < through.size:
        bits, remaining, end = through[byte], kept[byte], _run_end(through, kept, byte)
        first, stop = 8 * byte, min(8 * end, count)
        if bits == 0 and remaining == 255:
            for place in range(first, stop):
                words[place] = values[next_value + place - first]
            next_value += np.int64(stop - first)
        elif bits == 0 and remaining == 0:
            for place in range(first, stop):
                words[place] = 0
        elif bits != 255:
            for place in range(first, stop):
                shift = 7 - place % 8
                free = np.uint64(bits >> shift) & np.uint64(1)
                frozen = np.uint64(remaining >> shift) & np.uint64(1) & (free ^ np.uint64(1))
                own = words[place] & (np.uint64(0) - free)
                words[place] = own | (values[next_value] & (np.uint64(0) - frozen))
                next_value += np.int64(frozen)
        byte = end
