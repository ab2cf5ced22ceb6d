"""Arrays as they are sent: counts small, the elements row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.reader.threads import in_threads

_STRIP = 16


def smallest(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts in the smallest dtype that holds them exactly: most are small.

    Returns:
        u1, u2 or u4; the same array where one of them is too large, no whole number, or NaN.

    Example:
        >>> smallest(np.array([0.0, 256.0])).dtype.name
        'uint16'
        >>> smallest(np.array([0.5, np.nan])).dtype.name
        'float64'
    """
    largest = counts.max(initial=0)
    for dtype in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(dtype).max:
            with np.errstate(invalid="ignore"):
                narrow = counts.astype(dtype)
            return narrow if np.array_equal(narrow, counts) else counts
    return counts


def row_by_row(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of an array row by row, also where it lies column by column.

    Example:
        >>> row_by_row(np.array([[1, 2], [3, 4]]).T).tolist()
        [1, 3, 2, 4]
    """
    if array.flags.c_contiguous:
        return array.reshape(-1)
    rows = np.empty(array.shape, array.dtype)
    outer = int(np.argmax(np.abs(array.strides)))

    def turn(start: int) -> None:
        strip = (*[slice(None)] * outer, slice(start, start + _STRIP))
        rows[strip] = array[strip]

    # A few of what lies far apart at a time: the cache holds what both sides touch.
    list(in_threads(turn, range(0, array.shape[outer], _STRIP)))
    return rows.reshape(-1)
