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


def overlap(shared: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Intersection over union of numbers of elements: |A ∩ B| / (|A| + |B| − |A ∩ B|).

    With what `expected_both` gives it is the overlap by chance; with sums over layers it is that of
    the layers joined. It is 1 where both sets are empty, NaN where a number is.
    """
    intersection = np.asarray(shared, np.float64)
    union = np.asarray(first, np.float64) + np.asarray(second, np.float64) - intersection
    empty = union == 0
    result: Floats = np.where(empty, 1.0, intersection / np.where(empty, 1.0, union))
    return result


def expected_both(first: npt.ArrayLike, second: npt.ArrayLike, elements: npt.ArrayLike) -> Floats:
    """How many elements two independent sets share on average: |A|·|B| / n = n·d₁·d₂; 0 of none."""
    total = np.asarray(elements, np.float64)
    product = np.asarray(first, np.float64) * np.asarray(second, np.float64)
    result: Floats = product / np.where(total == 0, 1.0, total)
    return result


def words(bits: npt.NDArray[np.uint8]) -> Words:
    """Packed bits (..., bytes) as uint64 words (..., ceil(bytes / 8)), with zeros at the end."""
    size = bits.shape[-1]
    padded = np.zeros((*bits.shape[:-1], -(-size // 8) * 8), np.uint8)
    padded[..., :size] = bits
    return padded.view(np.uint64)


def count(packed: Words) -> Integers:
    """How many bits are set in uint64 (..., words), as int64 (...)."""
    result: Integers = _set_bits(packed).sum(axis=-1, dtype=np.int64)
    return result


def count_pairs(packed: Words) -> Integers:
    """How many elements each two of many sets share, int64 (sets, sets); sizes on the diagonal."""
    pairs = np.zeros((len(packed), len(packed)), np.int64)
    for first, row in enumerate(packed):
        pairs[first, first:] = pairs[first:, first] = count(packed[first:] & row)
    return pairs


def _table() -> npt.NDArray[np.uint8]:
    """The number of ones in each 16 bits."""
    counts = np.zeros(1, np.uint8)
    for _ in range(16):
        counts = np.concatenate([counts, counts + np.uint8(1)])
    return counts


_COUNTS = _table()


def _set_bits_by_table(packed: Words) -> npt.NDArray[np.uint8]:
    """For NumPy before 2: the ones of each 16 bits, uint8 (..., 4 words)."""
    return _COUNTS[np.ascontiguousarray(packed).view(np.uint16)]


# NumPy 1.26, the oldest that we support, can't count bits.
_set_bits = getattr(np, "bitwise_count", _set_bits_by_table)
