"""The weight that a LoRA layer of PEFT computes with: its base, and what adapters add to it.

An adapter adds scale · B A (Hu et al. 2021, arXiv:2106.09685). With DoRA (Liu et al. 2024,
arXiv:2402.09353), the sum is scaled to a magnitude, per output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from tb_pastnet.torch.module_tensors import ModuleTensor

KEY = "lora_weight"
"""The name of the weight, after that of Keras."""

_ROOM = "peft.tuners.lora.layer"
_KINDS = "Linear", "Embedding", "_ConvNd"
_FACTORS = ("lora_A", "lora_B"), ("lora_embedding_A", "lora_embedding_B")


class Added(NamedTuple):
    """What an adapter adds."""

    a: torch.Tensor
    b: torch.Tensor
    scale: float
    magnitude: torch.Tensor | None  # of DoRA

    def kept(self) -> Added:
        """A copy."""
        a, b, scale, magnitude = self
        return Added(a.clone(), b.clone(), scale, None if magnitude is None else magnitude.clone())


@dataclass(frozen=True, kw_only=True)
class LoraTensor(ModuleTensor):
    """The weight that a LoRA layer computes with, in float32 or more: no forward pass rounds it.

    Attributes:
        base: the weight below.
    """

    base: ModuleTensor

    @property
    def handles(self) -> tuple[object, ...]:
        """See `ModuleTensor`."""
        return self.around

    @property
    def part_of(self) -> tuple[nn.Module, str]:
        """See `ModuleTensor`: it is for the base."""
        return self.base.part_of

    @property
    def stored(self) -> Any:
        """See `ModuleTensor`: that of the base."""
        return self.base.stored

    def value(self) -> torch.Tensor:
        """See `ModuleTensor`."""
        return self.sum_of(self.base.value(), self.added())

    @torch.no_grad()
    def sum_of(self, base: torch.Tensor, adapters: list[Added]) -> torch.Tensor:
        """What a base and adapters make, which may be former ones."""
        base = base.detach().to(torch.promote_types(base.dtype, torch.float32))
        turned = self._turned()
        total = base
        for a, b, scale, magnitude in adapters:
            factors = b.to(base).flatten(1), a.to(base).flatten(1)
            left, right = (factors[1].T, factors[0].T) if turned else factors
            onto = total if magnitude is None else base
            changed = torch.addmm(onto.flatten(1), left, right, alpha=scale).view(base.shape)
            if magnitude is None:
                total = changed
                continue
            over = (0,) if turned else tuple(range(1, base.ndim))
            norm = torch.linalg.vector_norm(changed, dim=over, keepdim=True)
            scaled = magnitude.to(base).reshape(norm.shape) / norm * changed
            total = scaled if total is base else total + (scaled - base)
        return total

    def added(self) -> list[Added]:
        """What adapters add now: nothing if they are disabled or merged into the base."""
        layer: Any = self.owner
        if layer.disable_adapters or layer.merged:
            return []
        return [
            Added(*factors, float(layer.scaling[name]), self._magnitude(name))
            for name in layer.active_adapters
            if (factors := _factors(layer, name)) is not None
        ]

    def trained(self) -> bool:
        """See `ModuleTensor`: whether a gradient reaches any part of it."""
        parts = [self.base.stored, *(part for each in self.added() for part in each[:2])]
        return any(part.requires_grad for part in parts)

    def _magnitude(self, adapter: str) -> torch.Tensor | None:
        layer: Any = self.owner
        if adapter not in layer.lora_variant:
            return None
        magnitude: torch.Tensor = layer.lora_magnitude_vector[adapter].weight
        return magnitude

    def _turned(self) -> bool:
        """Whether the weight is (inputs, outputs)."""
        layer: Any = self.owner
        return bool(layer.lora_embedding_A) or getattr(layer, "fan_in_fan_out", False)


def with_effective(entries: Iterable[ModuleTensor]) -> Iterator[ModuleTensor]:
    """Adds the weight of each LoRA layer after its base."""
    for entry in entries:
        yield entry
        wrappers = (each for each in entry.around if _base_of(each) is entry.owner)
        layer = next(wrappers, None)
        if layer is not None and entry.key == "weight" and _is_sum(layer, entry):
            path = f"{entry.name.rpartition('/')[0]}/{KEY}"
            around = entry.around[:-1]
            yield LoraTensor(layer, KEY, entry.layer, around, (path,), computed=True, base=entry)


def _base_of(module: nn.Module) -> nn.Module | None:
    return module._modules.get("base_layer")


def _is_sum(layer: Any, base: ModuleTensor) -> bool:
    """Whether the layer computes with a sum that `LoraTensor` knows."""
    kinds = {kind.__name__ for kind in type(layer).__mro__ if kind.__module__ == _ROOM}
    if kinds.isdisjoint(_KINDS) or getattr(base.owner, "groups", 1) > 1:
        return False
    variants = (type(variant).__name__ for variant in layer.lora_variant.values())
    return base.stored.is_floating_point() and all(name.startswith("Dora") for name in variants)


def _factors(layer: Any, adapter: str) -> tuple[torch.Tensor, torch.Tensor] | None:
    for names in _FACTORS:
        first, second = (getattr(layer, name) for name in names)
        if adapter in first:
            a, b = (getattr(each[adapter], "weight", each[adapter]) for each in (first, second))
            return a, b
    return None
