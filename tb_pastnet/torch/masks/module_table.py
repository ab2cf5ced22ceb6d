"""The masks of a module's parameters, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from tb_pastnet.core.names import LogName, Names
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.masks.packed import Resumed, SavedMasks
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.module_masks import ModuleMasks, find_masks
from tb_pastnet.torch.module_tensors import is_spread
from tb_pastnet.torch.module_weights import TorchWeight, network_of, spelled


class ModuleTable(MaskTable):
    """The masks of a module's parameters: a view of those that it has now."""

    def __init__(self, model: nn.Module, *, enforced: bool) -> None:
        network = network_of(model)
        super().__init__(network.everything, HELD, self._make)
        self.model, self._enforced = model, enforced
        self._structure = _structure(model)
        self._join()
        root = ModuleMasks.on(model)
        if not (root.origin or any(is_spread(each.entry.stored) for each in self.weights.values())):
            root.origin = network.origin()

    def take(self, loaded: Mapping[str, SavedMasks]) -> Resumed:
        """Sets masks from a file, and holds current values; compares these with those saved."""
        for name in {*self.masked, *loaded}:
            free = np.ones(self.weights[name].shape, bool)
            kept, through = loaded[name][:2] if name in loaded else (free, free)
            place = self.storage_for(name)
            place.elements = None  # values of former masks
            place.write(kept, through | ~kept)
            place.sums = (loaded[name].sums, place.saved().sums) if name in loaded else None
        HELD.changed()
        return Resumed.of({name: self.masked[name].sums for name in loaded})

    @property
    def names(self) -> Names:
        """See `MaskTable`: also as keys of `state_dict`."""
        return _DottedNames({name: weight.called for name, weight in self.weights.items()})

    @property
    def origin(self) -> str:
        """See `MaskTable`: copies of the module have it, too."""
        return ModuleMasks.on(self.model).origin

    @origin.setter
    def origin(self, origin: str) -> None:
        if origin:
            ModuleMasks.on(self.model).origin = origin

    def look(self) -> None:
        """See `MaskTable`."""
        structure = _structure(self.model)
        if structure != self._structure:
            self._structure = structure
            everything = network_of(self.model).everything
            self._contents.weights = {weight.name: weight for weight in everything}
            self._join()
            HELD.version += 1

    def _join(self) -> None:
        """Has all that can be masked saved and loaded with masks."""
        for weight in self.weights.values():
            entry = weight.entry
            if entry.key in entry.owner._parameters:
                own = ModuleMasks.on(entry.owner)
                own.weights[entry.key] = weight.name, weight.axis
                own.enforced = own.enforced or self._enforced
        ModuleMasks.on(self.model).last = True

    def enforce(self) -> None:
        """Holds what was only declared."""
        for masks in self._of_modules():
            masks.enforced = True
        for place in self.masked.values():
            if not place.enforced:
                place.enforced = True
                place.hold()
        if self.masked:
            HELD.hook_steps()

    def find_tensors(self) -> None:
        """Has masks hold what is at their places now, as after a trainer has sharded the module."""
        self.look()
        for place in self.masked.values():
            tensor = place.tensor()
            if tensor is not None and not place.is_at(tensor):
                place.accept(tensor)
                HELD.moved(place)

    def close(self) -> None:
        """Ends all masks of the module."""
        for masks in self._of_modules():
            masks.remove()

    def _of_modules(self) -> list[ModuleMasks]:
        every = map(find_masks, self.model.modules())
        return [masks for masks in every if masks is not None]

    def _make(self, weight: TorchWeight) -> Any:
        return ModuleMasks.on(weight.entry.owner).place(weight.entry.key)


class _DottedNames(Names):
    def groups(self, wanted: object) -> list[list[str]]:
        """See `Names`: the keys of `state_dict` are names, too."""
        dotted = isinstance(wanted, str) and not isinstance(wanted, LogName)
        return super().groups(spelled(wanted) if dotted else wanted)


def _structure(model: nn.Module) -> list[tuple[int, ...]]:
    """Another list if the module has other tensors, or in other places."""
    return [
        (id(module), *map(id, module._parameters.values()), hash(tuple(module._parameters)))
        for module in model.modules()
    ]
