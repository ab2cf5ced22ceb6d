"""Messages of any version and kind, as docs/reference/record_format.md says: independent of the codec."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.format import planes, varint

EIGHT = (
    "norm",
    "past_norm",
    "delta_norm",
    "delta_max",
    "changed",
    "nonfinite",
    "kept",
    "trainable",
)
"""The statistics of version 1, with a number each."""

NUMBERED = (*EIGHT, "nonfinite_count", "moved")


NEAR = {"past_norm": "norm", "delta_max": "delta_norm"}


def sealed(payload: bytes, *, version: int, kind: int, tag: str, step: int, lineage: int) -> bytes:
    """A message whose checksum holds."""
    place = struct.pack("<BBHqI", version, kind, 0, step, lineage) + tag.encode() + b"\0"
    crc = zlib.crc32(place + payload)
    return struct.pack("<4sBBHI", b"PAST", version, kind, 0, crc) + payload


def as_counts(codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """Count codes of the whole numbers that codes of values stand for, NaN (32766) aside."""
    # None is of 2**60 or more elements.
    numbers = np.rint(2.0 ** (np.clip(codes, -9999, 960) / 16.0)) * (codes != -32768)
    above = np.minimum(16384 + 512 * np.log2(np.maximum(numbers, 1) / 49152), 32765)
    found = np.where(numbers <= 49152, numbers - 32768, np.rint(above))
    return np.where(codes == 32766, codes, found).astype(np.int16)


def counted(data: bytes) -> bytes:
    """Bytes behind their number."""
    return varint.encode([len(data)]) + data


def heads(names: Sequence[str], near: Mapping[str, str] = NEAR) -> bytes:
    """The heads of planes; names of a later table are "number N"."""
    written = b""
    for name in names:
        predicted = name in near
        if name in NUMBERED:
            written += varint.encode([2 * (NUMBERED.index(name) + 1) + predicted])
        elif name.startswith("number "):
            written += varint.encode([2 * int(name[7:]) + predicted])
        else:
            written += bytes([predicted]) + counted(name.encode())
        if predicted:
            written += varint.encode([names.index(near[name])])
    return counted(written)


def block_payload(
    codes: Mapping[str, npt.NDArray[np.int16]],
    version: int,
    near: Mapping[str, str] = NEAR,
    first: int = 1,
) -> bytes:
    """Records of every step up to that of the event.

    Args:
        codes: of each statistic, int16 (records, channels).
        version: 1 has no heads: all eight have to be there, in order.
        near: which statistic predicts which.
        first: the number of the first record.
    """
    records, channels = next(iter(codes.values())).shape
    ones = [1] * records
    numbers = varint.encode_signed([first, *ones[1:], 0, *ones[1:], *ones])
    cells = [codes[name] - (codes[near[name]] if name in near else 0) for name in codes]
    return b"".join(
        [
            varint.encode([channels, records]),
            numbers,
            heads(list(codes), near) if version > 1 else b"",
            *(planes.pack(plane) for plane in cells),
        ]
    )


def block(
    codes: Mapping[str, npt.NDArray[np.int16]],
    *,
    version: int = 2,
    near: Mapping[str, str] = NEAR,
    **place: Any,
) -> bytes:
    """The message of `block_payload`."""
    return sealed(block_payload(codes, version, near), version=version, kind=1, **place)
