"""What the records alone say of held weights: channels that moved although held, shares pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.quantize import ZERO, Codes, dequantize
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, KEPT
from tb_pastnet.reader.notes import Notes

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Marks:
    """The channels that bear the mark `VIOLATED` at any record.

    Attributes:
        channels: int64 (marked,), increasing.
        first: int64 (marked,), position of the first record that bears it.
        last: int64 (marked,), of the last one.
        changed: float64 (marked,), the largest share of weights that changed in one such record.
        largest: float64 (marked,), the largest change of a weight in one such record.
    """

    channels: Integers
    first: Integers
    last: Integers
    changed: Floats
    largest: Floats

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return 5 * self.channels.nbytes


class Marked(NamedTuple):
    """The marks of one variable's records.

    Attributes:
        steps: int64 (records,), increasing.
        marks: which of them bear it.
        notes: what could not be read, and why.
    """

    steps: Integers
    marks: Marks
    notes: Notes


_NOWHERE = np.zeros(0, np.int64)
_NONE = Marks(_NOWHERE, _NOWHERE, _NOWHERE, np.zeros(0), np.zeros(0))

UNMARKED = Marked(_NOWHERE, _NONE, Notes())
"""No record bears a mark."""


def find_marks(state: states.States, codes: Codes, first_channel: int = 0) -> Marks:
    """Finds the marked channels.

    Args:
        state: uint8 (records, channels).
        codes: int16 (8, records, channels), of the same.
        first_channel: the number of the first of them.
    """
    marked = (state & np.uint8(states.VIOLATED)) != 0
    if not marked.any():
        return _NONE
    at = np.flatnonzero(marked.any(axis=0))
    marked = marked[:, at]
    last = len(marked) - 1 - marked[::-1].argmax(axis=0)
    # ZERO is the smallest code, so that what isn't marked never is the largest.
    changed, largest = (
        np.where(marked, codes[row][:, at], np.int16(ZERO)).max(axis=0)
        for row in (CHANGED, DELTA_MAX)
    )
    first = marked.argmax(axis=0)
    return Marks(at + first_channel, first, last, dequantize(changed), dequantize(largest))


def join_marks(parts: Sequence[Marks]) -> Marks:
    """Joins the marks of consecutive channels."""
    if not parts:
        return _NONE
    columns = ("channels", "first", "last", "changed", "largest")
    return Marks(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def pruned_weights(codes: Codes, elements: int) -> tuple[Floats, Floats]:
    """Estimates from the recorded shares how many weights the kept mask holds at zero.

    Args:
        codes: int16 (8, records, channels).
        elements: of each channel.

    Returns:
        The number, float64 (records,), and how many weights lie in channels that are kept in part:
        the shares of these are stored within 4.5 %, all others exactly.
    """
    kept = codes[KEPT]
    records = len(kept)
    if not (kept != 0).any():
        return np.zeros(records), np.zeros(records)
    partial = (kept != 0) & (kept != ZERO)
    weights = np.rint(np.minimum(dequantize(kept), 1.0) * elements)
    # A share that isn't 0 or 1 never means all or nothing.
    weights = np.where(partial, np.clip(weights, min(1, elements), max(elements - 1, 0)), weights)
    pruned: Floats = (elements - weights).sum(axis=1)
    return pruned, elements * partial.sum(axis=1).astype(np.float64)
