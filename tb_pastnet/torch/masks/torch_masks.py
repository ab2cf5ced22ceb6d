"""Masks on the single weights of a torch module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.core.names import LogName, Names
from tb_pastnet.core.pruning_rules import Values
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.masks.commands import EditedWeight, MaskCommands, unmaskable
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.module_masks import ModuleMasks, find_masks
from tb_pastnet.torch.masks.place_masks import PlaceMasks, own_part, whole_values
from tb_pastnet.torch.module_tensors import ModuleTensor, local_of
from tb_pastnet.torch.module_weights import TorchWeight, mask_values, network_of, spelled
from tb_pastnet.torch.optimizer_steps import parameters_of


class ModuleTable(MaskTable):
    """The masks of a module's parameters: a view of those that it has now."""

    def __init__(self, model: nn.Module, *, enforced: bool) -> None:
        network = network_of(model)
        super().__init__(network.everything, HELD, self._make)
        self.model, self._enforced = model, enforced
        self._structure = _structure(model)
        self._join()

    @property
    def names(self) -> Names:
        """See `MaskTable`: also as keys of `state_dict`."""
        return _DottedNames({name: weight.called for name, weight in self.weights.items()})

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

    def close(self) -> None:
        """Ends all masks of the module."""
        for masks in self._of_modules():
            masks.remove()

    def _of_modules(self) -> list[ModuleMasks]:
        found = map(find_masks, self.model.modules())
        return [masks for masks in found if masks is not None]

    def _make(self, weight: TorchWeight) -> Any:
        return ModuleMasks.on(weight.entry.owner).place(weight.entry.key)


class _DottedNames(Names):
    def groups(self, wanted: object) -> list[list[str]]:
        """See `Names`: the keys of `state_dict` are names, too."""
        dotted = isinstance(wanted, str) and not isinstance(wanted, LogName)
        return super().groups(spelled(wanted) if dotted else wanted)


def _structure(model: nn.Module) -> list[int]:
    """Another list if the module has other tensors."""
    return [
        id(tensor)
        for module in model.modules()
        for tensor in (module, *module._parameters.values())
    ]


class OptimizerSlots:
    """The slots that optimizers have of masked weights: see `record.masks.commands.Enforcer`."""

    def __init__(self, optimizers: Sequence[Any]) -> None:
        self.given = list(optimizers)

    def enforce_now(self, masks: PlaceMasks) -> None:
        """See `record.masks.commands.Enforcer`: whatever writes masks also holds them."""

    @torch.no_grad()
    def clear_slots(self, variable: ModuleTensor, where: Mask) -> None:
        """See `record.masks.commands.Enforcer`."""
        tensor = variable.stored
        part = own_part(torch.from_numpy(where), tensor, variable.name)
        for optimizer in self.of([tensor]):
            for name, slot in optimizer.state.get(tensor, {}).items():
                if isinstance(slot, torch.Tensor) and slot.shape == tensor.shape:
                    own = local_of(slot)
                    own.masked_fill_(part.to(own.device), _initial(optimizer, tensor, name))

    def of(self, tensors: Iterable[Any]) -> list[torch.optim.Optimizer]:
        """The optimizers that train any of some tensors: the given ones, and those that stepped."""
        own = set(map(id, tensors))
        every = [*self.given, *(each for each in HELD.optimizers if each not in self.given)]
        return [each for each in every if not own.isdisjoint(map(id, parameters_of(each)))]


def _initial(optimizer: torch.optim.Optimizer, tensor: Any, slot: str) -> float:
    """The value at which a slot of a new parameter begins."""
    groups = optimizer.param_groups
    group = next(each for each in groups if any(own is tensor for own in each["params"]))
    key = {"sum": "initial_accumulator_value", "step_size": "lr"}.get(slot, "")
    return float(group.get(key, 0))


class _EditedTensor(EditedWeight):
    def values(self) -> Values:
        """See `WeightMasks`. All ranks that share it have to call it."""
        weight: Any = self.weight
        values: Values = whole_values(weight.entry.stored)
        return values

    def _mask(self, mask: Any, word: str) -> Mask:
        tensor = isinstance(mask, torch.Tensor)
        return super()._mask(mask_values(mask, self.label, word) if tensor else mask, word)


@answered
class Masks(MaskCommands):
    """Prunes and freezes single weights, or whole channels, of a torch module.

    Every element of a parameter is free, frozen (held at its value) or pruned (held at zero), by
    two masks, in which 1 lets through: `kept` (0 = pruned) and `trainable` (0 = frozen). Frozen and
    pruned weights stay bit-identical in each step of every `torch.optim` optimizer, with its weight
    decay, momentum and clipping, on a CPU or an accelerator, and sharded by `fully_shard`. Their
    gradients are zero before clipping. See
    https://tb-pastnet.github.io/tb_pastnet/how_to/torch_masks.html.

    Masks belong to places of a module, not to tensor objects. They are saved in the metadata of
    `state_dict`, which plain torch ignores, and copied and pickled with the module. If ranks share
    weights, make them, and call what changes them, on each rank.

    Args:
        model: a torch.nn.Module. The masks that it already carries are used.
        optimizers: those that train it, whose slots `regrow` and `rewind` set. None: those that
            have made a step.
        enforce: False only declares the masks, for a Recorder and `audit`: no weight is written.

    Attributes:
        kept: the kept mask of each weight by name, bool arrays; a copy at each access.
        trainable: the trainable mask of each weight, copies as well. Pruned elements count as
            trainable.
        model: whose masks these are.
        state: the masks that a Recorder reads.

    Raises:
        InvalidArgument: the module can't be read, or an optimizer doesn't call the hooks of
            torch.optim.

    Example:
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
        >>> masks = Masks(model, optimizer)
        >>> masks.prune("weight", channels=[1])
        >>> model(torch.ones(4, 3)).sum().backward()
        >>> optimizer.step()
        >>> model.weight[1].tolist(), masks.sparsity()
        ([0.0, 0.0, 0.0], 0.5)
    """

    state: ModuleTable

    def __init__(
        self, model: nn.Module, *optimizers: torch.optim.Optimizer, enforce: bool = True
    ) -> None:
        self.model, self._enforce = model, enforce
        self._optimizers = OptimizerSlots(optimizers)
        self._audits: list[tuple[Any, Audit]] = []
        state = ModuleTable(model, enforced=enforce)
        if enforce:
            state.enforce()
        super().__init__(state, self._optimizers, _refuse)

    def close(self) -> None:
        """Ends the masks: nothing is held any more, and no hook is left."""
        self.state.close()

    def _edited(self, name: str) -> EditedWeight:
        return _EditedTensor(self, self.state.weights[name])


def _refuse(weight: TorchWeight) -> None:
    """Raises InvalidArgument if masks can't hold a weight."""
    entry = weight.entry
    if entry.mask is not None:
        expected, got = "a parameter", "one that torch prunes"
        raise unmaskable(weight.name, expected, got, "Call masks.take_over() first.")
    if entry.computed:
        expected, got = "a parameter", "one that a parametrization computes"
        mend = f"Mask what it is computed from, below {entry.layer}/parametrizations."
        raise unmaskable(weight.name, expected, got, mend)
