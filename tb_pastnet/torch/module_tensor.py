"""A parameter or buffer of a module: its stored values, and those that the module computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList


@dataclass(frozen=True)
class ModuleTensor:
    """A parameter or buffer by its place: the tensor there may be replaced during training.

    Attributes:
        owner: the module that has it.
        key: its name there; for a pruned weight, or one with a parametrization, the name that the
            module computes with.
        layer: the path of `owner` without wrappers; "" is the root.
        around: the modules that it is in, the outermost first; if it is shared, those of each
            place.
        paths: its names in torch, "." written as "/", first the one without wrappers.
        parent: the module around `owner`; for a ParametrizationList, its module.
        statistic: it is a buffer.
        computed: a parametrization computes it from others, which are listed, too.
    """

    owner: nn.Module
    key: str
    layer: str
    around: tuple[nn.Module, ...]
    paths: tuple[str, ...]
    parent: nn.Module | None = None
    statistic: bool = False
    computed: bool = False

    @property
    def name(self) -> str:
        """Its path in the log."""
        return self.paths[0]

    @property
    def part_of(self) -> tuple[nn.Module, str]:
        """The module that computes with it, and the name of the weight that it is for."""
        if isinstance(self.owner, ParametrizationList) and self.parent is not None:
            return self.parent, self.layer.rpartition("/")[2]
        return self.owner, self.key

    @property
    def made_of(self) -> Any:
        """The ParametrizationList that computes it, None without one."""
        # Read at each step: `is_parametrized` is slow.
        own = self.owner._modules.get("parametrizations")
        return own[self.key] if own is not None and self.key in own else None

    @property
    def mask(self) -> Any:
        """The mask that prunes it, a tensor of 0 and 1; None if it isn't pruned."""
        if f"{self.key}_orig" in self.owner._parameters:
            return self.owner._buffers.get(f"{self.key}_mask")
        return next((each.mask for each in self.made_of or () if is_mask(each)), None)

    @property
    def stored(self) -> Any:
        """The trained tensor; for a computed weight the first that it is computed from."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:
            return parameter
        made_of = self.made_of
        if made_of is not None:
            return getattr(made_of, "original" if made_of.is_tensor else "original0")
        pruned = self.owner._parameters.get(f"{self.key}_orig")
        return self.owner._buffers[self.key] if pruned is None else pruned

    def value(self) -> Any:
        """The values that the module computes with now, not those of its last call."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:  # of most weights, at each record
            return parameter
        made_of, mask = self.made_of, self.mask
        if made_of is None and mask is None:
            return self.stored
        with torch.no_grad():
            if made_of is None:
                return self.stored * mask
            with _evaluating(made_of):
                return made_of()

    def trained(self) -> bool:
        """Whether it, or a tensor that it is computed from, gets a gradient."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:  # of most weights, at each step
            return bool(parameter.requires_grad)
        made_of = self.made_of
        if made_of is None:
            return bool(self.stored.requires_grad)
        return any(parameter.requires_grad for parameter in made_of.parameters())


def local_of(tensor: Any) -> Any:
    """The part of a tensor that is on this rank; all of it if it isn't spread over ranks."""
    return tensor.to_local() if is_spread(tensor) else tensor


def is_spread(tensor: Any) -> bool:
    """Whether it is a DTensor: FSDP2 and tensor parallelism spread parameters as such."""
    return hasattr(tensor, "to_local")


def is_mask(parametrization: nn.Module) -> bool:
    """Whether a parametrization only prunes, by its class name in torch.ao and torchao."""
    return type(parametrization).__name__ == "FakeSparsity"


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Keeps a parametrization from updating: spectral_norm makes an iteration at each call."""
    training = [each for each in module.modules() if each.training]
    for each in training:
        each.training = False
    try:
        yield
    finally:
        for each in training:
            each.training = True
