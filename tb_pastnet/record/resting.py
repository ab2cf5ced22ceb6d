"""Weights that no update is meant to change: fingerprints instead of past copies.

What can't move needs no copy: the same fingerprint shows that a channel is what it was, to the bit.
A channel that moves nevertheless, or that updates may change from now on, gets past values then.
Until it has some, how far it moved is unknown: NaN, not 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.fingerprint import Prints
from tb_pastnet.core.sketch import BUCKETS, sketch
from tb_pastnet.core.statistics import (
    NONFINITE,
    NORM,
    OF_PAST,
    PAST_NORM,
    VALUE_ROWS,
    channel_statistics,
)
from tb_pastnet.record.masks.mask_table import MaskTable, held_channels
from tb_pastnet.record.weight import Array, Look, Weight

MOST_COPIED = 64 << 20
"""Bytes of held weights, in all, up to which copies of them cost less than fingerprints."""

_MOSTLY = 0.9
"""A weight is at rest if so many of its channels are held: others cost more than in a kernel."""

_AT_ONCE = 1 << 16
"""Elements whose norms are computed at once: they stay in the processor's cache."""

_LARGEST = np.finfo(np.float32).max

_NOTHING: Array = np.empty((0, 0))

Floats = npt.NDArray[np.floating]
Channels = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class HeldChannels:
    """Which channels of weights no update is meant to change: by flags of the framework, or masks.

    Args:
        masks: those that hold weights or are declared; None: only flags count.
    """

    def __init__(self, masks: MaskTable | None = None) -> None:
        self._masks = masks
        self._known: dict[str, Flags] = {}
        self._version: Any = None

    def of(self, weight: Weight) -> Flags:
        """The channels of a weight, (channels,); those that are held in part don't count."""
        if not weight.trainable():
            return np.ones(weight.axis.channels, bool)
        version = None if self._masks is None else self._masks.version
        if version != self._version:
            self._version = version
            self._known.clear()
        if weight.name not in self._known:
            self._known[weight.name] = self._by_masks(weight)
        return self._known[weight.name]

    def _by_masks(self, weight: Weight) -> Flags:
        own = None if self._masks is None else self._masks.storage_of(weight.variable)
        held = None if own is None else held_channels(own, weight.axis)
        return np.zeros(weight.axis.channels, bool) if held is None else held


class _Norms(NamedTuple):
    """The norms of channels, and how many of their values aren't finite, at a look."""

    look: Look
    rows: Floats


class Resting:
    """Weights at rest, for all their past copies.

    Attributes:
        weights: these.
        numbers: of each, its number in the network.
        looks: by name the bits of those that were just looked at.
        loose: of each, which channels have moved, or may: the next copies have their values.
    """

    def __init__(
        self, weights: Sequence[Weight], numbers: Sequence[int], held: HeldChannels
    ) -> None:
        self.weights, self.numbers = weights, numbers
        self.loose: list[Flags] = [~held.of(weight) for weight in weights]
        self.looks: dict[str, Look] = {}
        self._held = held
        self._norms: list[_Norms | None] = [None] * len(weights)

    @classmethod
    def among(
        cls, weights: Sequence[Weight], held: HeldChannels, *, always: bool = False
    ) -> Resting | None:
        """Those of some weights for which copies cost more than fingerprints; None: no such ones.

        Args:
            weights: all of a network.
            held: which of their channels are held.
            always: also if copies take little memory.
        """
        numbers = [
            number
            for number, weight in enumerate(weights)
            if weight.plain and not (weight.statistic or weight.text.follows)
            if held.of(weight).mean() >= _MOSTLY
        ]
        own = [weights[number] for number in numbers]
        large = sum(weight.nbytes for weight in own) > MOST_COPIED
        return cls(own, numbers, held) if own and (always or large) else None

    def look(self, weight: Weight, *, anew: bool = False) -> Look:
        """Its bits, as they were just seen unless they are wanted `anew`."""
        if anew or weight.name not in self.looks:
            self.looks[weight.name] = weight.look()
        return self.looks[weight.name]

    def update(self) -> None:
        """Looks for weights that updates may change from now on."""
        for number, weight in enumerate(self.weights):
            self.loose[number] |= ~self._held.of(weight)

    def norms(self, number: int, look: Look) -> Floats:
        """Norms and numbers of values that aren't finite, (2, channels)."""
        last, weight = self._norms[number], self.weights[number]
        rows: Floats
        if last is None or last.look.dtype != look.dtype:
            rows, stale = np.empty((2, weight.axis.channels)), np.arange(weight.axis.channels)
        else:
            rows, stale = last.rows, np.flatnonzero(last.look.prints != look.prints)
        most = max(1, _AT_ONCE // max(1, weight.axis.elements))
        for start in range(0, len(stale), most):
            chunk = stale[start : start + most]
            rows[:, chunk] = _norms_of(weight.rows(chunk))
        self._norms[number] = _Norms(look, rows)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes that this takes."""
        norms = [each.rows.nbytes + each.look.prints.nbytes for each in self._norms if each]
        return sum(loose.nbytes for loose in self.loose) + sum(norms)


class _Past(NamedTuple):
    """What a copy knows of a weight: its look, and the values of its loose channels."""

    look: Look
    channels: Channels
    values: Array


class RestingCopies:
    """A past copy of weights at rest: see `ArrayCopies`."""

    prints: Prints

    def __init__(self, own: Resting) -> None:
        self._own = own
        self.weights = len(own.weights)
        self._past: list[_Past] = []
        self.take()

    def take(self) -> None:
        """Makes the current values the past ones."""
        self._own.update()
        looks = [self._own.look(weight) for weight in self._own.weights]
        self._past = [self._take(number, look) for number, look in enumerate(looks)]

    def compare(self, *, replace: bool) -> Floats:
        """See `ArrayCopies`."""
        self._own.update()
        parts, prints = [], []
        for number, weight in enumerate(self._own.weights):
            look = self._own.look(weight, anew=True)
            parts.append(self._compare(number, look))
            prints.append(look.prints)
            if replace:
                self._past[number] = self._take(number, look)
        self.prints = np.concatenate(prints)
        rows = np.concatenate(parts, axis=1)
        largest = np.abs(rows).max(where=np.isfinite(rows), initial=0)
        return rows.astype(np.float32) if largest <= _LARGEST else rows

    def past(self) -> list[Array]:
        """The past values, NaN where they are unknown."""
        return [self._values(number) for number in range(self.weights)]

    def sketches(self, members: Sequence[int]) -> Floats:
        """See `NetworkCopies`: weights of which channels are at rest have none."""
        rows = np.full((len(members), BUCKETS), np.nan)
        for row, number in enumerate(members):
            if self._own.loose[number].all():
                rows[row] = sketch(self._own.weights[number].effective())
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes that this takes."""
        return sum(past.look.prints.nbytes + past.values.nbytes for past in self._past)

    def _take(self, number: int, look: Look) -> _Past:
        channels, weight = np.flatnonzero(self._own.loose[number]), self._own.weights[number]
        values = weight.rows(channels) if len(channels) else _NOTHING
        return _Past(look, channels, values)

    def _compare(self, number: int, look: Look) -> Floats:
        past = self._past[number]
        same_dtype = past.look.dtype == look.dtype
        moved = (past.look.prints != look.prints) | (not same_dtype)
        rows = np.zeros((VALUE_ROWS, len(look.prints)))
        rows[[NORM, NONFINITE]] = self._own.norms(number, look)
        rows[PAST_NORM] = rows[NORM]
        rows[np.ix_(OF_PAST, moved)] = np.nan
        if len(past.channels):
            values = self._own.weights[number].rows(past.channels)
            flat = explicit_axis(0, values.shape, "")
            rows[:, past.channels] = channel_statistics(values, past.values, flat)[:VALUE_ROWS]
        # All have moved to another dtype, which is no reason to copy them.
        self._own.loose[number] |= moved & same_dtype
        return rows

    def _values(self, number: int) -> Array:
        weight, past = self._own.weights[number], self._past[number]
        rows = np.array(weight.axis.split(np.asarray(weight.effective())))
        rows[past.look.prints != weight.look().prints] = np.nan
        rows[past.channels] = past.values
        return weight.axis.joined_up(rows)


def _norms_of(values: Array) -> Floats:
    """Norms of rows, and how many values in each aren't finite."""
    wide = values.astype(np.float64)
    squares = np.einsum("ce,ce->c", wide, wide)
    # In float64 squares may vanish or overflow, and NaN is in their sum.
    if values.dtype != np.float64 and np.isfinite(squares).all():
        return np.stack([np.sqrt(squares), np.zeros_like(squares)])
    flat = explicit_axis(0, values.shape, "")
    return channel_statistics(values, values, flat)[[NORM, NONFINITE]]
