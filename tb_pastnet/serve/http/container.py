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

from tb_pastnet.reader.sections import row_by_row
from tb_pastnet.serve.http.strict_json import dumps

_CODES = {"u1": "<u1", "u2": "<u2", "i2": "<i2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}
_LENGTH = struct.Struct("<I")
_ALIGN = 8


def pack(header: Mapping[str, Any], sections: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Packs a header and named arrays.

    The arrays are of dtype u1, u2, i2, u4, f4 or f8 and any shape, empty ones included; NaN is
    allowed in the floats. "sections" is added to the header.
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


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _ALIGN)
