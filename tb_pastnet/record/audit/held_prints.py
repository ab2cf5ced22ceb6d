"""A weight that is held whole, compared by fingerprints: without a copy of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tb_pastnet.core.compared import BY_FINGERPRINT
from tb_pastnet.core.fingerprint import Prints
from tb_pastnet.core.mask_input import Mask, spread
from tb_pastnet.record.audit.comparison import SAMPLE, UNKNOWN, Channels, Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.masks.mask_table import MaskStorage, held_channels
from tb_pastnet.record.options import PRINTS
from tb_pastnet.record.resting import MOST_COPIED
from tb_pastnet.record.weight import Array, Look, Weight

_SAMPLES = 4
"""Values of each channel that are kept, to find causes by."""


def are_large(weights: Sequence[Weight]) -> bool:
    """Whether fingerprints of held weights cost less than copies, all of them taken together."""
    return sum(weight.nbytes for weight in weights) > MOST_COPIED


def by_prints(wish: bool | str, *, large: bool) -> bool:
    """Whether held weights get fingerprints, by the option `audit` of a Recorder."""
    return wish == PRINTS or (wish is True and large)


class HeldPrints(HeldArray):
    """A weight of which channels are held whole, by its flag or by masks.

    Which channels have moved is exact; how many of their elements, and how far, is unknown. Once
    masks hold a channel in part, or prune, the weight is compared by value from then on.
    """

    by = BY_FINGERPRINT

    def __init__(
        self,
        weight: Any,
        looks: Mapping[str, Look] = MappingProxyType({}),
        by_value: Callable[[Any], Held] = HeldArray,
    ) -> None:
        super().__init__(weight)
        self._looks, self._by_value = looks, by_value
        self._whole: Mask = np.zeros(weight.axis.channels, bool)
        # Of each channel when it was held; and all of them at the last check.
        self._reference_prints: Prints = np.zeros(weight.axis.channels, np.uint64)
        self._look: Look | None = None
        self._positions: Ints = np.zeros(0, np.int64)
        self._samples: Array = np.zeros(0)
        self._exact: Held | None = None

    def follow(self, masks: MaskStorage | None, *, flagged: bool) -> bool:
        """See `Held`."""
        self.masks, self.flagged = masks, flagged
        held: Mask | None = np.ones(self.axis.channels, bool)
        if not flagged:
            held = None if masks is None else held_channels(masks, self.axis)
        if self._exact is None and held is not None:
            changed = not np.array_equal(held, self._whole)
            if changed:
                self._refer(self._current_look(), held & ~self._whole)
            self._whole = held
            return changed
        if self._exact is None:
            self._exact = self._by_value(self.weight)
            self.by = self._exact.by
        return self._exact.follow(masks, flagged=flagged)

    def count(self) -> int:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.count()
        return int(self._whole.sum()) * self.axis.elements

    def flags(self) -> Mask:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.flags()
        if self._whole.all():
            return np.broadcast_to(np.True_, self.weight.shape)
        return spread(self._whole, self.axis)

    def moved(self) -> bool:
        """See `Held`."""
        return bool(self._exact.moved() if self._exact else self._differ().any())

    def renewed(self) -> bool:
        """See `Held`: fingerprints of two dtypes can't be compared. Each check begins with it."""
        if self._exact is not None:
            return False
        look, last = self._current_look(), self._look
        if last is not None and look.dtype != last.dtype:
            self._refer(look, self._whole)
        self._look = look
        return last is not None and look.dtype != last.dtype

    def channels(self) -> Channels:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.channels()
        moved, current = self._differ(), self._prints
        return Channels(
            np.where(moved, UNKNOWN, 0).astype(np.int64),
            self.axis.elements * self._whole.astype(np.int64),
            np.where(moved, np.nan, 0.0),
            np.where(self._whole, current, 0).view(np.int64),
            np.where(self._whole, self._reference_prints, 0).view(np.int64),
        )

    @property
    def nbytes(self) -> int:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.nbytes
        own = self._samples, self._positions, self._prints, self._reference_prints
        return sum(each.nbytes for each in own)

    def compared(self) -> Comparison:
        """See `Held`: of the sampled values only."""
        if self._exact is not None:
            return self._exact.compared()
        return Comparison(self.weight.at(self._positions), self._samples, None)

    def worst(self, channels: Ints, count: int) -> Ints:
        """See `Held`: of the sampled elements."""
        if self._exact is not None:
            return self._exact.worst(channels, count)
        channels = channels[:: -(-len(channels) // count)]
        positions = self._sampled_in(channels)
        was, current = self.values_at(positions)
        differ = was != current
        return positions[differ if differ.any() else slice(None)][:count]

    def values_at(self, positions: Ints) -> tuple[Array, Array]:
        """See `Held`: of sampled elements, such as `worst` returns."""
        if self._exact is not None:
            return self._exact.values_at(positions)
        return self._samples[np.searchsorted(self._positions, positions)], self.weight.at(positions)

    def sample(self) -> Ints:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.sample()
        held = np.flatnonzero(self._whole)
        return self._sampled_in(held[:: 1 + len(held) // SAMPLE])[:SAMPLE]

    @property
    def _prints(self) -> Prints:
        return self._reference_prints if self._look is None else self._look.prints

    def _differ(self) -> Mask:
        differ: Mask = self._whole & (self._reference_prints != self._prints)
        return differ

    def _current_look(self) -> Look:
        look = self._looks.get(self.name)
        return self.weight.look() if look is None else look

    def _refer(self, look: Look, channels: Mask) -> None:
        """Takes what channels are now as what they are held at."""
        self._reference_prints = np.where(channels, look.prints, self._reference_prints)
        self._look = look
        if not len(self._positions):
            self._positions = np.sort(self._sampled_in(np.arange(self.axis.channels)))
            self._samples = np.array(self.weight.at(self._positions))
            return
        positions = self._sampled_in(np.flatnonzero(channels))
        values = self.weight.at(positions)
        self._samples = self._samples.astype(values.dtype)
        self._samples[np.searchsorted(self._positions, positions)] = values

    def _sampled_in(self, channels: Ints) -> Ints:
        """The positions of the sampled elements of channels."""
        size = self.axis.elements
        elements = np.unique(np.linspace(0, size - 1, min(_SAMPLES, size)).astype(np.intp))
        return self.axis.positions(channels, elements).reshape(-1)
