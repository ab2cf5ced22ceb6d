"""The source of a network whose weights are tensors of a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch

from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.weight import Array, Network
from tb_pastnet.torch.module_tensor import local_of
from tb_pastnet.torch.module_weights import TorchWeight, array_of
from tb_pastnet.torch.optimizer_steps import OptimizerSteps, rate_of

UNKNOWN = float("nan")


class TensorSource(ArraySource):
    """Statistics of tensors. Past copies are in CPU memory, on whatever device it is trained."""

    def _read(self) -> list[Array]:
        return [array_of(_stacked([each.entry.value() for each in own])) for own in self._stacks]


class TorchSource(TensorSource):
    """A network of torch, with the learning rates of its optimizers."""

    packages = ("torch",)

    def __init__(self, network: Network[TorchWeight], steps: OptimizerSteps) -> None:
        super().__init__(network)
        self._weights = network.weights
        self._steps = steps
        # The weights of each group, one of which gives the rate.
        self._groups: list[list[TorchWeight]] = []

    @property
    def writes(self) -> bool:
        """See `Source`: the first of the workers that train copies of one module does."""
        return is_first_worker()

    @property
    def workers(self) -> int:
        """See `Source`: the ranks of the process group."""
        group = torch.distributed
        alone = not (group.is_available() and group.is_initialized())
        return 1 if alone else int(group.get_world_size())

    def copy(self, number: int) -> None:
        """See `Source`. Without writing, nothing is kept."""
        if self.writes:
            super().copy(number)

    def learning_rate(self, step: int) -> float:
        """See `Source`: that of all groups, if it is the same."""
        trained = self._steps.all(self._weights).values()
        rates = {*map(rate_of, {id(group): group for _, group, _ in trained}.values())}
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
                name = group.get("name", numbered)
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
            rate_of(trained[weight.name][1]) if weight.name in trained else UNKNOWN
            for weight in firsts
        ]


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """One tensor of them, where they lie: from an accelerator one copy brings it to the host."""
    if len(tensors) == 1:
        return tensors[0]
    with torch.no_grad():
        own = [local_of(tensor) for tensor in tensors]
        apart = len({tensor.device for tensor in own}) > 1
        return torch.stack([tensor.cpu() for tensor in own] if apart else own)


def is_first_worker() -> bool:
    """Whether this process has rank 0, or is the only one."""
    group = torch.distributed
    return not (group.is_available() and group.is_initialized() and group.get_rank())
