"""The masks of torch's pruning: `torch.nn.utils.prune`, and FakeSparsity of torch.ao.pruning.

Masks that a user declares are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_pastnet.record.device_array import tensor_values
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskStorage, MaskTable
from tb_pastnet.record.weight import Mask
from tb_pastnet.torch.module_tensors import ModuleTensor
from tb_pastnet.torch.module_weights import TorchWeight


class PrunedMasks(MaskRegistry):
    """Masks that torch keeps in buffers, which may appear, change and disappear at any time."""

    def __init__(self, weights: Sequence[TorchWeight], declared: MaskTable) -> None:
        super().__init__()
        self._declared = declared
        self._table = MaskTable(weights, self)
        entries = [weight.entry for weight in weights if not weight.statistic]
        # The place of each mask: it is read at each step.
        self._places = [(f"{entry.key}_mask", entry.owner, entry) for entry in entries]
        self._seen: list[int] = [declared.version]
        # They are kept: a later one can't get the id of one that is gone.
        self._masked: list[Any] = []
        self._packed: list[bytes] = []

    def table(self) -> MaskTable:
        """The current ones: `version` grows if a mask is another one, or was written."""
        masks = [
            entry.mask
            for name, owner, entry in self._places
            if name in owner._buffers or "parametrizations" in owner._modules
        ]
        if masks:
            masks = [mask for mask in masks if mask is not None]
        seen = [self._declared.version]
        if masks:
            seen += [mask._version for mask in masks]
            seen += map(id, masks)
        if seen != self._seen:
            self.version += 1
        self._masked, self._seen = masks, seen
        return self._table

    def settle(self) -> None:
        """See `MaskRegistry`: what is written through `.data` has no version, so contents count.

        They are those of the latest `table`.
        """
        if not (self._masked or self._packed):
            return
        packed = [np.packbits(tensor_values(mask) != 0).tobytes() for mask in self._masked]
        if packed != self._packed:
            self.version += 1
        self._packed = packed

    def of(self, variable: ModuleTensor) -> Any:
        """See `MaskRegistry`."""
        declared = self._declared.storage_of(variable)
        return declared if variable.mask is None else _Pruned(variable.mask, declared)


class _Pruned:
    """A read-only `MaskStorage` of a weight."""

    def __init__(self, mask: Any, declared: MaskStorage | None) -> None:
        self._mask = mask
        self._declared = declared

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept = tensor_values(self._mask) != 0
        if self._declared is None:
            return kept, np.ones_like(kept)
        declared, trainable = self._declared.read()
        return kept & declared, trainable
