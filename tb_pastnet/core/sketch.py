"""A sketch of an array: 64 numbers that show how far it is from another array of its shape.

Elements are numbered in C order of the array as its framework shows it. Element i is in row
r = i div 64, and is added to bucket (i + R[r mod 4096]) mod 64, with two signs: bit i mod 64 of
S[r mod 4096], and B[i div 262144]. A set bit is a minus. S, R and B are numbers from splitmix64
with the seeds 3, 4 and 5, as for `core.fingerprint`. R are the upper 6 bits, B the upper bit.

The distance of two sketches estimates the Euclidean distance of the arrays, without bias in its
square. This is a CountSketch (Charikar, Chen, Farach-Colton: Finding frequent items in data
streams, 2002) with one row. Its square varies by at most √(2/64) of itself (Thorup, Zhang:
Tabulation based 4-universal hashing with applications to second moment estimation, 2004). So a
distance is right within 18 %, in 19 of 20 cases. Without the rotation R, all elements of a column
of a matrix would be in the same bucket.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.fingerprint import splitmix64

BUCKETS = 64
ROWS = 4096
"""Rows of buckets until the tables repeat."""

FEWEST = BUCKETS + 1
"""Elements of an array that is sketched: others are hardly larger than their sketch."""

SPREAD = np.sqrt(2 / BUCKETS) / 2
"""The standard deviation of a distance, as a share of it."""

MOST_BLOCKS = 1 << 14
"""The second sign is known for 2³² elements; then it repeats."""

Sketch = npt.NDArray[np.float64]


class Tables(NamedTuple):
    """What is added to which bucket, with what sign."""

    signs: npt.NDArray[np.int8]  # (ROWS, BUCKETS), 1 or -1
    rotations: npt.NDArray[np.int64]  # (ROWS,), from 0 to 63
    blocks: npt.NDArray[np.float64]  # (MOST_BLOCKS,), 1 or -1
    buckets: npt.NDArray[np.int64]  # (ROWS, BUCKETS), of each element of a row


@cache
def tables(seed: int = 3) -> Tables:
    """The tables, read-only, from this seed and the next two: records have those of seed 3."""
    lanes = np.arange(BUCKETS, dtype=np.uint64)
    bits = splitmix64(ROWS, seed)[:, None] >> lanes & np.uint64(1)
    rotations = (splitmix64(ROWS, seed + 1) >> np.uint64(58)).astype(np.int64)
    blocks = np.where(splitmix64(MOST_BLOCKS, seed + 2) >> np.uint64(63), -1.0, 1.0)
    buckets = (np.arange(BUCKETS) + rotations[:, None]) % BUCKETS
    made = Tables((1 - 2 * bits.astype(np.int8)).astype(np.int8), rotations, blocks, buckets)
    for table in made:
        table.flags.writeable = False
    return made


def sketch(values: npt.NDArray[Any], first: int = 0) -> Sketch:
    """The sketch of an array, or of a part of one: sketches of parts add up.

    Args:
        values: of any floating dtype and shape, in any order in memory.
        first: the position of the first value in the whole array. The values are a run of it.

    Returns:
        float64 (64,): zeros without values. With NaN or infinity some of them aren't finite.

    Example:
        >>> before = np.random.default_rng(0).normal(size=(128, 64))
        >>> after = before + 0.01
        >>> estimate = np.linalg.norm(sketch(after) - sketch(before))
        >>> bool(abs(estimate / np.linalg.norm(after - before) - 1) < 0.18)
        True
    """
    table, flat = tables(), np.ascontiguousarray(values).reshape(-1)
    result, at, end = np.zeros(BUCKETS), first, first + flat.size
    while at < end:
        block, row = at // (ROWS * BUCKETS), at // BUCKETS % ROWS
        stop = min(end, (block + 1) * ROWS * BUCKETS)
        lane, count = at % BUCKETS, -(-stop // BUCKETS) - at // BUCKETS
        rows = np.zeros((count, BUCKETS))
        rows.reshape(-1)[lane : lane + stop - at] = flat[at - first : stop - first]
        own = slice(row, row + count)
        rows *= table.signs[own]
        sums = np.bincount(table.buckets[own].reshape(-1), rows.reshape(-1), BUCKETS)
        with np.errstate(invalid="ignore"):
            result += table.blocks[block % MOST_BLOCKS] * sums
        at = stop
    return result
