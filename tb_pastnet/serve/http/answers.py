"""Answers: JSON, containers of arrays, or CSV; with an ETag of their content, and packed.

JSON is valid for every parser: no NaN, no Infinity, no lone surrogates. A container is a JSON
header, then numbers, little-endian::

    u32              length n of the header
    n bytes          the header, JSON in UTF-8; its "sections" have name, dtype, shape and offset
    zeros            up to a multiple of 8
    sections         one after the other, each padded to 8; offsets count from the first section

For several runs there is one container for each, in order. A page reads a section as a typed array
without copying: every offset is a multiple of 8.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.sections import Sections, row_by_row
from tb_pastnet.reader.threads import in_threads

SCHEMA = 5
"""Version of all answers; it grows with each change that an older page can't read."""

JSON = "application/json"
BINARY = "application/octet-stream"
CSV = "text/csv"

_NAME_BYTES = 512
_WORTH_PACKING = 1024
_SAVES = 0.9
_CODES = ("u1", "u2", "i2", "u4", "f4", "f8")
_LENGTH = struct.Struct("<I")
_ALIGN = 8

_LEVEL = 1
_PIECE = 1 << 20
_SAMPLES = 4
_SAMPLE = 1 << 12
_WORTH_DEFLATING = 1 / 3
# Deflate, no name, no time, so equal bytes are packed to equal ones; level 1, unknown system.
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_GZIP_TAIL = struct.Struct("<II")


@dataclass(frozen=True)
class Answer:
    """What a route answers."""

    body: bytes  # the bytes, gzipped where `packed`
    content_type: str  # set by hand; never guessed from a name
    tag: str  # the ETag, from the content
    packed: bool = False  # whether the body is gzipped
    headers: tuple[tuple[str, str], ...] = ()  # other headers
    notes: Notes = field(default_factory=Notes)  # what could not be read for it, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return _NAME_BYTES + len(self.body)


@dataclass(frozen=True)
class NotModified:
    """An earlier answer that may be gone: a 304 needs only its ETag."""

    tag: str  # its ETag
    make: Callable[[], Answer]  # makes it


def answer(body: bytes, content_type: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Makes an answer: with an ETag of its content, packed if that pays.

    TensorBoard packs text itself, for clients that accept it.
    """
    packed = b""
    if content_type == BINARY and len(body) >= _WORTH_PACKING:
        packed = gzipped(body)
    if len(packed) >= _SAVES * len(body):
        packed = b""
    # The ETag must be weak: it covers the packed and the plain bytes.
    tag = f'W/"{hashlib.blake2b(packed or body, digest_size=12).hexdigest()}"'
    return Answer(packed or body, content_type, tag, packed=bool(packed), headers=headers)


def json_answer(body: Mapping[str, Any], lost: Notes) -> Answer:
    """An answer of JSON values, and what could not be read for it."""
    return replace(answer(dumps({"schema": SCHEMA, **body}), JSON), notes=lost)


def binary_answer(*parts: Sections) -> Answer:
    """An answer of JSON values and arrays, part by part, and what could not be read."""
    body = b"".join(pack({"schema": SCHEMA, **header}, arrays) for header, arrays, _ in parts)
    return replace(answer(body, BINARY), notes=sum((lost for *_, lost in parts), Notes()))


def csv_answer(pieces: Iterable[str]) -> Answer:
    """A table, given some lines at a time."""
    # Without a file name: ours would override the page's, which contains the run.
    disposition = ("Content-Disposition", "attachment")
    return answer("".join(pieces).encode("utf-8", "replace"), CSV, (disposition,))


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
        raw = row_by_row(array.astype(f"<{code}", order="K", copy=False)).view(np.uint8).data
        entries.append({"name": name, "dtype": code, "shape": list(array.shape), "offset": offset})
        parts += [raw, _padding(array.nbytes)]
        offset += array.nbytes + len(parts[-1])
    text = dumps({**header, "sections": entries})
    return b"".join([_LENGTH.pack(len(text)), text, _padding(_LENGTH.size + len(text)), *parts])


def _padding(size: int) -> bytes:
    return b"\0" * (-size % _ALIGN)


def dumps(value: Any) -> bytes:
    """Writes JSON in ASCII; NaN and infinity become null."""
    try:
        # The usual case, without a copy.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def gzipped(body: bytes) -> bytes:
    """Packs bytes as gzip does, in several threads at once: any client unpacks them as usual.

    Pieces are deflated separately and end at a byte each, so they make one stream. They can't refer
    to each other, which costs 32 KB of matches per MB: negligible. A piece that would shrink by
    less than a third, judging by samples, is stored as it is: on most networks it arrives sooner
    than it could be packed and unpacked.
    """
    ends = range(_PIECE, len(body) + _PIECE, _PIECE) if body else (0,)

    def deflated(end: int) -> bytes:
        piece = memoryview(body)[max(end - _PIECE, 0) : end]
        stream = zlib.compressobj(_LEVEL if _shrinks(piece) else 0, zlib.DEFLATED, -zlib.MAX_WBITS)
        last = end >= len(body)
        return stream.compress(piece) + stream.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)

    pieces = in_threads(deflated, ends)
    # Computed here, while the threads deflate.
    tail = _GZIP_TAIL.pack(zlib.crc32(body), len(body) & 0xFFFFFFFF)
    return b"".join([_GZIP_HEAD, *pieces, tail])


def _shrinks(piece: memoryview) -> bool:
    """Whether packing a piece pays."""
    starts = range(0, len(piece), max(len(piece) // _SAMPLES, _SAMPLE))
    sample = b"".join(piece[start : start + _SAMPLE] for start in starts)
    return len(zlib.compress(sample, _LEVEL)) <= (1 - _WORTH_DEFLATING) * len(sample)
