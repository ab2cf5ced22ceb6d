"""Proof of a resume: what of masks and held values is as it was when they were saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Sums = npt.NDArray[np.uint32]


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
        """Compares check sums.

        Args:
            sums: saved ones and those of now, by variable, uint32 (channels,).
        """
        differ = {name: np.flatnonzero(saved != now) for name, (saved, now) in sums.items()}
        return cls(
            tuple(name for name, channels in differ.items() if not channels.size),
            {name: tuple(found.tolist()) for name, found in differ.items() if found.size},
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
