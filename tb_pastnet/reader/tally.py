"""How many channels of a variable are in each state, record by record, at every threshold.

The records of a run are much larger than a cache, a tally is a fraction of that. Each moving
channel of each record is reduced to the limit from which it is quiet, see
`channel_states.quiet_limits`, and its relative delta. Which channel it was doesn't matter, so these
are sorted, and then they pack well. All other channels are only counted.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.quantize import CODES_PER_OCTAVE, INFINITE, NAN, ZERO, Codes, dequantize
from tb_pastnet.format import planes, varint
from tb_pastnet.reader.arrays import Integers

_LEVEL = 1
_WIDTH = len(channel_states.NAMES) + 1
_ELSEWHERE = ZERO
"""The limit of a channel that is counted in the table: every threshold reaches it."""


_CODES = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
"""All codes, by their bits."""

_SHARE_OF_CODE = np.minimum(dequantize(_CODES), 1.0).astype(np.float32)
"""The relative delta of each code, 1 at most."""

DECADES = (-7, -1)
"""Powers of ten at the ends of the distribution of relative deltas; the ends count the rest."""

BINS = 24

_LOW, _HIGH = DECADES
_LOGARITHM = _CODES * np.log10(2) / CODES_PER_OCTAVE
_BIN = np.floor((_LOGARITHM - _LOW) * BINS / (_HIGH - _LOW))
_BIN_OF_CODE = np.clip(_BIN, 0, BINS - 1).astype(np.int64)
"""The bin of the distribution of each code; `BINS` for those in none."""
_BIN_OF_CODE[np.isin(_CODES, [ZERO, NAN, INFINITE])] = BINS


class StateCounts(NamedTuple):
    """How many channels are in each state: for one layer at its records, or many at a run's."""

    counts: npt.NDArray[Any]  # (…, records, states), channels in each state
    violated: npt.NDArray[Any]  # (…, records), channels that moved though held
    # float32 (…, records), mean over moving channels of the relative delta, each taken as 1 at
    # most; NaN where none moves
    mean_delta: npt.NDArray[Any]

    def at(self, rows: Any) -> StateCounts:
        """The same at some records, as NumPy indexes them."""
        return StateCounts(*(array[rows] for array in self))


@dataclass(frozen=True, eq=False)
class Tally:
    """The counts of one variable at every threshold; see `counts`."""

    channels: int  # of the variable
    records: int  # how many there are
    # deflated uint32 (records, states + 1): channels whose state no threshold changes, and those
    # that moved though held
    still: bytes
    # the limit and the relative delta of all others, (channels, records) each, sorted by record
    packed: bytes
    deltas: Integers  # (`BINS`,), how many of these relative deltas are in each part of `DECADES`

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return len(self.still) + len(self.packed) + 1024

    def counts(self, threshold: float) -> StateCounts:
        """The counts for a threshold of the relative delta; with 0 no channel is ever quiet."""
        table = np.frombuffer(zlib.decompress(self.still), np.uint32).reshape(-1, _WIDTH)
        counts, violated = table[:, :-1].copy(), table[:, -1]
        mean = np.full(self.records, np.nan, np.float32)
        if self.records and self.channels:
            limits, deltas = self._unpacked()
            moving = limits > channel_states.limit_of(threshold)
            trained = self.channels - counts.sum(axis=1)
            counts[:, channel_states.MOVING] = np.count_nonzero(moving, axis=0)
            counts[:, channel_states.QUIET] = trained - counts[:, channel_states.MOVING]
            shares = _SHARE_OF_CODE[deltas.view(np.uint16)]
            moving &= ~np.isnan(shares)
            number = np.count_nonzero(moving, axis=0)
            total = np.where(moving, shares, 0).sum(axis=0, dtype=np.float64)
            np.divide(total, number, out=mean, where=number > 0, casting="same_kind")
        return StateCounts(counts, violated, mean)

    def _unpacked(self) -> tuple[Codes, Codes]:
        reader = varint.Reader(self.packed)
        limits = planes.unpack(reader, self.channels, self.records)
        return limits, limits + planes.unpack(reader, self.channels, self.records)


def make_tally(before_quiet: channel_states.States, delta: Codes) -> Tally:
    """Counts the channels in each state, record by record."""
    records, channels = before_quiet.shape
    table = np.zeros((records, _WIDTH), np.uint32)
    plain = before_quiet & np.uint8(channel_states.STATE)
    moving = plain == channel_states.MOVING
    for state in np.unique(plain[~moving]):
        table[:, state] = np.count_nonzero(plain == state, axis=1)
    if (before_quiet != plain).any():
        table[:, -1] = np.count_nonzero(before_quiet & np.uint8(channel_states.VIOLATED), axis=1)
    limits = np.where(
        moving, channel_states.quiet_limits(delta, before_quiet), np.int16(_ELSEWHERE)
    )
    still = zlib.compress(table.tobytes(), _LEVEL)
    packed = _packed(limits, delta) if records and channels else b""
    bins = np.bincount(_BIN_OF_CODE[delta[moving].view(np.uint16)], minlength=BINS + 1)
    return Tally(channels, records, still, packed, bins[:BINS])


def _packed(limits: Codes, delta: Codes) -> bytes:
    """Limits and relative deltas, (records, channels) each."""
    # One number per channel, so one sort orders both.
    keys = limits.astype(np.int32) << 16 | delta.view(np.uint16)
    keys.sort(axis=1)
    limits = (keys.T >> 16).astype(np.int16)
    return planes.pack(limits) + planes.pack(keys.T.astype(np.int16) - limits)
