"""Held weights whose `read` returns arrays, compared with copies of their values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tb_pastnet.core.compared import BY_VALUE
from tb_pastnet.record.audit.comparison import Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.masks.mask_table import MaskStorage
from tb_pastnet.record.weight import Array, Mask, Weight

_EVERY = np.True_


class HeldArray(Held):
    """A weight that is held, in part by its masks or whole by the framework's flag.

    An element's reference is its value when it was first seen held; zero if it is pruned.
    """

    flagged = False
    by = BY_VALUE

    def __init__(self, weight: Weight) -> None:
        self.name = weight.name
        self.axis = weight.axis
        self.weight = weight
        self.masks: MaskStorage | None = None
        self._held: Mask = np.broadcast_to(~_EVERY, weight.shape)
        self._kept: Mask = np.broadcast_to(_EVERY, weight.shape)
        # Without meaning until something is held: the first `follow` fills it.
        self._reference: Array = np.broadcast_to(np.float32(0), weight.shape)

    def follow(self, masks: MaskStorage | None, *, flagged: bool) -> bool:
        """See `Held`."""
        self.masks, self.flagged = masks, flagged
        kept, trainable = (_EVERY, _EVERY) if masks is None else masks.read()
        kept = np.broadcast_to(kept, self._kept.shape)
        held = np.broadcast_to(_EVERY if flagged else ~(kept & trainable), kept.shape)
        changed = not (np.array_equal(held, self._held) and np.array_equal(kept, self._kept))
        if changed:
            value = np.array(self.weight.read())
            # Frozen elements keep their reference; pruned ones get a new one.
            np.copyto(value, self._reference, where=self._held & self._kept)
            value[~kept] = 0
            self._reference = value
        self._held, self._kept = held, kept
        return changed

    def flags(self) -> Mask:
        """See `Held`."""
        return self._held

    @property
    def nbytes(self) -> int:
        """See `Held`."""
        own = self._held, self._kept, self._reference
        return sum(each.nbytes for each in own if any(each.strides))

    def compared(self) -> Comparison:
        """See `Held`."""
        held = None if self.flagged else self._held
        value = self.weight.read()
        if not self._kept.all():
            # A mask that is multiplied with makes negative zeros, which are pruned as well.
            value = np.where(self._kept, value, value + value.dtype.type(0))
        # The network may have got another precision.
        return Comparison(value, self._reference.astype(value.dtype, copy=False), held)

    def values_at(self, positions: Ints) -> tuple[Array, Array]:
        """See `Held`."""
        value, expected, _ = self.compared()
        return expected.reshape(-1)[positions], value.reshape(-1)[positions]


class HeldSince(HeldArray):
    """A weight that is held whole, at values that its owner keeps."""

    flagged = True

    def __init__(self, weight: Weight, values: Callable[[], Array]) -> None:
        self.name, self.axis, self.weight, self.masks = weight.name, weight.axis, weight, None
        self._held = np.broadcast_to(_EVERY, weight.shape)
        self._values = values

    def compared(self) -> Comparison:
        """See `Held`."""
        value = self.weight.read()
        return Comparison(value, self._values().astype(value.dtype, copy=False), None)
