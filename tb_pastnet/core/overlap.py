"""How much two sets of weights or channels overlap, and how much they would by chance.

The overlap of two sets is their intersection over their union, |A ∩ B| / |A ∪ B|. Over several
layers, intersections and unions add up before one is divided by the other: a large layer weighs
more than a small one. The overlap by chance is the mean overlap of two random sets that have as
many elements of each layer. The number of elements that these share in a layer has the
hypergeometric distribution.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

FEW = 16
"""Elements of a set up to which its overlap by chance is exact."""


def overlap(shared: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Intersection over union of numbers of elements: |A ∩ B| / (|A| + |B| − |A ∩ B|).

    With sums over layers it is the overlap of the joined layers. It is 1 if both sets are empty,
    NaN if a number is.
    """
    intersection = np.asarray(shared, np.float64)
    union = np.asarray(first, np.float64) + np.asarray(second, np.float64) - intersection
    empty = union == 0
    return np.where(empty, 1.0, intersection / np.where(empty, 1.0, union))


def by_chance(first: npt.ArrayLike, second: npt.ArrayLike, elements: npt.ArrayLike) -> Floats:
    """The mean overlap of two random sets of given sizes among a number of elements.

    Exact if the smaller set has at most `FEW` elements, else within 0.01 %. It is 1 if both sets
    are empty, NaN if a number is.

    Example:
        >>> round(by_chance(1, 1, 10).item(), 6)  # one in ten draws is the same
        0.1
    """
    arrays = [np.asarray(each, np.float64) for each in (first, second, elements)]
    chance = ByChance(np.broadcast_shapes(*(array.shape for array in arrays)))
    chance.add(*arrays)
    return chance.overlap()


class ByChance:
    """The mean overlap of random sets, to which layers add their elements one by one.

    With S shared elements and T elements in both sets together, the overlap is S / (T − S). Let m
    be the mean of S, v, t and f its central moments, and U = T − m. The mean overlap is m / U + T ·
    (v / U³ + t / U⁴ + f / U⁵ + …), by Taylor's series around m. f is taken as 3v² + v, that of a
    Poisson distribution. If S can't exceed `FEW`, all its values are weighted by their
    probabilities.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._variance, self._third, self._sizes, self._most = np.zeros((5, *shape))
        self._probability = np.zeros((*shape, FEW + 1))
        self._probability[..., 0] = 1

    def add(
        self, first: Floats, second: Floats, elements: Floats, where: npt.ArrayLike = True
    ) -> None:
        """Adds a layer: sizes of both sets and number of elements, where it counts."""
        shape, counts = self._mean.shape, np.asarray(where)
        sizes = [np.where(counts, each, 0.0) for each in (first, second, elements)]
        first, second, elements = (np.broadcast_to(each, shape) for each in sizes)
        total = np.maximum(elements, 1)
        mean = first * second / total
        apart = (elements - first) * (elements - second) / (total * np.maximum(elements - 1, 1))
        skew = (elements - 2 * first) * (elements - 2 * second)
        self._mean += mean
        self._variance += mean * apart
        self._third += mean * apart * skew / (total * np.maximum(elements - 2, 1))
        self._sizes += first + second
        self._most += np.minimum(first, second)
        few = self._most <= FEW
        if few.any():
            before, own = self._probability[few], _shared(first[few], second[few], elements[few])
            joined = np.zeros_like(before)
            for shared in range(FEW + 1):
                joined[..., shared:] += own[..., shared, None] * before[..., : FEW + 1 - shared]
            self._probability[few] = joined

    def overlap(self) -> Floats:
        """The mean overlap of all that was added."""
        union = self._sizes - self._mean
        empty = union <= 0
        union = np.where(empty, 1.0, union)
        variance, fourth = self._variance, 3 * self._variance**2 + self._variance
        more = (variance + (self._third + fourth / union) / union) / (union * union * union)
        result = self._mean / union + self._sizes * more
        shared = np.arange(FEW + 1.0)
        of_each = shared / np.maximum(self._sizes[..., None] - shared, 1)
        exact = (self._probability * of_each).sum(axis=-1)
        result = np.where(self._most <= FEW, exact, result)
        return np.where(empty, 1.0, result)


def _shared(first: Floats, second: Floats, elements: Floats) -> Floats:
    """The probability of each number of shared elements, of which there are at most `FEW`."""
    least = np.maximum(first + second - elements, 0)[..., None]
    rest = (elements - first - second)[..., None]
    first, second = first[..., None], second[..., None]
    shared = least + np.arange(FEW)
    ways = np.maximum(first - shared, 0) * np.maximum(second - shared, 0)
    # From each number to the one below: the recursion has no next term beyond the largest.
    # Fractions and powers of two apart: nothing overflows. NumPy's logarithms end in another bit
    # with newer instructions of a processor than without.
    fractions, powers = np.frexp(ways / ((shared + 1) * (rest + shared + 1)))
    fractions = np.cumprod(np.insert(fractions, 0, 1, axis=-1), axis=-1)
    powers = np.cumsum(np.insert(powers, 0, 0, axis=-1), axis=-1, dtype=np.int32)
    weights = np.ldexp(fractions, powers - powers.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    # They begin at the smallest number that two such sets can share.
    place = np.arange(FEW + 1) - least.astype(np.int64)
    moved = np.take_along_axis(weights, np.maximum(place, 0), axis=-1)
    return np.where(place >= 0, moved, 0.0)


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
    """The elements that each pair of sets shares, int64 (sets, sets); sizes on the diagonal."""
    pairs = np.zeros((len(packed), len(packed)), np.int64)
    for first, row in enumerate(packed):
        pairs[first, first:] = pairs[first:, first] = count(packed[first:] & row)
    return pairs


@functools.cache
def _bit_counts() -> npt.NDArray[np.uint8]:
    """The number of ones in each 16 bits."""
    bits = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8))
    counts: npt.NDArray[np.uint8] = bits.reshape(-1, 16).sum(axis=1, dtype=np.uint8)
    return counts


def _set_bits_by_table(packed: Words) -> npt.NDArray[np.uint8]:
    """For NumPy before 2: the ones of each 16 bits, uint8 (..., 4 words)."""
    return _bit_counts()[np.ascontiguousarray(packed).view(np.uint16)]


# NumPy 1.26, the oldest that we support, can't count bits.
_set_bits = getattr(np, "bitwise_count", _set_bits_by_table)
