"""Many records in few columns, for a picture that is narrower than its run.

Columns are even ranges of steps, never of records: runs with different strides stay aligned. States
pool by majority, the relative delta by its largest, so that a short burst stays visible.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.quantize import NAN, ZERO, Codes
from tb_pastnet.core.states import NAMES, STATE, States
from tb_pastnet.errors import InvalidArgument

Integers = npt.NDArray[np.int64]


def columns(steps: Integers, most: int) -> Integers:
    """Splits records into columns.

    Args:
        steps: int64 (records,), increasing.
        most: number of columns at most, at least 1.

    Returns:
        int64 (columns,): the index of the first record of each column. Each record is a column
        of its own where there are no more than `most`; none where there are no records.

    Raises:
        InvalidArgument: `most` isn't positive.

    Example:
        >>> columns(np.array([0, 1, 2, 3, 10, 11]), 3).tolist()
        [0, 4]
        >>> columns(np.array([0, 5]), 3).tolist()
        [0, 1]
    """
    if most < 1:
        raise InvalidArgument(
            f"Could not pool records: expected at least 1 column, got {most}. Ask for more."
        )
    if len(steps) <= most:
        return np.arange(len(steps))
    edges = np.linspace(steps[0], steps[-1] + 1, most + 1)[:-1]
    return np.unique(np.searchsorted(steps, edges)).astype(np.int64)


def pool_states(states: States, starts: Integers) -> States:
    """Takes the most frequent state of each column, ties to the latest record's.

    Args:
        states: uint8 (records, channels).
        starts: the first record of each column, as from `columns`.

    Returns:
        uint8 (columns, channels). A mark that stood at any record stands in its column.

    Example:
        >>> pool_states(np.array([[1], [3], [3], [5]], np.uint8), np.array([0, 3])).tolist()
        [[3], [5]]
    """
    if len(starts) == len(states):
        return states
    plain = states & STATE
    last = plain[np.append(starts[1:], len(states)) - 1]
    best = np.zeros(last.shape, np.uint8)
    best_score = np.zeros(last.shape, np.int32)
    for state in range(len(NAMES)):
        if not (plain == state).any():
            continue
        # Twice the count plus one where it came last: larger wins, ties go to the latest.
        score = 2 * np.add.reduceat(plain == state, starts, axis=0, dtype=np.int32)
        score += last == state
        better = score > best_score
        best[better] = state
        best_score[better] = score[better]
    marks: States = np.bitwise_or.reduceat(states & ~np.uint8(STATE), starts, axis=0)
    return best | marks


def pool_delta(delta: Codes, starts: Integers) -> Codes:
    """Takes the largest relative delta of each column.

    Args:
        delta: int16 codes (records, channels).
        starts: the first record of each column, as from `columns`.

    Returns:
        int16 codes (columns, channels); infinity counts as the largest, NaN as nothing unless
        there is nothing else.
    """
    if len(starts) == len(delta):
        return delta
    nothing = delta == NAN
    some = bool(nothing.any())
    known = np.where(nothing, np.int16(ZERO), delta) if some else delta
    pooled = np.empty((len(starts), delta.shape[1]), np.int16)
    for here, rows in by_size(starts, len(delta)):
        pooled[here] = known[rows].max(axis=1)
        if some:
            pooled[here] = np.where(nothing[rows].all(axis=1), np.int16(NAN), pooled[here])
    return pooled


def by_size(starts: Integers, records: int) -> Iterator[tuple[Integers, Integers]]:
    """Groups columns by the number of their records, so that NumPy can take many at once.

    Args:
        starts: the first record of each column, as from `columns`.
        records: how many there are.

    Yields:
        The numbers of some columns, int64 (some,), and their records, int64 (some, size).

    Example:
        >>> [(here.tolist(), rows.tolist()) for here, rows in by_size(np.array([0, 2, 3]), 5)]
        [([1], [[2]]), ([0, 2], [[0, 1], [3, 4]])]
    """
    sizes = np.diff(np.append(starts, records))
    for size in np.unique(sizes):
        here = np.flatnonzero(sizes == size)
        yield here, starts[here][:, None] + np.arange(size)
