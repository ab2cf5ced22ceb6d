"""Zeros and restores held elements in place, by masks of one bit an element, in compiled calls.

Masks are uint64 words, the first element in the lowest bit: see `packed_words`. Elements are words
of their size: nothing computes with them. Importing this module needs numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.compiling import compiled, lowest_bit, pointer_to

Bits = npt.NDArray[np.uint64]
Words = npt.NDArray[Any]

_NONE, _ONE = np.uint64(0), np.uint64(1)
_BLOCK = 1 << 9


@compiled
def zero(address: int, like: Words, through: Bits) -> None:  # pragma: no cover  compiled
    """Sets elements to zero that a mask doesn't let through.

    Args:
        address: of the first element; they are contiguous.
        like: an array of words of their size.
        through: the mask, 1 = through and after the last element.
    """
    words = pointer_to(address, like)
    for number in range(through.size):
        first, held = 64 * number, ~through[number]
        if ~held == _NONE:
            for place in range(first, first + 64):
                words[place] = 0
        else:
            # A branch for each element would often be predicted wrongly.
            while held:
                words[first + lowest_bit(held)] = 0
                held &= held - _ONE


@compiled
def restore(
    address: int, values: Words, kept: Bits, through: Bits
) -> None:  # pragma: no cover  compiled
    """Writes held elements: zero where they aren't kept, else their values.

    Args:
        address: of the first element; they are contiguous.
        values: words of those that are kept, but not let through, in their order; more may follow.
        kept: a mask, 0 = pruned, 1 after the last element.
        through: a mask, 0 = held, of the same size, 1 after the last element.
    """
    words = pointer_to(address, values)
    next_value = np.int64(0)
    for number in range(through.size):
        first = 64 * number
        pruned, frozen = ~kept[number], kept[number] & ~through[number]
        if ~frozen == _NONE:
            for place in range(64):
                words[first + place] = values[next_value + place]
            next_value += np.int64(64)
        else:
            while pruned:
                words[first + lowest_bit(pruned)] = 0
                pruned &= pruned - _ONE
            while frozen:
                words[first + lowest_bit(frozen)] = values[next_value]
                next_value += np.int64(1)
                frozen &= frozen - _ONE


@compiled
def zero_words(address: int, like: Bits, count: int) -> None:  # pragma: no cover  compiled
    """Sets words to zero, and writes only to blocks that aren't: most of a gradient may be.

    Args:
        address: of the first one, a multiple of 8.
        like: an array of uint64: narrower words would be widened one by one.
        count: how many words of 8 bytes there are.
    """
    words = pointer_to(address, like)
    whole = count - count % _BLOCK
    for first in range(0, whole, _BLOCK):
        any_bits = _NONE
        for place in range(_BLOCK):
            any_bits |= words[first + place]
        if any_bits:
            for place in range(_BLOCK):
                words[first + place] = 0
    for place in range(whole, count):
        words[place] = 0
