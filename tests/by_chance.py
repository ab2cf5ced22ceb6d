"""Overlaps by chance, counted with whole numbers: all ways in which random sets can be drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import comb, fsum


def mean_overlap(layers: Iterable[tuple[int, int, int]]) -> float:
    """The mean of intersection over union of two random sets.

    Args:
        layers: of each, how many elements are in the one set, in the other, and how many there are.
    """
    ways, sizes, draws = Counter({0: 1}), 0, 1
    for one, other, elements in layers:
        sizes += one + other
        draws *= comb(elements, other)
        joined: Counter[int] = Counter()
        for shared in range(max(0, one + other - elements), min(one, other) + 1):
            own = comb(one, shared) * comb(elements - one, other - shared)
            for before, count in ways.items():
                joined[before + shared] += count * own
        ways = joined
    if not sizes:
        return 1.0
    # Python divides whole numbers of any size exactly, but for the last bit.
    return fsum(count / draws * shared / (sizes - shared) for shared, count in ways.items())
