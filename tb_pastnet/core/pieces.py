"""How the weights of a network are cut into pieces for `core.network_kernel`, and for threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.fingerprint import Prints
from tb_pastnet.core.memory_layout import LONG_ROW, WIDTH, layout_of

PIECE = 1 << 18
"""The number of elements that is worth another thread."""

_OWN = -1
"""A piece with these sums gets its own ones."""

CACHED = 1 << 15
"""Elements that the processor's nearest caches hold together with the past ones."""

MOST_PLACES = 1024
"""At most this many sums are kept side by side.

They stay in the fastest cache, and a run of as many float32 is a page of memory.
"""

LONG_RUN = 64
"""Channels of which so many elements follow one another are summed one by one: a run is a line or
more of a processor's cache."""


class Piece(NamedTuple):
    """A part of a weight, in elements.

    Attributes:
        weight: its number.
        offset: of the first element in the weight.
        begin: of the first element in the past values of all.
        channel: the first one's number among those of all.
        turns: how often the channels come.
        channels: how many.
        inner: elements of a channel that follow one another.
        stride: from one turn to the next.
        width: so many elements are summed side by side; 0: each channel is summed by itself.
        sums: the place of the first of these sums among all.
        ends: the place after the last sum of these channels: other pieces may have some.
        fresh: whether these sums begin with this piece.
        elements: of a channel in all pieces; 0: another piece completes the channels.
        position: of the first element in its channel.
        prints: the place of the first of these channels among all fingerprints.
    """

    weight: int
    offset: int
    begin: int
    channel: int
    turns: int
    channels: int
    inner: int
    stride: int
    width: int
    sums: int
    ends: int
    fresh: int
    elements: int
    position: int
    prints: int

    @property
    def size(self) -> int:
        """Elements."""
        return self.turns * self.channels * self.inner


class PiecePlan:
    """How the weights of a network are measured, by `core.network_kernel`.

    Attributes:
        groups: int64 (pieces, fields of a `Piece`): groups may be measured at the same time.
        last: pieces that complete what several groups have summed.
        squares: float64 (3, sums), for the kernel.
        counts: int32 (3, sums), for the kernel.
        positions: elements of the longest channel.
        prints: fingerprints of the channels of all pieces, which `joined` adds up.
    """

    def __init__(self, axes: Sequence[ChannelAxis], threads: int) -> None:
        self._sums = self.prints = 0
        self._threads = threads
        last: list[Piece] = []
        groups: list[list[Piece]] = [[]]
        total = sum(axis.channels * axis.elements for axis in axes)
        most, filled = total if total < 2 * PIECE else PIECE, 0
        for piece in self._cut(axes):
            if not piece.turns:
                last.append(piece)
                continue
            if filled >= most and piece.fresh:  # not between pieces with the same sums
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += piece.size
        self.groups = [np.array(self._own_sums(group), np.int64) for group in groups if group]
        self.last = np.array(last, np.int64).reshape(-1, len(Piece._fields))
        self.squares = np.empty((3, self._sums))
        self.counts = np.empty((3, self._sums), np.int32)
        self.positions = max(axis.elements for axis in axes)
        whole = [piece for group in groups for piece in group if piece.fresh]
        spans = [np.arange(each.channel, each.channel + each.channels) for each in whole]
        self._channels = np.concatenate(spans)
        # Each channel's own, in order, unless several pieces have parts of one.
        self._in_order = bool((np.diff(self._channels) == 1).all())

    def joined(self, prints: npt.NDArray[np.int64]) -> Prints:
        """The fingerprints of all channels."""
        if not self._in_order:
            parts, prints = prints, np.zeros(self._channels[-1] + 1, np.int64)
            np.add.at(prints, self._channels, parts)
        return prints.view(np.uint64)

    def _own_sums(self, group: Sequence[Piece]) -> list[Piece]:
        """Pieces that complete their channels themselves use the same sums, one after another.

        Those with the same sums also have one place for fingerprints.
        """
        own, widest = [], max(piece.width if piece.sums == _OWN else 0 for piece in group)
        first, self._sums = self._sums, self._sums + widest
        for piece in group:
            places = {"sums": first, "ends": first + piece.width} if piece.sums == _OWN else {}
            self.prints += piece.channels if piece.fresh else 0
            own.append(piece._replace(prints=self.prints - piece.channels, **places))
        return own

    def _cut(self, axes: Sequence[ChannelAxis]) -> Iterator[Piece]:
        begin = channel = 0
        for number, axis in enumerate(axes):
            layout = layout_of(axis, 1)
            if layout is not None:
                whole = Piece(
                    *(number, 0, begin, channel, layout.outer, axis.channels, layout.inner),
                    *(axis.channels * layout.inner, 0, _OWN, 0, 1, axis.elements, 0, 0),
                )
                # Long runs of a channel are summed one by one.
                runs = LONG_ROW if layout.outer == 1 else LONG_RUN
                wide = layout.inner < runs
                yield from self._beside(whole) if wide else _by_channels(whole, CACHED)
            begin += axis.channels * axis.elements
            channel += axis.channels

    def _beside(self, whole: Piece) -> Iterator[Piece]:
        """Cuts a weight of which turns are summed side by side."""
        for strip in _by_channels(whole, MOST_PLACES * whole.turns):
            row = strip.channels * strip.inner
            parts = min(strip.size // PIECE, 2 * self._threads) if self._threads > 1 else 1
            turns = -(-strip.turns // max(parts, 1))
            if parts < 2 or turns == strip.turns:
                # Several turns together, if they follow one another: a loop over a few is slow.
                times = max(1, WIDTH // row) if row == strip.stride else 1
                width = row * min(strip.turns, times)
                yield from _by_turns(strip._replace(width=width), times)
                continue
            first = self._sums
            for start in range(0, strip.turns, turns):
                place = start * strip.stride
                part = strip._replace(
                    offset=strip.offset + place,
                    begin=strip.begin + place,
                    turns=min(turns, strip.turns - start),
                    width=row,
                    sums=self._sums,
                    elements=0,
                    position=start * strip.inner,
                )
                yield from _by_turns(part, 1)
                self._sums += row
            yield strip._replace(turns=0, width=row, sums=first, ends=self._sums)


def _by_turns(part: Piece, times: int) -> Iterator[Piece]:
    """Cuts a piece into some of its turns each, a multiple of so many, with the same sums."""
    most = times * max(1, CACHED // (times * part.channels * part.inner))
    for start in range(0, part.turns, most):
        place, turns = start * part.stride, min(most, part.turns - start)
        yield part._replace(
            offset=part.offset + place,
            begin=part.begin + place,
            turns=turns,
            fresh=int(start == 0),
            elements=part.elements if start + turns == part.turns else 0,
            position=part.position + start * part.inner,
        )


def _by_channels(whole: Piece, most: int) -> Iterator[Piece]:
    """Cuts a weight into some of its channels each, of at most so many elements."""
    step = max(1, min(whole.channels, most // (whole.turns * whole.inner)))
    for first in range(0, whole.channels, step):
        place = first * whole.inner
        yield whole._replace(
            offset=whole.offset + place,
            begin=whole.begin + place,
            channel=whole.channel + first,
            channels=min(step, whole.channels - first),
        )
