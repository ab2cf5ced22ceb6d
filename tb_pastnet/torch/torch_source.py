"""The source of a network whose weights are tensors of a module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import torch

from tb_pastnet.core.float_words import address_of, words_of
from tb_pastnet.record.device_array import memory_of
from tb_pastnet.record.resting import Resting
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import STACK_ELEMENTS, ArraySource, Floats
from tb_pastnet.record.weight import Array, Network
from tb_pastnet.torch.module_tensors import PLAIN, local_of
from tb_pastnet.torch.module_weights import Homes, TorchWeight, values_in
from tb_pastnet.torch.optimizer_steps import Group, OptimizerSteps, Steps
from tb_pastnet.torch.still_causes import StillCauses

UNKNOWN = float("nan")
_LATER = "no optimizer"

_data_address: Any = getattr(torch._C, "_data_address", None)
"""The address of a storage: `data_ptr` would copy a tensor that shares memory until written."""

_LOCATED = PLAIN if _data_address is not None else ()
"""Classes of tensors that are measured where they are."""

_DTYPES = {
    "float32": (torch.float32, 4),
    "bfloat16": (torch.bfloat16, 2),
    "float16": (torch.float16, 2),
}
"""The dtypes of torch, and bytes of an element, by the names of `core.float_words`."""

_Rated = tuple[Group, Steps, int]
"""What `OptimizerSteps.latest_rate` takes."""


class TensorSource(ArraySource):
    """Statistics of tensors. Past copies are in CPU memory, on whatever device it is trained."""

    def __init__(
        self,
        network: Network[TorchWeight],
        process: int = 0,
        processes: int = 1,
        resting: Resting | None = None,
    ) -> None:
        super().__init__(network, process, processes, resting)
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
    def _located(self) -> dict[str, tuple[Homes, list[_Located]]]:
        """The places of the weights that are measured together."""
        return {
            dtype: (Homes(members), [_Located.of(weight) for weight in members])
            for dtype, members in self._together.items()
        }

    def _locate(self, members: str, dtype: str) -> tuple[list[int], object]:
        """See `ArraySource`: where torch has them, if these are plain parameters in memory."""
        homes, own = self._located[members]
        held = homes.now()  # another thread may replace a parameter meanwhile
        addresses = [0] * len(held)
        wanted, size = _DTYPES[dtype]
        tensor: Any
        for number, tensor in enumerate(held):
            weight, shape, elements = own[number]
            if (
                type(tensor) in _LOCATED
                and tensor.dtype is wanted
                and tensor.is_cpu
                and tensor.shape == shape
                and tensor.is_contiguous()
                and not tensor.is_neg()
                and weight.stand_in is None
            ):
                begin = size * tensor.storage_offset()
                if tensor.untyped_storage().nbytes() >= begin + size * elements:
                    addresses[number] = _data_address(tensor) + begin
        if all(addresses):
            return addresses, held
        elsewhere = [(number, own[number]) for number, place in enumerate(addresses) if not place]
        return addresses, [held, _fetch(elsewhere, addresses, dtype)]

    def _read(self) -> list[Array]:
        stacks = [values_in(_stacked([each.value() for each in own])) for own in self._stacks]
        return [np.ascontiguousarray(stack, np.float32) for stack in stacks]


class _Located(NamedTuple):
    """A weight that may be measured where it is."""

    weight: TorchWeight
    shape: torch.Size
    elements: int

    @classmethod
    def of(cls, weight: TorchWeight) -> _Located:
        axis = weight.axis
        return cls(weight, torch.Size(weight.text.shape), axis.channels * axis.elements)


def _fetch(places: Iterable[tuple[int, _Located]], addresses: list[int], dtype: str) -> list[Array]:
    """Reads weights that aren't where they can be measured; returns what holds them."""
    stacks: dict[tuple[int, ...], list[tuple[int, TorchWeight]]] = {}
    for number, (weight, _, elements) in places:
        key = weight.shape if elements <= STACK_ELEMENTS else (-1, number)
        stacks.setdefault(key, []).append((number, weight))
    arrays = []
    for own in stacks.values():
        array = _words(_stacked([weight.value() for _, weight in own]), dtype)
        begin = address_of(array)
        for place, (number, _) in enumerate(own):
            addresses[number] = begin + array.nbytes // len(own) * place
        arrays.append(array)
    return arrays


def _words(tensor: torch.Tensor, dtype: str) -> Array:
    """See `words_of`: from an accelerator, no more bytes come than the tensor has."""
    if tensor.dtype is _DTYPES[dtype][0] and tensor.dtype is not torch.float32:
        own = local_of(tensor.detach()).resolve_neg().contiguous()
        words: Array = memory_of(own.view(torch.int16))
        return words
    return words_of(values_in(tensor), dtype)


class TorchSource(TensorSource):
    """A network of torch, with the learning rates of its optimizers."""

    packages = ("torch",)

    def __init__(
        self,
        network: Network[TorchWeight],
        steps: OptimizerSteps,
        schedule: Schedule | None = None,
        resting: Resting | None = None,
    ) -> None:
        super().__init__(network, *process_and_count(), resting)
        # Without a schedule, as where ranks share weights, causes are unknown.
        still = None if schedule is None else StillCauses(network.weights, steps, schedule)
        self._still = still
        self._weights = network.weights
        self._homes = Homes(self._weights)
        self._steps = steps
        # The weights of each group, which give its rate.
        self._groups: list[list[TorchWeight]] = []
        # What is kept of optimizers as long as they and the weights are the same.
        self._key: Any = None
        self._trained: list[_Rated] = []
        self._of_groups: list[list[_Rated]] = []

    def trainable(self) -> list[bool]:
        """See `Source`."""
        return self._homes.trainable()

    def learning_rate(self, step: int) -> float:
        """See `Source`: that of all groups, if it is the same."""
        self._look_up()
        rates = {self._steps.latest_rate(*each) for each in self._trained}
        return rates.pop() if len(rates) == 1 else UNKNOWN

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """See `Source`: the groups of all optimizers, by their `name` if they have one.

        What no optimizer trains yet, such as a frozen base, is one more group: it may join an
        optimizer later, with another rate.
        """
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
        later = [
            weight
            for weight in self._weights
            if weight.name not in trained and isinstance(weight.entry.stored, torch.nn.Parameter)
        ]
        if members and later:
            names[0], members[0] = f"{_LATER}/{len(names)}", later
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
        each = [{rate(*one) for one in rated} for rated in self._of_groups]
        return [own.pop() if len(own) == 1 else UNKNOWN for own in each]

    def why_still(
        self, still: Sequence[int], slow: Sequence[int], skip: int = 0
    ) -> Mapping[int, str]:
        """See `Source`."""
        if self._still is None:
            return super().why_still(still, slow)
        return self._still.find(still, slow, skip)

    def decay(self, number: int) -> tuple[float, float] | None:
        """See `Source`."""
        return None if self._still is None else self._still.decay(number)

    def _look_up(self) -> None:
        """Finds the optimizers' groups of the weights again, if they may be others."""
        key = self._steps.key(), list(map(id, self._homes.stored()))
        if key == self._key:
            return
        members = {}
        for name, (optimizer, group, steps) in self._steps.all(self._weights).items():
            number = [id(each) for each in optimizer.param_groups].index(id(group))
            members[name] = group, steps, number
        self._trained = _each_once(members.values())
        own = ([members.get(each.name) for each in weights] for weights in self._groups)
        self._of_groups = [_each_once(filter(None, rated)) for rated in own]
        self._key = key


def _each_once(rated: Iterable[_Rated]) -> list[_Rated]:
    return list({id(each[0]): each for each in rated}.values())


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
