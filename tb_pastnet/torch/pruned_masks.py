"""The masks of a module's weights: of torch's own pruning, of `Masks`, and those declared.

Torch's are those of `torch.nn.utils.prune`, and FakeSparsity of torch.ao.pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tb_pastnet.record.device_array import tensor_values
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskStorage, MaskTable
from tb_pastnet.record.weight import Mask
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.module_tensors import ModuleTensor
from tb_pastnet.torch.module_weights import TorchWeight


class AuditedMasks(MaskTable):
    """Masks that `Masks` hold and those declared: what moves there is a violation."""

    def __init__(self, weights: Sequence[TorchWeight], declared: MaskTable) -> None:
        super().__init__(weights, HELD)
        self._declared, self._of_declared = declared, declared.registry

    @property
    def version(self) -> int:
        """See `MaskTable`."""
        return HELD.version + self._of_declared.version  # read at each step

    def now(self) -> MaskTable:
        """Itself."""
        return self

    def storage_of(self, variable: ModuleTensor) -> Any:
        """See `MaskTable`."""
        return _joined(HELD.of(variable), self._declared.storage_of(variable))


class PrunedMasks(MaskRegistry):
    """Masks that torch keeps in buffers, which may appear, change and disappear at any time."""

    def __init__(self, weights: Sequence[TorchWeight], declared: MaskTable) -> None:
        super().__init__()
        self._declared = declared
        self._table = MaskTable(weights, self)
        entries = [weight.entry for weight in weights if not weight.statistic]
        # The place of each mask: it is read at each step.
        self._places = [(f"{entry.key}_mask", entry.owner, entry) for entry in entries]
        owners = {id(entry.owner): entry.owner for entry in entries}.values()
        # A first mask is a buffer or a module more in one of these.
        self._parts = [part for own in owners for part in (own._buffers, own._modules)]
        self._sizes: list[int] = []
        self._seen: list[int] = []
        self._versions = declared.version, HELD.version
        # They are kept: a later one can't get the id of one that is gone.
        self._masked: list[Any] = []
        self._packed: list[bytes] = []

    def table(self) -> MaskTable:
        """The current ones: `version` grows if a mask is another one, or was written."""
        # Most often there are none: looking at each place takes several times as long.
        sizes = list(map(len, self._parts))
        if self._masked or sizes != self._sizes:
            masks = [
                entry.mask
                for name, owner, entry in self._places
                if name in owner._buffers or "parametrizations" in owner._modules
            ]
            if masks:
                masks = [mask for mask in masks if mask is not None]
            seen = [*[mask._version for mask in masks], *map(id, masks)] if masks else []
            if seen != self._seen:
                self.version += 1
            self._masked, self._seen, self._sizes = masks, seen, sizes
        versions = self._declared.version, HELD.version
        if versions != self._versions:
            self.version += 1
            self._versions = versions
        return self._table

    def settle(self) -> None:
        """See `MaskRegistry`: what is written through `.data` has no version, so contents count.

        They are those of the latest `table`. The next one looks at each place again: a mask may
        have taken the place of another buffer.
        """
        self._sizes = []
        if not (self._masked or self._packed):
            return
        packed = [np.packbits(tensor_values(mask) != 0).tobytes() for mask in self._masked]
        if packed != self._packed:
            self.version += 1
        self._packed = packed

    def observed_by(self, observe: Callable[[], None]) -> None:
        """See `MaskRegistry`: commands of `Masks` are observed, other changes are looked for."""
        HELD.observed_by(observe)

    def of(self, variable: ModuleTensor) -> Any:
        """See `MaskRegistry`."""
        pruned: Any = None if variable.mask is None else _Pruned(variable.mask)
        return _joined(HELD.of(variable), pruned, self._declared.storage_of(variable))


def _joined(*found: Any) -> Any:
    parts = [each for each in found if each is not None]
    return _Combined(parts) if len(parts) > 1 else parts[0] if parts else None


class _Pruned:
    """A read-only `MaskStorage` of a weight that torch prunes."""

    enforced = False

    def __init__(self, mask: Any) -> None:
        self._mask = mask

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept = tensor_values(self._mask) != 0
        return kept, np.ones_like(kept)


class _Combined:
    """A read-only `MaskStorage`: what any of several holds is held."""

    enforced = False

    def __init__(self, parts: Sequence[MaskStorage]) -> None:
        self._parts = parts

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept, trainable = zip(*[part.read() for part in self._parts], strict=True)
        return np.logical_and.reduce(kept), np.logical_and.reduce(trainable)
