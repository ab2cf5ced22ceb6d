"""The source of a network whose weights are tensors of a module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any

import numpy as np
import torch

from tb_pastnet.record.source import STACK_ELEMENTS, ArraySource, Floats
from tb_pastnet.record.weight import Array, Network
from tb_pastnet.torch.module_tensors import PLAIN, local_of
from tb_pastnet.torch.module_weights import Homes, TorchWeight, values_in
from tb_pastnet.torch.optimizer_steps import Group, OptimizerSteps, Steps

UNKNOWN = float("nan")

_data_address: Any = getattr(torch._C, "_data_address", None)
"""The address of a storage: `data_ptr` would copy a tensor that shares memory until written."""

_LOCATED = PLAIN if _data_address is not None else ()
"""Classes of tensors that are measured where they are."""


_Rated = tuple[Group, Steps, int]
"""What `OptimizerSteps.latest_rate` takes."""


class TensorSource(ArraySource):
    """Statistics of tensors. Past copies are in CPU memory, on whatever device it is trained."""

    def __init__(self, network: Network[TorchWeight], process: int = 0, processes: int = 1) -> None:
        super().__init__(network, process, processes)
        self._entries = [weight.entry for weight in network.weights]
        self._model = self._entries[0].around[0]
        modules = [
            (module._modules, name, child)
            for module in self._model.modules()
            for name, child in module._modules.items()
        ]
        self._modules, self._names, self._children = (
            map(list, zip(*modules, strict=True)) if modules else ([], [], [])
        )

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`. Raises InvalidArgument if the model has lost a module with a weight."""
        # Quicker than looking up all modules, which may also have got a wrapper.
        if not all(map(is_, map(dict.get, self._modules, self._names), self._children)):
            inside = set(map(id, self._model.modules()))
            for entry in self._entries:
                if id(entry.owner) not in inside:
                    raise entry.changed("a module of the model", "one that was replaced or removed")
        return super().compare(number, replace=replace)

    @cached_property
    def _located(self) -> tuple[Homes, list[tuple[TorchWeight, torch.Size, int]]]:
        """The places of the weights that are measured together, their shapes and bytes."""
        own: list[TorchWeight] = self._together
        sizes = [4 * weight.axis.channels * weight.axis.elements for weight in own]
        shapes = [torch.Size(weight.text.shape) for weight in own]
        return Homes(own), list(zip(own, shapes, sizes, strict=True))

    def _locate(self) -> tuple[list[int], object]:
        """See `ArraySource`: where torch has them, if these are plain parameters in memory."""
        homes, members = self._located
        held = homes.now()  # another thread may replace a parameter meanwhile
        addresses = [0] * len(held)
        tensor: Any
        for number, tensor in enumerate(held):
            weight, shape, size = members[number]
            if (
                type(tensor) in _LOCATED
                and tensor.dtype is torch.float32
                and tensor.is_cpu
                and tensor.shape == shape
                and tensor.is_contiguous()
                and not tensor.is_neg()
                and weight.stand_in is None
            ):
                begin = 4 * tensor.storage_offset()
                if tensor.untyped_storage().nbytes() >= begin + size:
                    addresses[number] = _data_address(tensor) + begin
        if all(addresses):
            return addresses, held
        elsewhere = [number for number, address in enumerate(addresses) if not address]
        return addresses, [held, self._fetch(elsewhere, addresses)]

    def _fetch(self, numbers: Iterable[int], addresses: list[int]) -> list[Array]:
        """Reads weights that aren't where they can be measured; returns what holds them."""
        _, members = self._located
        stacks: dict[tuple[int, ...], list[int]] = {}
        for number in numbers:
            weight, _, size = members[number]
            key = weight.shape if size <= 4 * STACK_ELEMENTS else (-1, number)
            stacks.setdefault(key, []).append(number)
        arrays = []
        for own in stacks.values():
            tensors = [members[number][0].value() for number in own]
            array = np.ascontiguousarray(values_in(_stacked(tensors)), np.float32)
            begin: int = array.__array_interface__["data"][0]
            for place, number in enumerate(own):
                addresses[number] = begin + array.nbytes // len(own) * place
            arrays.append(array)
        return arrays

    def _read(self) -> list[Array]:
        stacks = [values_in(_stacked([each.value() for each in own])) for own in self._stacks]
        return [np.ascontiguousarray(stack, np.float32) for stack in stacks]


class TorchSource(TensorSource):
    """A network of torch, with the learning rates of its optimizers."""

    packages = ("torch",)

    def __init__(self, network: Network[TorchWeight], steps: OptimizerSteps) -> None:
        super().__init__(network, *process_and_count())
        self._weights = network.weights
        self._homes = Homes(self._weights)
        self._steps = steps
        # The weights of each group, one of which gives the rate.
        self._groups: list[list[TorchWeight]] = []
        # What is kept of optimizers as long as they and the weights are the same.
        self._key: Any = None
        self._trained: list[_Rated] = []
        self._of_groups: list[_Rated | None] = []

    def trainable(self) -> list[bool]:
        """See `Source`."""
        return self._homes.trainable()

    def learning_rate(self, step: int) -> float:
        """See `Source`: that of all groups, if it is the same."""
        self._look_up()
        rates = {self._steps.latest_rate(*each) for each in self._trained}
        return rates.pop() if len(rates) == 1 else UNKNOWN

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """See `Source`: the groups of all optimizers, by their `name` if they have one."""
        self._key = None
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
        if not self._groups:
            return ()
        self._look_up()
        rate = self._steps.latest_rate
        return [UNKNOWN if each is None else rate(*each) for each in self._of_groups]

    def _look_up(self) -> None:
        """Finds the optimizers' groups of the weights again, if they may be others."""
        key = self._steps.key(), list(map(id, self._homes.stored()))
        if key == self._key:
            return
        members = {}
        for name, (optimizer, group, steps) in self._steps.all(self._weights).items():
            number = [id(each) for each in optimizer.param_groups].index(id(group))
            members[name] = group, steps, number
        self._trained = list({id(each[0]): each for each in members.values()}.values())
        self._of_groups = [members.get(weights[0].name) for weights in self._groups]
        self._key = key


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
