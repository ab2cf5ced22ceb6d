"""How far two sets of weights or of channels are the same one, and how far they were by chance.

The overlap of two sets is their intersection over their union, |A ∩ B| / |A ∪ B|. By chance two
sets of the densities d₁ and d₂ among n elements share n·d₁·d₂ of them, and overlap by
d₁·d₂ / (d₁ + d₂ − d₁·d₂).

Over several layers, intersections and unions add up before one is divided by the other: a large
layer weighs more than a small one, and chance is given by layer: within each its own densities.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def overlap(both: npt.ArrayLike, one: npt.ArrayLike, other: npt.ArrayLike) -> Floats:
    """Intersection over union: |A ∩ B| / (|A| + |B| − |A ∩ B|).

    With what `expected_both` gives it is the overlap by chance; with sums over layers it is that of
    the layers joined.

    Args:
        both: number of elements in both sets, of any shape; NaN where unknown.
        one: number in the one set, of the same shape or one that broadcasts.
        other: number in the other.

    Returns:
        float64 from 0 to 1 of the common shape: 1 where both sets are empty, NaN where a number is.

    Example:
        >>> overlap([1, 0, 0], [2, 2, 0], [2, 1, 0]).round(3).tolist()
        [0.333, 0.0, 1.0]
        >>> float(overlap(expected_both(2, 2, 4), 2, 2))
        0.3333333333333333
    """
    shared = np.asarray(both, np.float64)
    union = np.asarray(one, np.float64) + np.asarray(other, np.float64) - shared
    empty = union == 0
    found: Floats = np.where(empty, 1.0, shared / np.where(empty, 1.0, union))
    return found


def expected_both(one: npt.ArrayLike, other: npt.ArrayLike, elements: npt.ArrayLike) -> Floats:
    """How many elements two independent sets share on average: |A|·|B| / n = n·d₁·d₂.

    Args:
        one: number of elements in the one set, of any shape.
        other: number in the other, of the same shape or one that broadcasts.
        elements: number n of elements that there are; 0 where there are none.

    Returns:
        float64 of the common shape: 0 where there are no elements.

    Example:
        >>> expected_both([2, 0], [3, 0], [6, 0]).tolist()
        [1.0, 0.0]
    """
    of = np.asarray(elements, np.float64)
    product = np.asarray(one, np.float64) * np.asarray(other, np.float64)
    found: Floats = product / np.where(of == 0, 1.0, of)
    return found


def words(bits: npt.NDArray[np.uint8]) -> Words:
    """Packed bits as words of 64, with zeros behind the last one.

    Args:
        bits: uint8 (..., bytes), as `numpy.packbits` makes them.

    Returns:
        uint64 (..., ceil(bytes / 8)).

    Example:
        >>> count(words(np.packbits([True, False, True]))).tolist()
        2
    """
    size = bits.shape[-1]
    padded = np.zeros((*bits.shape[:-1], -(-size // 8) * 8), np.uint8)
    padded[..., :size] = bits
    return padded.view(np.uint64)


def count(packed: Words) -> Integers:
    """How many bits are set.

    Args:
        packed: uint64 (..., words).

    Returns:
        int64 (...).
    """
    ones = _ones(packed)
    found: Integers = ones.sum(axis=-1, dtype=np.int64)
    return found


def count_pairs(packed: Words) -> Integers:
    """How many elements each two of many sets share.

    Args:
        packed: uint64 (sets, words), as from `words`.

    Returns:
        int64 (sets, sets), symmetric; the sizes of the sets on the diagonal.

    Example:
        >>> sets = np.packbits([[True, True, False], [False, True, True]], axis=1)
        >>> count_pairs(words(sets)).tolist()
        [[2, 1], [1, 2]]
    """
    found = np.zeros((len(packed), len(packed)), np.int64)
    for at, row in enumerate(packed):
        found[at, at:] = found[at:, at] = count(packed[at:] & row)
    return found


def _table() -> npt.NDArray[np.uint8]:
    """The number of ones in each 16 bits."""
    found = np.zeros(1, np.uint8)
    for _ in range(16):
        found = np.concatenate([found, found + np.uint8(1)])
    return found


_ONES = _table()


def _ones_by_table(packed: Words) -> npt.NDArray[np.uint8]:
    """For NumPy before 2: the ones of each 16 bits, uint8 (..., 4 words)."""
    return _ONES[np.ascontiguousarray(packed).view(np.uint16)]


# NumPy 1.26, the oldest that we support, can't count bits.
_ones = getattr(np, "bitwise_count", _ones_by_table)
