"""Encodings of arrays in answers: small counts, states in stretches, deltas by their places.

States rarely change and deltas are rough: stretches take next to nothing, and places one byte per
delta, which is less than their packed codes and takes no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.channel_states import States
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, Codes, dequantize
from tb_pastnet.reader.arrays import Floats
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.threads import in_threads

Integers = npt.NDArray[Any]

Sections = tuple[dict[str, Any], dict[str, npt.NDArray[Any]], Notes]
"""An answer as JSON values and arrays, both by name, and what could not be read for it."""

_LOW, _HIGH = ZERO + 1, NAN - 1
_BYTE = 256
_STRIP = 1 << 18
_TURNED = 16


def smallest(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts in the smallest dtype that holds them exactly: u1, u2 or u4, because most are small.

    It is the same array if one of them is too large, not a whole number, or NaN.
    """
    largest = counts.max(initial=0)
    for dtype in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(dtype).max:
            with np.errstate(invalid="ignore"):
                narrow = counts.astype(dtype)
            return narrow if np.array_equal(narrow, counts) else counts
    return counts


def row_by_row(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of an array row by row, even if it is stored column by column."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    rows = np.empty(array.shape, array.dtype)
    outer = int(np.argmax(np.abs(array.strides)))

    def turn(start: int) -> None:
        strip = (*[slice(None)] * outer, slice(start, start + _TURNED))
        rows[strip] = array[strip]

    # In small parts: the cache then holds the source and the result.
    list(in_threads(turn, range(0, array.shape[outer], _TURNED)))
    return rows.reshape(-1)


def stretches(states: States) -> tuple[States, Integers]:
    """The state of each stretch of equal ones, channel by channel, and how many cells it has.

    One may continue in the next channel: `np.repeat` of both are the states (channels, records),
    row by row.

    Example:
        >>> stretches(np.array([[1, 4], [1, 4], [3, 4]], np.uint8))
        (array([1, 3, 4], dtype=uint8), array([2, 1, 3], dtype=uint8))
    """
    cells = row_by_row(states.T)
    if cells.size == 0:
        return cells, np.zeros(0, np.uint8)
    starts = np.flatnonzero(cells[1:] != cells[:-1]) + 1
    starts = np.concatenate([[0], starts])
    return cells[starts], smallest(np.diff(starts, append=cells.size))


def listed(codes: Codes) -> tuple[Integers, Floats]:
    """Relative deltas as places in a list of values, float64, and these.

    The places are uint8 or, of more than 256 values, uint16 (records, channels); the values are 0,
    all of the grid from the least to the largest that occurs, infinity, NaN.

    Example:
        >>> places, values = listed(np.array([[-16, ZERO, -18]], np.int16))
        >>> values[places].round(3)
        array([[0.5  , 0.   , 0.459]])
    """
    strips = list(_strips(codes))
    spans = list(in_threads(_span, strips))
    low = min((least for least, _ in spans), default=_HIGH)
    high = max((largest for _, largest in spans), default=_LOW)
    grid = np.arange(low, max(low, high + 1))
    values = dequantize(np.concatenate([[ZERO], grid, [INFINITE, NAN]]))
    places = np.empty(codes.shape, np.uint8 if len(values) <= _BYTE else np.uint16)
    special = ((ZERO, 0), (INFINITE, len(values) - 2), (NAN, len(values) - 1))

    def place(strip: Codes, into: Integers) -> None:
        into[...] = strip - np.int16(low - 1)
        for code, index in special:
            same = strip == code
            if same.any():
                np.copyto(into, index, where=same)

    list(in_threads(lambda pair: place(*pair), zip(strips, _strips(places), strict=True)))
    return places, values


def _span(codes: Codes) -> tuple[int, int]:
    """The least and the largest code of a number; without any, the least is the larger one."""
    # Counted from either end, the special codes wrap around: they are larger than all others.
    from_low = (codes - np.int16(_LOW)).view(np.uint16).min(initial=_HIGH - _LOW)
    from_high = (np.int16(_HIGH) - codes).view(np.uint16).min(initial=_HIGH - _LOW)
    return _LOW + int(from_low), _HIGH - int(from_high)


def _strips(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Groups of records that fit into the cache."""
    long = max(_STRIP // max(array.shape[1], 1), 1)
    for start in range(0, len(array), long):
        yield array[start : start + long]
