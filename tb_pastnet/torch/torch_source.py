"""The source of a network whose weights are tensors of a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch

from tb_pastnet.record.source import ArraySource, Floats
from tb_pastnet.record.weight import Array, Network
from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import TorchWeight, values_in
from tb_pastnet.torch.optimizer_steps import OptimizerSteps

UNKNOWN = float("nan")


class TensorSource(ArraySource):
    """Statistics of tensors. Past copies are in CPU memory, on whatever device it is trained."""

    def __init__(self, network: Network[TorchWeight], process: int = 0, processes: int = 1) -> None:
        super().__init__(network, process, processes)
        self._entries = [weight.entry for weight in network.weights]
        self._model = self._entries[0].around[0]
        self._modules = [
            (module._modules, name, child)
            for module in self._model.modules()
            for name, child in module._modules.items()
        ]

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`. Raises InvalidArgument if the model has lost a module with a weight."""
        # Quicker than looking up all modules, which may also have got a wrapper.
        if any(modules.get(name) is not child for modules, name, child in self._modules):
            inside = set(map(id, self._model.modules()))
            for entry in self._entries:
                if id(entry.owner) not in inside:
                    raise entry.changed("a module of the model", "one that was replaced or removed")
        return super().compare(number, replace=replace)

    def _read(self) -> list[Array]:
        stacks = [values_in(_stacked([each.value() for each in own])) for own in self._stacks]
        return [np.ascontiguousarray(stack, np.float32) for stack in stacks]


class TorchSource(TensorSource):
    """A network of torch, with the learning rates of its optimizers."""

    packages = ("torch",)

    def __init__(self, network: Network[TorchWeight], steps: OptimizerSteps) -> None:
        super().__init__(network, *process_and_count())
        self._weights = network.weights
        self._steps = steps
        # The weights of each group, one of which gives the rate.
        self._groups: list[list[TorchWeight]] = []

    def learning_rate(self, step: int) -> float:
        """See `Source`: that of all groups, if it is the same."""
        trained = self._steps.all(self._weights).values()
        rates = set(map(self._steps.latest_rate, trained))
        return rates.pop() if len(rates) == 1 else UNKNOWN

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """See `Source`: the groups of all optimizers, by their `name` if they have one."""
        members: dict[int, list[TorchWeight]] = {}
        names: dict[int, str] = {}
        trained = self._steps.all(self._weights)
        for weight in self._weights:
            if weight.name in trained:
                optimizer, group, _ = trained[weight.name]
                numbered = f"{type(optimizer).__name__}/{len(names)}"
                name = str(group.get("name", numbered))
                names.setdefault(id(group), numbered if name in names.values() else name)
                members.setdefault(id(group), []).append(weight)
        self._groups = list(members.values()) if len(members) > 1 else []
        return {
            names[key]: [weight.name for weight in members[key]] for key in members if self._groups
        }

    def group_rates(self) -> Sequence[float]:
        """See `Source`. Another optimizer may train a group's weights by now."""
        firsts = [weights[0] for weights in self._groups]
        trained = self._steps.all(firsts)
        return [
            self._steps.latest_rate(trained[weight.name]) if weight.name in trained else UNKNOWN
            for weight in firsts
        ]


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """One tensor of them, where they lie: from an accelerator one copy brings it to the host."""
    if len(tensors) == 1:
        return tensors[0]
    with torch.no_grad():
        own = [local_of(tensor) for tensor in tensors]
        try:
            return torch.stack(own)
        except RuntimeError:  # on several devices, or of dtypes that torch doesn't mix
            return torch.stack([tensor.cpu().float() for tensor in own])


def process_and_count() -> tuple[int, int]:
    """The rank of this process, and how many the process group has."""
    group = torch.distributed
    if not (group.is_available() and group.is_initialized()):
        return 0, 1
    return group.get_rank(), group.get_world_size()
