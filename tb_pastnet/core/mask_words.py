"""Masks as words of 64 bits, the first element in the lowest bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.mask_input import Mask

Bits = npt.NDArray[np.uint64]


def packed_words(mask: Mask) -> Bits:
    """A mask as uint64 words, on a processor whose words begin with their low byte.

    Bits after the last element are set: nothing is held there.

    Example:
        >>> [hex(word) for word in packed_words(np.array([True, False, False]))]
        ['0xfffffffffffffff9']
    """
    bits = np.full(8 * -(-mask.size // 64), 255, np.uint8)
    packed = np.packbits(mask, bitorder="little")
    bits[: packed.size] = packed
    if mask.size % 8:
        bits[packed.size - 1] |= 255 << mask.size % 8 & 255
    return bits.view(np.uint64)


def unpacked_words(words: Bits, elements: int) -> Mask:
    """The mask of some elements, (elements,), from its words."""
    bits = np.unpackbits(words.view(np.uint8), count=elements, bitorder="little")
    return bits.view(np.bool_)
