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
_TOGETHER = 1 << 16

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
    plane: Codes = unpack_many(reader, 1, records, channels)[0]
    return plane


def unpack_many(reader: varint.Reader, count: int, records: int, channels: int) -> Codes:
    """Restores several planes that were packed one after the other.

    Args:
        reader: stands at the packed bytes, and behind them afterwards.
        count: number of planes.
        records: number of records of each, already checked against `limits`.
        channels: number of channels, likewise.

    Returns:
        int16 of shape (count, records, channels).

    Raises:
        DamagedRecord: the bytes don't inflate to exactly that shape.
    """
    words = np.empty((count, records, channels), np.uint16)
    waiting: list[tuple[int, bytes]] = []
    for plane in range(count):
        mode = reader.number()
        if mode == _CONSTANT:
            words[plane] = int.from_bytes(reader.take(2), "little")
        elif mode == _DEFLATED:
            raw = inflate(reader.take(reader.number()), 2 * records * channels)
            waiting.append((plane, raw))
        else:
            raise varint.damaged("a plane that is constant or deflated", f"mode {mode}")
        # Small planes are restored together, which is what most of the time would go into.
        if waiting and (plane == count - 1 or records * channels > _TOGETHER):
            words[[at for at, _ in waiting]] = _restore(waiting, records, channels)
            waiting = []
    return words.view(np.int16)


def _restore(planes: list[tuple[int, bytes]], records: int, channels: int) -> _Words:
    """Joins the low and high bytes of inflated planes and undoes the differences."""
    raw = np.frombuffer(b"".join(part for _, part in planes), np.uint8)
    split = raw.reshape(len(planes), 2, records, channels)
    words = split[:, 1].astype(np.uint16)
    words <<= 8
    words |= split[:, 0]
    words = ((words >> 1) ^ (0 - (words & 1))).astype(np.uint16)
    words[:, 0] = np.cumsum(words[:, 0], axis=1, dtype=np.uint16)
    # Row by row: numpy's cumsum along another axis takes ten times as long where rows are wide.
    for at in range(1, records):
        words[:, at] += words[:, at - 1]
    return words


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
