"""How many channels of variables are in each state, record by record, at every threshold.

The records of a run are much larger than a cache, a tally is a fraction of that. Each moving
channel of each record is reduced to the limit from which it is quiet, see
`channel_states.quiet_limits`, and its relative delta. Which channel it was doesn't matter, so these
are sorted, and then they pack well. All other channels are only counted. The tallies of a small run
aren't packed: another threshold then takes hardly any time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.quantize import CODES_PER_OCTAVE, INFINITE, NAN, ZERO, Codes, dequantize
from tb_pastnet.format import planes, varint
from tb_pastnet.reader.arrays import Flags, Floats, Integers

CELL_BYTES = 4
"""Bytes of a record of a channel in a tally that isn't packed."""

_LEVEL = 1
_SLAB = 1 << 18
_PIECE = 1 << 20
_WIDTH = len(channel_states.NAMES) + 1
_ELSEWHERE = ZERO
"""The limit of a channel that is counted in the table: every threshold reaches it."""


_CODES = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
"""All codes, by their bits."""

_SHARE_OF_CODE = np.minimum(dequantize(_CODES), 1.0).astype(np.float32)
"""The relative delta of each code, 1 at most."""

_KNOWN_SHARE = np.nan_to_num(_SHARE_OF_CODE).astype(np.float64)
"""The same, 0 for NaN."""

_WIDE = 256
"""Channels of a variable from which on it is counted by itself."""

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


class _Cells(NamedTuple):
    """What is counted at every threshold.

    `still`, counts (variables, records, states + 1): channels in each state before any is quiet,
    and those that moved though held. Limits and relative deltas, int16 (channels, records), are
    sorted within each variable and record; they are those of moving channels.
    """

    still: npt.NDArray[Any]
    limits: Codes
    deltas: Codes


class _Packed(NamedTuple):
    """The same, deflated."""

    still: bytes
    dtype: np.dtype[Any]  # of `still`
    levels: bytes  # limits and deltas


@dataclass(frozen=True, eq=False)
class Tally:
    """The counts of variables of the same records at every threshold; see `counts`."""

    widths: tuple[int, ...]  # the channels of each variable
    records: int  # how many there are
    cells: _Cells | _Packed
    deltas: Integers  # (`BINS`,), how many of the relative deltas are in each part of `DECADES`

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        cells = self.cells
        if isinstance(cells, _Packed):
            held = len(cells.still) + len(cells.levels)
        else:
            held = sum(array.nbytes for array in cells)
        return held + 1024

    def counts(self, threshold: float) -> StateCounts:
        """The counts for a threshold of the relative delta; with 0 no channel is ever quiet.

        All arrays begin with the axis of the variables.
        """
        still, limits, deltas = self._unpacked()
        counts, violated = still[..., :-1].copy(), still[..., -1]
        mean = np.full(violated.shape, np.nan, np.float32)
        limit = channel_states.limit_of(threshold)
        for some, own in alike(self.widths):
            shape = some.stop - some.start, self.widths[some.start], self.records
            moving = _moving(
                limits[own].reshape(shape), deltas[own].reshape(shape), limit, counts.dtype
            )
            quiet = counts[some, :, channel_states.MOVING] - moving.channels
            counts[some, :, channel_states.QUIET] = quiet
            counts[some, :, channel_states.MOVING] = moving.channels
            known, out = moving.known, mean[some]
            np.divide(moving.total, known, out=out, where=known > 0, casting="same_kind")
        return StateCounts(counts, violated, mean)

    def _unpacked(self) -> _Cells:
        if isinstance(self.cells, _Cells):
            return self.cells
        packed, channels = self.cells, sum(self.widths)
        still = np.frombuffer(zlib.decompress(packed.still), packed.dtype)
        still = still.reshape(len(self.widths), self.records, _WIDTH)
        if not packed.levels:
            return _Cells(still, *np.zeros((2, channels, self.records), np.int16))
        reader = varint.Reader(packed.levels)
        limits = planes.unpack(reader, channels, self.records)
        return _Cells(still, limits, limits + planes.unpack(reader, channels, self.records))


def alike(widths: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Neighbouring variables of one width, and their channels among those of all.

    Example:
        >>> [(some.stop, own.stop) for some, own in alike([2, 2, 5])]
        [(2, 4), (3, 9)]
    """
    variable = channel = 0
    for width, group in groupby(widths):
        count = len(list(group))
        some, own = slice(variable, variable + count), slice(channel, channel + count * width)
        yield some, own
        variable, channel = some.stop, own.stop


class _Moving(NamedTuple):
    """Of variables at their records: moving channels, those with a delta, and the sum of these."""

    channels: npt.NDArray[Any]
    known: npt.NDArray[Any]
    total: Floats


def _moving(limits: Codes, deltas: Codes, limit: int, dtype: np.dtype[Any]) -> _Moving:
    """What moves at a limit, (variables, records); of limits and deltas of single channels.

    These are (variables, channels, records).
    """
    variables, channels, records = limits.shape
    shape = variables, records
    moving = _Moving(np.zeros(shape, dtype), np.zeros(shape, dtype), np.zeros(shape))
    # A sum of floats depends on the order, which is always that of the channels.
    if channels < _WIDE and records > 1:
        for channel in range(channels):
            _add_channel(moving, limits[:, channel] > limit, deltas[:, channel])
        return moving
    for variable in range(variables):
        moves = limits[variable] > limit
        shares = _shares_of(deltas[variable])
        moving.channels[variable] = np.count_nonzero(moves, axis=0)
        moves &= ~np.isnan(shares)
        moving.known[variable] = np.count_nonzero(moves, axis=0)
        shares[~moves] = 0
        moving.total[variable] = shares.sum(axis=0, dtype=np.float64)
    return moving


def _shares_of(deltas: Codes) -> npt.NDArray[np.float32]:
    """The relative deltas of codes (channels, records)."""
    shares = np.empty(deltas.shape, np.float32)
    for part in _pieces(*deltas.T.shape):  # as an index, a code takes 8 bytes
        shares[part] = _SHARE_OF_CODE[deltas[part].view(np.uint16)]
    return shares


def _add_channel(moving: _Moving, moves: Flags, deltas: Codes) -> None:
    """Adds one channel of each variable."""
    if not moves.any():
        return
    codes = np.where(moves, deltas, np.int16(ZERO))
    np.add(moving.total, _KNOWN_SHARE[codes.view(np.uint16)], out=moving.total)
    np.add(moving.channels, moves.view(np.uint8), out=moving.channels)
    np.add(moving.known, (moves & (codes != NAN)).view(np.uint8), out=moving.known)


def make_tally(
    before_quiet: channel_states.States,
    delta: Codes,
    widths: Sequence[int] | None = None,
    times: Sequence[int] | None = None,
    *,
    pack: bool = False,
) -> Tally:
    """Counts the channels of variables in each state, record by record.

    `widths` are the channels of each variable, of which those of one width are neighbours; None:
    all channels are those of one variable. `times` is how often each counts in the distribution of
    relative deltas; None: once.
    """
    records, channels = before_quiet.shape
    widths = (channels,) if widths is None else tuple(widths)
    table = np.zeros((len(widths), records, _WIDTH), np.min_scalar_type(max(widths, default=0)))
    cells = _Cells(table, *np.empty((2, channels, records), np.int16))
    bins = np.zeros(BINS + 1, np.int64)
    for some, own in _slabs(widths, records):
        states, deltas = before_quiet[:, own], delta[:, own]
        moving = (states & np.uint8(channel_states.STATE)) == channel_states.MOVING
        _count_still(states, table[some])
        limits = np.empty_like(deltas)
        for part in _pieces(records, deltas.shape[1]):
            own_limits = channel_states.quiet_limits(deltas[:, part], states[:, part])
            limits[:, part] = np.where(moving[:, part], own_limits, np.int16(_ELSEWHERE))
        cells.limits[own], cells.deltas[own] = _sorted(limits, deltas, widths[some.start])
        moving_deltas = np.where(moving, deltas, np.int16(NAN))
        bins += _distribution(moving_deltas, widths[some], times[some] if times else None)
    return Tally(widths, records, _packed(cells) if pack else cells, bins[:BINS])


def _slabs(widths: Sequence[int], records: int) -> Iterator[tuple[slice, slice]]:
    """`alike`, a few variables at a time: what is computed of them fits into a cache."""
    for some, own in alike(widths):
        width = widths[some.start]
        count = max(_SLAB // max(width * records, 1), 1)
        for first in range(some.start, some.stop, count):
            last = min(first + count, some.stop)
            begin = own.start - some.start * width
            yield slice(first, last), slice(begin + first * width, begin + last * width)


def _pieces(records: int, channels: int) -> Iterator[slice]:
    """Groups of channels: what is computed of them in larger types stays small."""
    width = max(_PIECE // max(records, 1), 1)
    for first in range(0, channels, width):
        yield slice(first, first + width)


def _sorted(limits: Codes, deltas: Codes, width: int) -> tuple[Codes, Codes]:
    """Both as (channels, records), in the order of limits, then of deltas, in each variable."""
    records, channels = limits.shape
    # One number per channel, so one sort orders both.
    keys = np.empty((records, channels), "<i4")
    halves = keys.view("<i2").reshape(records, channels, 2)
    halves[..., 0], halves[..., 1] = deltas, limits
    keys.reshape(records, channels // max(width, 1), width).sort(axis=2)
    return halves[..., 1].T, halves[..., 0].T


def _distribution(moving: Codes, widths: Sequence[int], times: Sequence[int] | None) -> Integers:
    """How many relative deltas (records, channels) are in each part of `DECADES`, or in none."""
    bins = np.zeros(BINS + 1, np.int64)
    for count in {1} if times is None else set(times) - {0}:
        chosen = moving
        if times is not None and set(times) != {count}:
            chosen = moving[:, np.repeat([number == count for number in times], widths)]
        for part in _pieces(*chosen.shape):
            codes = chosen[:, part].ravel().view(np.uint16)
            times_code = np.bincount(codes, minlength=len(_CODES))
            np.add.at(bins, _BIN_OF_CODE, count * times_code)
    return bins


def _count_still(before_quiet: channel_states.States, table: npt.NDArray[Any]) -> None:
    """Fills a part of `_Cells.still`, of variables of one width."""
    plain = before_quiet & np.uint8(channel_states.STATE)
    for column in range(_WIDTH):
        is_mark = column == _WIDTH - 1
        flag = (
            (before_quiet & np.uint8(channel_states.VIOLATED)) != 0 if is_mark else plain == column
        )
        if flag.any():
            by_variable = flag.view(np.uint8).reshape(len(flag), len(table), -1)
            table[:, :, column] = by_variable.sum(axis=2, dtype=table.dtype).T


def _packed(cells: _Cells) -> _Packed:
    still, limits, deltas = cells
    levels = planes.pack(limits) + planes.pack(deltas - limits) if limits.size else b""
    return _Packed(zlib.compress(still.tobytes(), _LEVEL), still.dtype, levels)
