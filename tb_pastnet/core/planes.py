"""One statistic of several records, packed: differences, then deflate.

Values move little from record to record and sit on one global grid, so a cell is stored as its
difference to the record before; the first record as the difference to its left neighbour. Signs go
to the lowest bit (zigzag) and the low and the high bytes are stored apart: the high ones are nearly
all zero and cost nothing. All sums wrap at 16 bits, so that every input is restored exactly.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import varint
from tb_pastnet.core.quantize import Codes

_CONSTANT, _DEFLATED = 0, 1
_LEVEL = 6

_Words = npt.NDArray[np.uint16]


def pack(plane: Codes) -> bytes:
    """Packs the codes of one statistic.

    Args:
        plane: int16 of shape (records, channels), any values.

    Returns:
        The packed bytes; 3 where all cells are equal.

    Example:
        >>> len(pack(np.full((16, 512), 7, np.int16)))
        3
    """
    words = np.ascontiguousarray(plane).view(np.uint16)
    if words.size == 0 or (words == words.flat[0]).all():
        value = int(words.flat[0]) if words.size else 0
        return bytes([_CONSTANT]) + value.to_bytes(2, "little")
    difference = words.copy()
    difference[1:] -= words[:-1]
    difference[0, 1:] -= words[0, :-1]
    zigzag = (difference << 1) ^ (0 - (difference >> 15)).astype(np.uint16)
    split = zigzag.astype("<u2").view(np.uint8).reshape(-1, 2)
    deflated = zlib.compress(np.ascontiguousarray(split.T).tobytes(), _LEVEL)
    return bytes([_DEFLATED]) + varint.encode([len(deflated)]) + deflated


def unpack(reader: varint.Reader, records: int, channels: int) -> Codes:
    """Restores what `pack` was given.

    Args:
        reader: stands at the packed bytes, and behind them afterwards.
        records: number of records, already checked against `limits`.
        channels: number of channels, likewise.

    Returns:
        int16 of shape (records, channels).

    Raises:
        DamagedRecord: the bytes don't inflate to exactly that shape.
    """
    mode = reader.number()
    if mode == _CONSTANT:
        value = int.from_bytes(reader.take(2), "little")
        return np.full((records, channels), value, np.uint16).view(np.int16)
    if mode != _DEFLATED:
        raise varint.damaged("a plane that is constant or deflated", f"mode {mode}")
    raw = inflate(reader.take(reader.number()), 2 * records * channels)
    low, high = np.frombuffer(raw, np.uint8).reshape(2, -1).astype(np.uint16)
    zigzag = low | (high << 8)
    difference = (zigzag >> 1) ^ (0 - (zigzag & 1)).astype(np.uint16)
    words = difference.reshape(records, channels)
    words[0] = np.cumsum(words[0], dtype=np.uint16)
    # Row by row: numpy's cumsum along the first axis takes ten times as long where rows are wide.
    for at in range(1, records):
        words[at] += words[at - 1]
    return words.view(np.int16)


def inflate(data: bytes, size: int) -> bytes:
    """Inflates to exactly `size` bytes and never allocates more.

    Raises:
        DamagedRecord: the data is broken, or of another size.
    """
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data, size + 1)
    except zlib.error as error:
        raise varint.damaged("deflated bytes", str(error)) from None
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise varint.damaged(f"{size} bytes once inflated", f"at least {len(raw)}")
    return raw
