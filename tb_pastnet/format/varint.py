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
    """Reads numbers and bytes from an untrusted payload, front to back.

    `at` is the position of the next byte of the payload.
    """

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.at = 0

    def number(self, most: int = (1 << 64) - 1) -> int:
        """Reads a number from 0 on; raises DamagedRecord if it is cut off or over `most`."""
        at, payload = self.at, self.payload
        if at + 2 <= len(payload):  # most numbers take one or two bytes
            number, second = payload[at], payload[at + 1]
            if number < 0x80:
                self.at = at + 1
            elif second < 0x80:
                number += (second - 1) << 7
                self.at = at + 2
            if self.at > at and number <= most:
                return number
            self.at = at
        return self._long_number(most)

    def _long_number(self, most: int) -> int:
        value = 0
        for shift in _SHIFTS:
            if self.at >= len(self.payload):
                raise damaged("1 more bytes", "0")
            byte = self.payload[self.at]
            self.at += 1
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
            rest = self.payload[self.at : self.at + count - place]
            if len(rest) == count - place and rest.isascii():
                self.at += len(rest)
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
        end = self.at + count
        if end > len(self.payload):
            raise damaged(f"{count} more bytes", str(self.left))
        piece = self.payload[self.at : end]
        self.at = end
        return piece

    def skip(self, expected: bytes) -> bool:
        """Whether these bytes come next; if they do, they are read."""
        if not self.payload.startswith(expected, self.at):
            return False
        self.at += len(expected)
        return True

    @property
    def left(self) -> int:
        """Number of bytes not read yet."""
        return len(self.payload) - self.at

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
