"""Masks that a user declares: nothing here holds weights, the audit says where they move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskTable
from tb_pastnet.record.weight import Weight


class DeclaredMasks:
    """Both masks of a weight, as arrays: see `MaskStorage`."""

    enforced = False

    def __init__(self, weight: Weight) -> None:
        self.variable = weight.variable
        self.generation = 0
        self._kept = self._trainable = np.ones(weight.shape, bool)

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable."""
        return self._kept, self._trainable

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both."""
        self._kept, self._trainable = kept, trainable


def declared_table(weights: Sequence[Weight]) -> MaskTable:
    """A table of masks of their own for some weights, all of which go through at first."""
    storages: list[DeclaredMasks] = []

    def store(weight: Weight) -> DeclaredMasks:
        # The registry keeps none of them alive.
        storages.append(DeclaredMasks(weight))
        return storages[-1]

    return MaskTable(weights, MaskRegistry(), store)
