"""Whole numbers in few bytes: LEB128, as protocol buffers use it, and zigzag for signs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import DamagedRecord

Integers = npt.NDArray[np.int64]

_SHIFTS = range(0, 70, 7)


def encode(numbers: Iterable[int]) -> bytes:
    """Writes non-negative numbers below 2**64, seven bits a byte, lowest first."""
    out = bytearray()
    for number in numbers:
        left = int(number)
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)
    return bytes(out)


def encode_signed(numbers: Iterable[int]) -> bytes:
    """Writes numbers of either sign below 2**63 in magnitude: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return encode((int(n) << 1) if n >= 0 else ((-int(n) << 1) - 1) for n in numbers)


class Reader:
    """Reads numbers and bytes from an untrusted payload, front to back."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def number(self, most: int = (1 << 64) - 1) -> int:
        """Reads a number from 0 on; raises DamagedRecord if it is cut off or over `most`."""
        value = 0
        for shift in _SHIFTS:
            if self._at >= len(self._payload):
                raise damaged("1 more bytes", "0")
            byte = self._payload[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > most:
                    raise damaged(f"a number of at most {most}", str(value))
                return value
        raise damaged("a number of at most 10 bytes", "a longer one")

    def signed(self) -> int:
        """Reads a number of either sign."""
        value = self.number()
        return -((value + 1) >> 1) if value & 1 else value >> 1

    def signed_array(self, count: int) -> Integers:
        """Reads numbers of either sign, as int64; raises DamagedRecord if one doesn't fit."""
        values = np.empty(count, np.int64)
        for place in range(count):
            # Differences are small: mostly, all that is left fits in one byte each.
            rest = self._payload[self._at : self._at + count - place]
            if len(rest) == count - place and rest.isascii():
                self._at += len(rest)
                zigzag = np.frombuffer(rest, np.uint8).astype(np.int64)
                values[place:] = (zigzag >> 1) ^ -(zigzag & 1)
                break
            value = self.signed()
            if abs(value) >= 1 << 62:
                raise damaged("numbers below 2**62", "a larger one")
            values[place] = value
        return values

    def take(self, count: int) -> bytes:
        """Reads `count` bytes; raises DamagedRecord if fewer are left."""
        end = self._at + count
        if end > len(self._payload):
            raise damaged(f"{count} more bytes", str(self.left))
        piece = self._payload[self._at : end]
        self._at = end
        return piece

    @property
    def left(self) -> int:
        """Number of bytes not read yet."""
        return len(self._payload) - self._at

    def end(self) -> None:
        """Raises DamagedRecord if bytes are left over."""
        if self.left:
            raise damaged("the end of the record", f"{self.left} more bytes")


def increase(numbers: npt.ArrayLike) -> bool:
    """Whether numbers increase strictly."""
    return bool((np.diff(np.asarray(numbers, np.int64)) > 0).all())


def damaged(expected: str, got: str) -> DamagedRecord:
    """The error for an invalid layout although the checksum is right."""
    return DamagedRecord(
        f"Could not decode a record: expected {expected}, got {got}. The record is skipped."
    )
