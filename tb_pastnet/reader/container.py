"""Arrays in one binary answer: a JSON header, then the numbers, little-endian.

Layout::

    u32              length n of the header
    n bytes          the header, JSON in UTF-8; its "sections" tell name, dtype, shape and offset
    zeros            up to a multiple of 8
    sections         one after the other, each padded to 8; offsets count from the first section

A page reads a section as a typed array without copying: every offset is a multiple of 8.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.reader.strict_json import dumps
from tb_pastnet.reader.threads import in_threads

SCHEMA = 2
"""Version of all answers; it grows when one changes so that an older page can't read it."""

_CODES = {"u1": "<u1", "u2": "<u2", "i2": "<i2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}
_LENGTH = struct.Struct("<I")
_ALIGN = 8
_STRIP = 16


def pack(header: Mapping[str, Any], sections: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Packs a header and named arrays.

    Args:
        header: JSON values; "sections" is added.
        sections: arrays of dtype u1, u2, i2, u4, f4 or f8 and any shape, empty ones included.
            NaN is allowed in the floats.

    Returns:
        The container.

    Raises:
        ValueError: an array has another dtype.

    Example:
        >>> data = pack({"schema": 1}, {"steps": np.array([1.0, 2.0])})
        >>> unpack(data)[1]["steps"].tolist()
        [1.0, 2.0]
    """
    entries: list[dict[str, Any]] = []
    parts: list[bytes | memoryview] = []
    offset = 0
    for name, array in sections.items():
        code = array.dtype.str[1:]
        if code not in _CODES:
            raise ValueError(
                f"Could not pack section {name!r}: expected a dtype of {', '.join(_CODES)}, got "
                f"{array.dtype}. Convert it first."
            )
        raw = row_by_row(array.astype(_CODES[code], order="K", copy=False)).view(np.uint8).data
        entries.append({"name": name, "dtype": code, "shape": list(array.shape), "offset": offset})
        parts += [raw, _padding(array.nbytes)]
        offset += array.nbytes + len(parts[-1])
    text = dumps({**header, "sections": entries})
    return b"".join([_LENGTH.pack(len(text)), text, _padding(_LENGTH.size + len(text)), *parts])


def smallest(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Counts in the smallest dtype that holds them exactly: most are small.

    Args:
        counts: of any shape and dtype, 0 or more each where they are numbers.

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
                found = counts.astype(dtype)
            return found if np.array_equal(found, counts) else counts
    return counts


def row_by_row(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of an array row by row, also where it lies column by column.

    Args:
        array: of any shape and dtype.

    Returns:
        They in one dimension; without a copy where they lie like that.

    Example:
        >>> row_by_row(np.array([[1, 2], [3, 4]]).T).tolist()
        [1, 3, 2, 4]
    """
    if array.flags.c_contiguous:
        return array.reshape(-1)
    rows = np.empty(array.shape, array.dtype)
    outer = int(np.argmax(np.abs(array.strides)))

    def turn(start: int) -> None:
        some = (*[slice(None)] * outer, slice(start, start + _STRIP))
        rows[some] = array[some]

    # A few of what lies far apart at a time: the cache holds what both sides touch.
    list(in_threads(turn, range(0, array.shape[outer], _STRIP)))
    return rows.reshape(-1)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Reads a container back, as the page does.

    Args:
        data: what `pack` returned.

    Returns:
        The header and the arrays by name, as read-only views.
    """
    import json

    (length,) = _LENGTH.unpack_from(data)
    header = json.loads(data[_LENGTH.size : _LENGTH.size + length])
    start = _LENGTH.size + length
    start += len(_padding(start))
    arrays = {}
    for entry in header["sections"]:
        dtype = np.dtype(_CODES[entry["dtype"]])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        flat = np.frombuffer(data, dtype, count, start + entry["offset"])
        arrays[entry["name"]] = flat.reshape(entry["shape"])
    return header, arrays


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _ALIGN)
