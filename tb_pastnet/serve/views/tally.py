"""How many channels of a variable are in each state, column by column, at every threshold.

The records of a run are much larger than a cache, a tally is some ten kilobytes: each channel of
each column is reduced to the limit from which on it is settled (see `core.crossing`) and to its
largest delta. Which channel it was doesn't matter, so that these can be sorted, and then they pack
well. Channels that no threshold changes are counted at once; the few that are in a third state
between moving and settled are listed.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import planes, pooling, states, varint
from tb_pastnet.core.crossing import ALWAYS, NEVER, Crossing, crossing, settling
from tb_pastnet.core.quantize import Codes, dequantize
from tb_pastnet.serve.views.rows import Row

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LEVEL = 1
_CELL_BYTES = 16
_WIDTH = len(states.NAMES) + 2


def _shares() -> npt.NDArray[np.float32]:
    """The relative delta of each code, 1 at most, by the code's bits."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    return np.minimum(dequantize(codes), 1.0).astype(np.float32)


_SHARE_OF_CODE = _shares()


@dataclass(frozen=True, eq=False)
class _Cells:
    """Channels of columns, one by one.

    Attributes:
        column: int64 (cells,).
        limits: of each, (cells,) instead of (columns, channels).
        largest: int16 (cells,), the code of its largest delta.
    """

    column: Integers
    limits: Crossing
    largest: Codes


_NONE = np.zeros(0, np.int16)
_NO_CELLS = _Cells(_NONE.astype(np.int64), Crossing(_NONE, _NONE, _NONE.astype(np.uint8)), _NONE)


@dataclass(frozen=True, eq=False)
class Tally:
    """The counts of one variable at every threshold; see `row`.

    Attributes:
        channels: of the variable.
        columns: number of columns.
        still: deflated uint32 (columns, states + 2): channels whose state no threshold changes,
            those that moved though held, those with NaN or infinity.
        listed: channels that are in a third state between moving and settled.
        packed: the limit and the largest delta of all others, (channels, filled columns) each,
            sorted by column; those that are counted elsewhere come first, with a limit of `ALWAYS`.
    """

    channels: int
    columns: int
    still: bytes
    listed: _Cells
    packed: bytes

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return len(self.still) + len(self.packed) + _CELL_BYTES * len(self.listed.column) + 1024

    def row(self, threshold: float) -> Row:
        """The counts where quiet means under this relative delta.

        Args:
            threshold: relative delta; 0 or less: no channel is ever quiet.
        """
        limit = states.quiet_limit(threshold)
        table = np.frombuffer(zlib.decompress(self.still), np.uint32).reshape(-1, _WIDTH)
        counts, violated, nonfinite = table[:, :-2].astype(np.int64), table[:, -2], table[:, -1]
        number, total = np.zeros(self.columns, np.int64), np.zeros(self.columns)
        filled = np.flatnonzero(counts[:, states.NO_DATA] == 0)
        self._count_listed(limit, counts, number, total)
        if len(filled) and self.channels:
            below, largest = self._unpacked(len(filled))
            moving = below > limit
            known = self.channels - counts[filled].sum(axis=1)
            found = np.count_nonzero(moving, axis=0)
            counts[filled, states.MOVING] += found
            counts[filled, states.SETTLED] += known - found
            shares = _SHARE_OF_CODE[largest.view(np.uint16)]
            moving &= ~np.isnan(shares)
            number[filled] += np.count_nonzero(moving, axis=0)
            total[filled] += np.where(moving, shares, 0).sum(axis=0, dtype=np.float64)
        mean = np.full(self.columns, np.nan)
        np.divide(total, number, out=mean, where=number > 0)
        return Row(counts.astype(np.uint32), violated, nonfinite, mean.astype(np.float32))

    def _unpacked(self, columns: int) -> tuple[Codes, Codes]:
        reader = varint.Reader(self.packed)
        below = planes.unpack(reader, self.channels, columns)
        return below, below + planes.unpack(reader, self.channels, columns)

    def _count_listed(
        self, limit: int, counts: Integers, number: Integers, total: npt.NDArray[np.float64]
    ) -> None:
        some = self.listed.limits
        told = np.where(some.settled_from <= limit, np.uint8(states.SETTLED), some.between)
        told[limit < some.moving_below] = states.MOVING
        np.add.at(counts, (self.listed.column, told), 1)
        shares = _SHARE_OF_CODE[self.listed.largest.view(np.uint16)]
        counted = (told == states.MOVING) & ~np.isnan(shares)
        np.add.at(number, self.listed.column[counted], 1)
        np.add.at(total, self.listed.column[counted], shares[counted])


def make_tally(
    told: states.States,
    delta: Codes,
    steps: Integers,
    edges: Integers,
    counted: slice = slice(None),
) -> Tally:
    """Counts the channels in each state, column by column.

    Args:
        told: uint8 (records, channels), their states with none settled, with marks.
        delta: int16 (records, channels), codes of their relative delta.
        steps: int64 (records,), increasing.
        edges: int64 (columns,), the first step of each column; earlier records go to the first.
        counted: which records; those before still tell what has settled.
    """
    settled = settling(delta, told)[counted]
    told, delta, steps = told[counted], delta[counted], steps[counted]
    channels = told.shape[1]
    first = np.searchsorted(steps, edges)
    first[:1] = 0
    filled = np.flatnonzero(first < np.append(first[1:], len(steps)))
    table = np.zeros((len(edges), _WIDTH), np.uint32)
    table[:, states.NO_DATA] = channels
    table[filled, states.NO_DATA] = 0
    starts = first[filled]
    if not len(filled) or not channels:
        return Tally(channels, len(edges), _deflated(table), _NO_CELLS, b"")
    plain = told & np.uint8(states.STATE)
    if (told != plain).any():
        marks = np.bitwise_or.reduceat(told, starts, axis=0)
        table[filled, -2] = np.count_nonzero(marks & states.VIOLATED, axis=1)
        table[filled, -1] = np.count_nonzero(marks & states.NONFINITE, axis=1)
    limits = crossing(settled, plain, starts)
    largest = pooling.pool_delta(delta, starts)
    third = limits.settled_from != limits.moving_below
    fixed = third & (limits.moving_below == ALWAYS) & (limits.settled_from == NEVER)
    for state in np.unique(limits.between[fixed]):
        table[filled, state] = np.count_nonzero(fixed & (limits.between == state), axis=1)
    listed = _listed(filled, third & ~fixed, limits, largest)
    packed = _packed(np.where(third, ALWAYS, limits.moving_below), largest)
    return Tally(channels, len(edges), _deflated(table), listed, packed)


def _listed(filled: Integers, which: Flags, limits: Crossing, largest: Codes) -> _Cells:
    at = np.nonzero(which)
    some = Crossing(limits.moving_below[at], limits.settled_from[at], limits.between[at])
    return _Cells(filled[at[0]], some, largest[at])


def _packed(below: Codes, largest: Codes) -> bytes:
    """Limits and largest deltas, (columns, channels) each."""
    # One number a channel, so that one sort orders both.
    keys = below.astype(np.int32) << 16 | largest.view(np.uint16)
    keys.sort(axis=1)
    limits = (keys.T >> 16).astype(np.int16)
    return planes.pack(limits) + planes.pack(keys.T.astype(np.int16) - limits)


def _deflated(table: npt.NDArray[np.uint32]) -> bytes:
    return zlib.compress(table.tobytes(), _LEVEL)
