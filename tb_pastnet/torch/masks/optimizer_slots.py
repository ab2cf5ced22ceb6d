"""The optimizers that train masked weights, and their slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.place_masks import PlaceMasks, own_part
from tb_pastnet.torch.module_tensors import ModuleTensor, local_of
from tb_pastnet.torch.optimizer_steps import parameters_of


class OptimizerSlots:
    """The slots that optimizers have of masked weights: see `record.masks.commands.Enforcer`."""

    def __init__(self, optimizers: Sequence[Any], *, enforced: bool) -> None:
        self.given = [checked_optimizer(each, enforced=enforced) for each in optimizers]

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
        every = [*self.given, *(each for each in HELD.steps if each not in self.given)]
        return [each for each in every if not own.isdisjoint(map(id, parameters_of(each)))]


_TWO_COPIES = ("deepspeed", "megatron", "apex", "schedulefree")
"""Packages whose optimizers keep a second copy of a weight, from which they write it back."""


def checked_optimizer(given: Any, *, enforced: bool) -> torch.optim.Optimizer:
    """The optimizer that makes the steps; raises if masks can't hold its weights."""
    inner = getattr(given, "optimizer", given)
    package = next((each for each in map(_package, (given, inner)) if each in _TWO_COPIES), None)
    if package is not None and enforced:
        got = f"a {type(given).__name__} of {package}, which keeps another copy of each weight"
    elif isinstance(inner, torch.optim.Optimizer):
        return inner
    else:
        got = f"a {type(given).__name__}"
    raise InvalidArgument(
        f"Could not hold weights: expected optimizers of torch.optim, got {got}. Pass the "
        f"optimizer itself, or only audit with enforce=False."
    )


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _initial(optimizer: torch.optim.Optimizer, tensor: Any, slot: str) -> float:
    """The value at which a slot of a new parameter begins."""
    groups = optimizer.param_groups
    group = next(each for each in groups if any(own is tensor for own in each["params"]))
    key = {"sum": "initial_accumulator_value", "step_size": "lr"}.get(slot, "")
    return float(group.get(key, 0))
