"""Answers of several arrays, read back as the page does."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a container; see `serve.http.answers`."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    start = 4 + length
    start += -start % 8
    arrays = {}
    for entry in header["sections"]:
        dtype = np.dtype("<" + entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        flat = np.frombuffer(data, dtype, count, start + entry["offset"])
        arrays[entry["name"]] = flat.reshape(entry["shape"])
    return header, arrays
