"""One statistic of several records, packed: differences, then deflate.

Values move little from record to record and sit on one global grid, so a cell is stored as its
difference from the previous record; in the first record, from its left neighbour. Signs go to the
lowest bit (zigzag), and the low and the high bytes are stored separately: the high ones are nearly
all zero and compress to nothing. All sums wrap at 16 bits: every input is restored exactly.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.quantize import NAN, Codes
from tb_pastnet.format import varint

Words = npt.NDArray[np.uint16]


class Deflated(NamedTuple):
    """A plane that inflates to a size, as was verified, but is too large to be kept inflated."""

    data: bytes
    size: int


Opened = int | bytes | Deflated | None

_CONSTANT, _DEFLATED = 0, 1
_MORE = 0x80  # of a number, see `varint`
_CUT_OFF = b"\xff" * 3
_MOST_INFLATED = 1 << 22
_PIECE = 1 << 20
_TOGETHER, _WIDE = 1 << 16, 64

_LARGE, _MOST_DEFLATED = 1 << 16, 50


def pack(plane: Codes) -> bytes:
    """Packs the codes (records, channels) of one statistic; 3 bytes if all are equal."""
    return pack_apart(plane[None], [(0, plane.shape[1])])[0]


def pack_apart(planes: Codes, cuts: Sequence[tuple[int, int]]) -> list[bytes]:
    """Packs ranges of channels one by one, as if each had its own planes.

    Planes are int16 (planes, records, channels), any values. Cuts are the first channel of each
    range, and one after its last; they are contiguous. Returns the planes of each range,
    concatenated.
    """
    by_plane = [_pack_plane(plane.view(np.uint16), cuts) for plane in planes]
    return [b"".join(packed) for packed in zip(*by_plane, strict=True)]


def _pack_plane(words: Words, cuts: Sequence[tuple[int, int]]) -> list[bytes]:
    """The ranges of one plane."""
    if not words.size or (words == words[0, 0]).all():
        return [_constant(int(words[0, 0]) if words.size else 0)] * len(cuts)
    starts = [start for start, _ in cuts]
    values = words[0, starts]
    zigzag = _differences(words)
    zigzag[0, starts] = 0
    varying = np.any(np.bitwise_or.reduceat(zigzag, starts, 1), axis=0).tolist()
    zigzag[0, starts] = _zigzag(values)
    cells = np.empty((2, *words.shape), np.uint8)
    cells[0] = zigzag & 0xFF
    cells[1] = zigzag >> 8
    return [
        _deflated(cells[:, :, start:stop].tobytes()) if varies else _constant(value)
        for (start, stop), varies, value in zip(cuts, varying, values.tolist(), strict=True)
    ]


def _differences(words: Words) -> Words:
    """Zigzagged differences from the previous record, in the first from the left neighbour."""
    difference = words.copy()
    difference[1:] -= words[:-1]
    difference[0, 1:] -= words[0, :-1]
    return _zigzag(difference)


def _zigzag(words: Words) -> Words:
    signs = (words.view(np.int16) >> 15).view(np.uint16)
    return np.asarray((words << 1) ^ signs, np.uint16)


def _constant(value: int) -> bytes:
    return bytes([_CONSTANT]) + value.to_bytes(2, "little")


def _deflated(cells: bytes) -> bytes:
    # Differences only repeat runs of zeros: searching for more takes time and finds nothing.
    stream = zlib.compressobj(strategy=zlib.Z_RLE)
    deflated = stream.compress(cells) + stream.flush()
    return bytes([_DEFLATED]) + varint.encode([len(deflated)]) + deflated


def unpack(reader: varint.Reader, records: int, channels: int) -> Codes:
    """Restores the input of `pack`, of a size that was checked against `limits`.

    Raises DamagedRecord if the bytes don't inflate to exactly that shape.
    """
    words = np.empty((1, records, channels), np.uint16)
    restore(open_planes(reader, [True], records, channels), words)
    plane: Codes = words[0].view(np.int16)
    return plane


def open_planes(
    reader: varint.Reader, wanted: Sequence[bool], records: int, channels: int
) -> tuple[Opened, ...]:
    """Reads planes up to the point where those of many blocks can be restored together.

    Returns for each plane its one value, or its inflated bytes; None if it isn't wanted. Raises
    DamagedRecord if they don't inflate to that shape, which was checked against `limits`.
    """
    opened: list[Opened] = []
    payload, at, end = reader.payload, reader.at, len(reader.payload)
    size = 2 * records * channels
    for needed in wanted:
        # Most heads are of two or three bytes: these are looked at in place.
        mode, first, second = payload[at : at + 3] if at + 3 <= end else _CUT_OFF
        if mode == _CONSTANT:
            opened.append(first | second << 8 if needed else None)
            at += 3
        elif mode == _DEFLATED and min(first, second) < _MORE:
            begin = at + 2 + (first >= _MORE)
            at = begin + (first if first < _MORE else first + ((second - 1) << 7))
            if at > end:
                raise varint.damaged(f"{at - begin} more bytes", str(end - begin))
            opened.append(_opened(payload[begin:at], size) if needed else None)
        else:
            reader.at = at
            opened.append(_read_plane(reader, needed, size))
            at = reader.at
    reader.at = at
    return tuple(opened)


def _read_plane(reader: varint.Reader, needed: bool, size: int) -> Opened:
    """A plane with a head of any length."""
    mode = reader.number()
    if mode == _CONSTANT:
        value = int.from_bytes(reader.take(2), "little")
        return value if needed else None
    if mode != _DEFLATED:
        raise varint.damaged("a plane that is constant or deflated", f"mode {mode}")
    data = reader.take(reader.number())
    return _opened(data, size) if needed else None


def _opened(data: bytes, size: int) -> Opened:
    if size <= _MOST_INFLATED:
        return inflate(data, size)
    _verify(data, size)
    return Deflated(data, size)


def deflated(plane: Opened) -> Opened:
    """A plane that isn't inflated."""
    return Deflated(zlib.compress(plane, 1), len(plane)) if isinstance(plane, bytes) else plane


def restore(planes: Sequence[Opened], out: Words) -> None:
    """Restores planes of one shape, at least one: of consecutive blocks, for example.

    Fills `out`, uint16 (planes, records, channels); unwanted planes become `NAN`.
    """
    restore_beside(planes, out[:, None])


def restore_beside(planes: Sequence[Opened], out: Words) -> None:
    """The same of several variables, for each block one after the other.

    Fills `out`, uint16 (blocks, variables, records, channels), in any order of memory.
    """
    first = planes[0]
    if not isinstance(first, bytes | Deflated) and all(plane == first for plane in planes):
        out[...] = NAN if first is None else first
        return
    blocks, variables, records, channels = out.shape
    some = max(_TOGETHER // max(variables * records * channels, 1), 1)
    if some < blocks:  # what is computed in between stays in the processor's cache
        for block in range(0, blocks, some):
            part = planes[block * variables : (block + some) * variables]
            restore_beside(part, out[block : block + some])
        return
    in_place = variables == 1 and channels >= _WIDE
    # Record by record: what follows then goes through contiguous memory.
    words = (
        out[:, 0].transpose(1, 0, 2)
        if in_place
        else np.empty((records, len(planes), channels), np.uint16)
    )
    whole = [inflate(*plane) if isinstance(plane, Deflated) else plane for plane in planes]
    deflated = [place for place, plane in enumerate(whole) if isinstance(plane, bytes)]
    for place, plane in enumerate(whole):
        if not isinstance(plane, bytes):
            words[:, place] = NAN if plane is None else plane
    raw = b"".join(plane for plane in whole if isinstance(plane, bytes))
    if len(deflated) == len(planes):
        _undo(raw, words)
    elif deflated:
        undone = np.empty((records, len(deflated), channels), np.uint16)
        _undo(raw, undone)
        words[:, deflated] = undone
    if not in_place:
        out[...] = words.reshape(records, blocks, variables, channels).transpose(1, 2, 0, 3)


def _undo(raw: bytes, words: Words) -> None:
    """Joins the low and high bytes of inflated planes and undoes the differences.

    Fills `words` (records, planes, channels).
    """
    records, planes, channels = words.shape
    cells = np.frombuffer(raw, np.uint8).reshape(planes, 2, records, channels)
    words[...] = cells[:, 0].transpose(1, 0, 2)
    # Mostly, only the first record has high bytes.
    has_high = np.bitwise_or.reduce(cells[:, 1], axis=0).any(axis=1)
    for record in np.flatnonzero(has_high).tolist():
        words[record] |= cells[:, 1, record].astype(np.uint16) << 8
    sign = words & 1
    words >>= 1
    words ^= np.negative(sign, out=sign)
    np.cumsum(words[0], axis=1, dtype=np.uint16, out=words[0])
    for record in range(1, records):
        words[record] += words[record - 1]


def deflate(raw: bytes, level: int) -> bytes:
    """Deflates bytes, unless they become so much smaller that a reader may take them for a bomb."""
    deflated = zlib.compress(raw, level)
    bomb = len(raw) > _LARGE and len(raw) > _MOST_DEFLATED * len(deflated)
    return zlib.compress(raw, 0) if bomb else deflated


def inflate(data: bytes, size: int) -> bytes:
    """Inflates to exactly `size` bytes, else raises DamagedRecord; never allocates more."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data, size + 1)
    except zlib.error as error:
        raise varint.damaged("deflated bytes", str(error)) from None
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise varint.damaged(f"{size} bytes once inflated", f"at least {len(raw)}")
    return raw


def _verify(data: bytes, size: int) -> None:
    """Inflates piece by piece and keeps nothing; raises DamagedRecord as `inflate` does."""
    stream = zlib.decompressobj()
    total = 0
    try:
        while total <= size and not stream.eof and (piece := stream.decompress(data, _PIECE)):
            total += len(piece)
            data = stream.unconsumed_tail
    except zlib.error as error:
        raise varint.damaged("deflated bytes", str(error)) from None
    if total != size or not stream.eof or stream.unused_data:
        raise varint.damaged(f"{size} bytes once inflated", f"at least {total}")
