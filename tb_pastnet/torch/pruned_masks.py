"""The masks that torch prunes by: `torch.nn.utils.prune`, and FakeSparsity of torch.ao.pruning.

Beside them stand those that a user declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskStorage, MaskTable
from tb_pastnet.record.weight import Mask
from tb_pastnet.torch.module_tensor import ModuleTensor
from tb_pastnet.torch.module_weights import TorchWeight


def masks_in(weights: Sequence[TorchWeight], declared: MaskTable) -> Callable[[], MaskTable]:
    """Gives the masks of some weights as they are now, whoever changed them: at each step."""
    masks = _PrunedMasks(weights, declared)
    table = MaskTable(weights, masks)

    def find() -> MaskTable:
        masks.look()
        return table

    return find


class _PrunedMasks(MaskRegistry):
    """Masks that torch keeps in buffers, which may come, change and go at any time."""

    def __init__(self, weights: Sequence[TorchWeight], declared: MaskTable) -> None:
        super().__init__()
        self._declared = declared
        entries = [weight.entry for weight in weights if not weight.statistic]
        # Where a mask would be: this is asked at each step.
        self._places = [(f"{entry.key}_mask", entry.owner, entry) for entry in entries]
        self._seen = [(0, declared.version)]

    def look(self) -> None:
        """Counts `version` up where a mask is another one, or was written."""
        masks = [
            entry.mask
            for name, owner, entry in self._places
            if name in owner._buffers or "parametrizations" in owner._modules
        ]
        seen = [(id(mask), mask._version) for mask in masks if mask is not None]
        seen.append((0, self._declared.version))
        if seen != self._seen:
            self.version += 1
            self._seen = seen

    def of(self, variable: ModuleTensor) -> Any:
        """See `MaskRegistry`."""
        declared = self._declared.storage_of(variable)
        return declared if variable.mask is None else _Pruned(variable.mask, declared)


class _Pruned:
    """The `MaskStorage` of a weight, as far as it is read."""

    def __init__(self, mask: Any, declared: MaskStorage | None) -> None:
        self._mask = mask
        self._declared = declared

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept = self._mask.detach().cpu().numpy() != 0
        if self._declared is None:
            return kept, np.ones_like(kept)
        declared, trainable = self._declared.read()
        return kept & declared, trainable
