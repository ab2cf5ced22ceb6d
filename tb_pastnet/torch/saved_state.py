"""The state of a training in torch, which is put back bit for bit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

_MODULE = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class SavedState:
    """Copies of the memory of tensors, each memory once, and what refers to these tensors.

    Args:
        module: its parameters, buffers and gradients, and the mode of each module in it.
        stateful: optimizers and a scaler: all their attributes that are tensors, numbers
            and containers of them.
    """

    def __init__(self, module: torch.nn.Module, stateful: Iterable[Any]) -> None:
        self._seen: dict[int, Any] = {}
        self._storages: dict[int, tuple[Any, Any]] = {}
        self._aliases: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._sparse: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._modes: list[tuple[torch.nn.Module, bool]] = []
        self._flags: list[tuple[torch.Tensor, bool, torch.Tensor | None]] = []
        for each in module.modules():
            self._modes.append((each, each.training))
            for name in _MODULE:
                self._keep(getattr(each, name))
        for each in stateful:
            self._keep(vars(each))
        self._random = _random_state(self._devices())

    @property
    def nbytes(self) -> int:
        """The memory of the copies."""
        sparse = sum(copy._values().nbytes + copy._indices().nbytes for _, copy in self._sparse)
        return int(sparse + sum(copy.nbytes() for _, copy in self._storages.values()))

    def former(self, tensor: torch.Tensor) -> torch.Tensor:
        """What a kept dense tensor was, as a view of its copy."""
        _, copy = self._storages[_key(tensor)]
        place = tensor.storage_offset(), tensor.shape, tensor.stride()
        view = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return view.set_(copy, *place)

    @torch.no_grad()
    def restore(self) -> None:
        """Puts everything back."""
        for container, copy in self._containers:
            # In place: others have the same one.
            container.clear()
            add = container.update if isinstance(container, dict | set) else container.extend
            add(copy)
        self._restore_memory()
        for tensor, flag, gradient in self._flags:
            if tensor.requires_grad != flag:
                tensor.requires_grad_(flag)
            tensor.grad = gradient
        for module, mode in self._modes:
            module.training = mode
        for set_state, state in self._random:
            set_state(state)

    def _restore_memory(self) -> None:
        for tensor, alias in self._aliases:
            if not _at_one_place(tensor, alias):
                tensor.data = alias
        for storage, copy in self._storages.values():
            if storage.nbytes() != copy.nbytes():
                storage.resize_(copy.nbytes())
            storage.copy_(copy)
        for tensor, former in self._sparse:
            tensor.copy_(former)

    def _keep(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            self._keep_tensor(value)
        elif isinstance(value, dict | list | deque | set):
            copy = dict(value) if isinstance(value, dict) else list(value)
            self._containers.append((value, copy))
            for child in copy.values() if isinstance(copy, dict) else copy:
                self._keep(child)
        elif isinstance(value, tuple):
            for child in value:
                self._keep(child)
        elif hasattr(value, "param_groups") and hasattr(value, "state"):
            self._keep(vars(value))  # the optimizer inside another one

    def _keep_tensor(self, tensor: torch.Tensor) -> None:
        if tensor.is_leaf:
            gradient = tensor.grad
            self._flags.append((tensor, tensor.requires_grad, gradient))
            if gradient is not None:
                self._keep(gradient)
        if tensor.layout is not torch.strided:
            self._sparse.append((tensor, tensor.detach().clone()))
            return
        self._aliases.append((tensor, tensor.detach()))
        for part in parts_of(tensor):
            storage = part.untyped_storage()
            if _key(part) not in self._storages:
                self._storages[_key(part)] = storage, storage.clone()

    def _devices(self) -> set[torch.device]:
        tensors = (each for each in self._seen.values() if isinstance(each, torch.Tensor))
        return {each.device for each in tensors}


def parts_of(tensor: Any) -> Iterator[torch.Tensor]:
    """The plain tensors that one consists of: itself, or those that a subclass wraps."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()
    for part in (getattr(tensor, name) for name in names):
        if isinstance(part, torch.Tensor):
            yield from parts_of(part)


def same_bits(tensor: torch.Tensor, copy: torch.Tensor) -> bool:
    """Whether two dense tensors of one shape and dtype are equal bit for bit."""
    equal: bool = torch.equal(as_integers(tensor), as_integers(copy))
    return equal


def as_integers(tensor: torch.Tensor) -> torch.Tensor:
    """The bits of a dense tensor, as integers of its size."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.view(
        {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(tensor.element_size(), torch.int64)
    )


def _key(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


def _at_one_place(tensor: torch.Tensor, alias: torch.Tensor) -> bool:
    if hasattr(tensor, "__tensor_flatten__"):
        return all(map(_at_one_place, parts_of(tensor), parts_of(alias)))
    return _place(tensor) == _place(alias)


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    where = tensor.stride(), tensor.storage_offset(), _key(tensor)
    return tensor.dtype, tensor.shape, *where


def _random_state(devices: Iterable[torch.device]) -> list[tuple[Any, Any]]:
    """Of the CPU and of accelerators in use: a function that sets it, and the state."""
    states: list[tuple[Any, Any]] = [(torch.set_rng_state, torch.get_rng_state())]
    for kind in {device.type for device in devices} - {"cpu", "meta"}:
        module: Any = torch.get_device_module(kind)
        if hasattr(module, "get_rng_state_all"):
            states.append((module.set_rng_state_all, module.get_rng_state_all()))
        else:
            states.append((module.set_rng_state, module.get_rng_state()))
    return states
