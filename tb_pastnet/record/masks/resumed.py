"""Proof of a resume: what of masks and held values is as it was when they were saved."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.selection import Mask
from tb_pastnet.record.masks.packed import Sums


class Resumed(NamedTuple):
    """What was compared after masks were loaded, by check sums of each channel's held values.

    Attributes:
        equal: variables whose masks are back and whose held values are bit-identical.
        changed: of each other variable the channels whose held values differ from those saved.

    Example:
        >>> report = Resumed(("dense/kernel",), {"dense_1/kernel": (3,)})
        >>> print(report)
        1 of 2 variables with masks are back as saved. Held values differ in 'dense_1/kernel',
        channels 3.
    """

    equal: tuple[str, ...]
    changed: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, sums: Mapping[str, tuple[Sums, Sums]]) -> Resumed:
        """Compares saved check sums with those of the current values, by variable."""
        differ = {name: np.flatnonzero(saved != current) for name, (saved, current) in sums.items()}
        return cls(
            tuple(name for name, channels in differ.items() if not channels.size),
            {name: tuple(channels.tolist()) for name, channels in differ.items() if channels.size},
        )

    def __bool__(self) -> bool:
        """Whether everything is back as it was."""
        return not self.changed

    def __str__(self) -> str:
        count = len(self.equal) + len(self.changed)
        text = f"{len(self.equal)} of {count} variables with masks are back as saved."
        for name, channels in self.changed.items():
            shown = ", ".join(map(str, channels[:8])) + (", …" if len(channels) > 8 else "")
            text += f" Held values differ in {name!r},\nchannels {shown}."
        return text


def check_sums(values: npt.NDArray[Any], through: Mask, axis: ChannelAxis) -> Sums:
    """CRC-32 of the bytes of the held elements of each channel."""
    rows = zip(np.ascontiguousarray(axis.split(values)), axis.split(~through), strict=True)
    return np.array([zlib.crc32(row[held].tobytes()) for row, held in rows], np.uint32)
