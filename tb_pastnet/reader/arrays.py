"""Array types of the reader, and rows of arrays by their steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NO_INTEGERS: Integers = np.zeros(0, np.int64)
NO_FLOATS: Floats = np.zeros(0)


def rows_of(steps: Integers, among: Integers) -> Integers:
    """The position of each step among others, which increase; -1 where it isn't one of them.

    Example:
        >>> rows_of(np.array([20, 25, 30]), np.array([10, 20, 30])).tolist()
        [1, -1, 2]
    """
    rows = np.searchsorted(among, steps)
    rows[rows == len(among)] = -1
    if len(among):
        rows[among[rows] != steps] = -1
    return rows


def values_at(rows: Integers, values: Floats) -> Floats:
    """The values of rows, as `rows_of` returns them; NaN where there is none.

    Example:
        >>> values_at(np.array([1, -1]), np.array([0.5, 0.25])).tolist()
        [0.25, nan]
    """
    if not len(values):
        return np.full(rows.shape, np.nan)
    return np.where(rows >= 0, values[rows], np.nan)
