"""Compares held elements bitwise with their expected values, in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.record.weight import Array

Ints = npt.NDArray[np.int64]

UNKNOWN = -1
"""The number of held elements that differ, where only fingerprints show that some do."""

SAMPLE = 256
"""Elements of a weight that are sampled to find a cause."""

_LOOKED_AT = 1 << 16

_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
# Odd: if one element changes, the fingerprint always changes.
_STRIDE = np.int64(0x5851F42D4C957F2E)
_START = np.int64(0x14057B7EF767814F)


class Channels(NamedTuple):
    """A comparison of held elements with their expected values, each of shape (channels,).

    Attributes:
        differ: int64, held elements that differ from the expected value; `UNKNOWN`: some.
        held: int64, held elements.
        largest: float64, largest |w − expected| of those; infinite where it isn't finite, NaN
            where it is unknown.
        fingerprint: int64 of the held elements.
        expected: int64, a fingerprint of which are held, and of their expected values.
    """

    differ: Ints
    held: Ints
    largest: npt.NDArray[np.float64]
    fingerprint: Ints
    expected: Ints


class Comparison(NamedTuple):
    """Values of a weight, expected values, and which elements are held; None: all of them."""

    value: Array
    expected: Array
    held: Mask | None

    def differ(self) -> Mask:
        """Which elements are held and differ in any bit."""
        # By integers: NaN equals itself, −0 differs from 0, and subnormals aren't flushed.
        differ: Mask = _bits(self.value) != _bits(self.expected)
        return differ if self.held is None else differ & self.held

    def channels(self, axis: ChannelAxis) -> Channels:
        """Compares channel by channel."""
        held = np.ones(self.value.shape, bool) if self.held is None else self.held
        rows, differ = axis.split(held), axis.split(self.differ())
        size = np.where(differ, axis.split(self.distance()), 0.0)
        factor = np.arange(axis.elements, dtype=np.int64) * _STRIDE + _START

        def fingerprint(values: Array) -> Ints:
            bits = axis.split(_bits(values)).astype(np.int64)
            # One more: it also depends on which elements are held if all are zero.
            prints: Ints = np.where(rows, (bits + 1) * factor, 0).sum(axis=1)
            return prints

        return Channels(
            np.count_nonzero(differ, axis=1).astype(np.int64),
            np.count_nonzero(rows, axis=1).astype(np.int64),
            size.max(axis=1),
            fingerprint(self.value),
            fingerprint(self.expected),
        )

    def distance(self) -> npt.NDArray[np.float64]:
        """|w − expected| of each element; infinite where it isn't finite."""
        with np.errstate(invalid="ignore", over="ignore"):
            delta = abs(self.value.astype(np.float64) - self.expected.astype(np.float64))
        return np.where(np.isfinite(delta), delta, np.inf)

    def worst(self, axis: ChannelAxis, channels: Ints, count: int) -> Ints:
        """Positions of elements that moved farthest, a share of each channel, at most `count`."""
        channels = channels[:: -(-len(channels) // count)]
        share = min(axis.elements, max(1, count // len(channels)))
        size = axis.split(np.where(self.differ(), self.distance(), -1.0))[channels]
        positions = axis.split(np.arange(self.value.size).reshape(self.value.shape))[channels]
        top = np.argpartition(size, -share, axis=1)[:, -share:]
        far = np.take_along_axis(size, top, axis=1) >= 0
        found: Ints = np.take_along_axis(positions, top, axis=1)[far]
        return found


def _bits(values: Array) -> npt.NDArray[np.integer]:
    if values.dtype.itemsize not in _BITS:
        # Long doubles are rounded, because their padding may hold anything.
        with np.errstate(over="ignore"):
            values = values.astype(np.float64)
    bits: npt.NDArray[np.integer] = values.view(_BITS[values.dtype.itemsize])
    return bits


def sampled(held: Mask) -> Ints:
    """Positions of some held elements, from all over the flattened variable."""
    flat = held.reshape(-1)
    # An odd stride doesn't stay in one column of a table of even width.
    stride = max(1, len(flat) // _LOOKED_AT) | 1
    positions = np.flatnonzero(flat[::stride]) * stride
    if not len(positions):
        positions = np.flatnonzero(flat)
    chosen = np.linspace(0, len(positions) - 1, min(SAMPLE, len(positions)))
    return np.asarray(positions[chosen.astype(np.int64)], np.int64)
