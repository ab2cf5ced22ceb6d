"""A weight that is held whole, compared by fingerprints: without a copy of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tb_pastnet.core.compared import BY_FINGERPRINT
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.record.audit.comparison import UNKNOWN, Channels, Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.masks.mask_table import MaskStorage, holds_all
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
    """A weight that its flag or its masks hold whole.

    Which channels have moved is exact; how many of their elements, and how far, is unknown. Once
    masks hold it only in part, its values at that time are the reference.
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
        # When it was held, and at the last check.
        self._reference_look: Look | None = None
        self._look = Look("", np.zeros(0, np.uint64))
        self._positions: Ints = np.zeros(0, np.int64)
        self._samples: Array = np.zeros(0)
        self._exact: Held | None = None

    def follow(self, masks: MaskStorage | None, *, flagged: bool) -> bool:
        """See `Held`."""
        self.masks, self.flagged = masks, flagged
        if self._exact is None and (flagged or (masks is not None and holds_all(masks))):
            begins = self._reference_look is None
            if begins:
                self._refer(self._current_look())
            return begins
        if self._exact is None:
            self._exact = self._by_value(self.weight)
            self.by = self._exact.by
        return self._exact.follow(masks, flagged=flagged)

    def count(self) -> int:
        """See `Held`."""
        return int(self._exact.count()) if self._exact else self.axis.channels * self.axis.elements

    def flags(self) -> Mask:
        """See `Held`."""
        every: Mask = np.broadcast_to(np.True_, self.weight.shape)
        return every if self._exact is None else self._exact.flags()

    def moved(self) -> bool:
        """See `Held`."""
        return bool(self._exact.moved() if self._exact else self._differ().any())

    def renewed(self) -> bool:
        """See `Held`: fingerprints of two dtypes can't be compared. Each check begins with it."""
        if self._exact is not None or self._reference_look is None:
            return False
        self._look, earlier = self._current_look(), self._reference_look.dtype
        if self._look.dtype != earlier:
            self._refer(self._look)
        return self._look.dtype != earlier

    def channels(self) -> Channels:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.channels()
        moved, reference = self._differ(), self._reference_look or self._look
        held = np.full(len(moved), self.axis.elements, np.int64)
        return Channels(
            np.where(moved, UNKNOWN, 0).astype(np.int64),
            held,
            np.where(moved, np.nan, 0.0),
            self._look.prints.view(np.int64),
            reference.prints.view(np.int64),
        )

    @property
    def nbytes(self) -> int:
        """See `Held`."""
        if self._exact is not None:
            return self._exact.nbytes
        own = self._samples, self._positions, self._look.prints, self._look.prints
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

    def _differ(self) -> Mask:
        reference = self._reference_look or self._look
        differ: Mask = reference.prints != self._look.prints
        return differ

    def _current_look(self) -> Look:
        look = self._looks.get(self.name)
        return self.weight.look() if look is None else look

    def _refer(self, look: Look) -> None:
        self._reference_look = self._look = look
        self._positions = np.sort(self._sampled_in(np.arange(self.axis.channels)))
        self._samples = np.array(self.weight.at(self._positions))

    def _sampled_in(self, channels: Ints) -> Ints:
        """The positions of the sampled elements of channels."""
        size = self.axis.elements
        elements = np.unique(np.linspace(0, size - 1, min(_SAMPLES, size)).astype(np.intp))
        return self.axis.positions(channels, elements).reshape(-1)
