"""The framing of TFRecord, which event files are made of: length, checksum, payload, checksum.

As TensorFlow's `record_writer.h` lays it out, little-endian::

    0     8  length of the payload
    8     4  masked CRC-32C of these 8 bytes
    12       payload
    then  4  masked CRC-32C of the payload

A length that fails its checksum ends a file: the begin of the next frame is unknown, and neither
loader of TensorBoard looks for it. A payload that fails its checksum is still a frame, as for
TensorBoard's fast loader.
"""

from __future__ import annotations

import enum
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import google_crc32c

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD = _LENGTH.size + _CRC.size

_AROUND = _HEAD + _CRC.size
"""Bytes of a frame that are not its payload."""

MOST_BYTES = (1 << 31) - 1
"""Bytes of a payload: protocol buffers are smaller than 2 GiB."""


class Why(enum.Enum):
    """Why the rest of a file can't be read."""

    TORN = "it ends in the middle of a record: cut off, or still being written"
    LENGTH = "the length of a record fails its checksum"
    LARGE = "a record is larger than any event can be"
    EVENT = "a record is not an event"
    WALL_TIME = "the wall time of an event is not a number"


class Frame(NamedTuple):
    """One frame: its offset in the file, its bytes, maybe altered, and their stored checksum."""

    offset: int
    payload: bytes
    checksum: int

    @property
    def intact(self) -> bool:
        """Whether the payload has its checksum."""
        return self.checksum == masked_crc(self.payload)


class Rest(NamedTuple):
    """The end of a file: from `offset` on nothing can be read."""

    offset: int
    why: Why


def read_frames(stream: BinaryIO, start: int = 0) -> Iterator[Frame | Rest]:
    """Reads the frames of a file, untrusted, from the beginning of a frame on.

    No more is allocated than the file's size. What is appended during reading is left out. The last
    item is the rest, if there is one.
    """
    stream.seek(0, os.SEEK_END)
    size = stream.tell()  # TensorFlow's `seek` doesn't return it
    stream.seek(start)
    offset = start
    while offset < size:
        result = _read_frame(stream, offset, size - offset)
        if isinstance(result, Why):
            yield Rest(offset, result)
            return
        yield result
        offset += _AROUND + len(result.payload)


def read_again(stream: BinaryIO, offset: int, length: int, checksum: int) -> bytes | None:
    """The payload of a frame that was read before; None if it isn't there any more.

    It may have been altered since, as any payload.
    """
    stream.seek(offset)
    frame = stream.read(_AROUND + length)
    if len(frame) < _AROUND + length or _CRC.unpack_from(frame, _HEAD + length)[0] != checksum:
        return None
    return frame[_HEAD : _HEAD + length]


def _read_frame(stream: BinaryIO, offset: int, left: int) -> Frame | Why:
    head = stream.read(_HEAD)
    if len(head) < _HEAD:
        return Why.TORN
    length, checksum = head[: _LENGTH.size], head[_LENGTH.size :]
    if _CRC.unpack(checksum)[0] != masked_crc(length):
        return Why.LENGTH
    size = int(_LENGTH.unpack(length)[0])
    if size > left - _AROUND:
        return Why.TORN
    if size > MOST_BYTES:
        return Why.LARGE
    data = stream.read(size + _CRC.size)
    if len(data) < size + _CRC.size:
        return Why.TORN
    return Frame(offset, data[:size], _CRC.unpack_from(data, size)[0])


def frame(payload: bytes) -> bytes:
    """Puts bytes into a frame."""
    length = _LENGTH.pack(len(payload))
    checksums = (_CRC.pack(masked_crc(data)) for data in (length, payload))
    return b"".join((length, next(checksums), payload, next(checksums)))


def masked_crc(data: bytes) -> int:
    """The CRC-32C of bytes, masked as TFRecord stores it."""
    crc = int(google_crc32c.value(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
