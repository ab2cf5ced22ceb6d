"""Array types of the reader, and rows of arrays by their steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NO_INTEGERS: Integers = np.zeros(0, np.int64)
NO_FLOATS: Floats = np.zeros(0)

_NO_STEP = np.iinfo(np.int64).min


def rows_of(steps: Integers, among: Integers) -> Integers:
    """The position of each step among others, which increase; -1 where it isn't one of them.

    Example:
        >>> rows_of(np.array([20, 25, 30]), np.array([10, 20, 30])).tolist()
        [1, -1, 2]
    """
    rows = np.searchsorted(among, steps)
    rows[np.append(among, _NO_STEP)[rows] != steps] = -1
    return rows
