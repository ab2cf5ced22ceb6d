"""A module, and optimizers of torch: where no rate is asked for, the user's loop has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

import tb_pastnet as pastnet
from tests.conformance.room import Arrays, Room, layer_of


def tensor_of(value: np.ndarray) -> torch.Tensor:
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def array_of(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()
    return tensor.detach().numpy().copy()


class Adaptor(Room):
    """`optimizers` gives each layer one of its own, instead of groups."""

    optimizers: list[Any]

    def build(self, values: Arrays) -> None:
        self.several = self.settings.pop("optimizers", False)
        self.model, self.parameters = torch.nn.Module(), {}
        for name, value in values.items():
            layer, _, own = name.rpartition("/")
            if not hasattr(self.model, layer):
                self.model.add_module(layer, torch.nn.Module())
            parameter = torch.nn.Parameter(tensor_of(value))
            getattr(self.model, layer).register_parameter(own, parameter)
            self.parameters[name] = parameter
        self.optimizers = self.made() if self.rates is not None else []

    def made(self) -> list[Any]:
        groups: dict[str, list[Any]] = {}
        for name, parameter in self.parameters.items():
            groups.setdefault(layer_of(name), []).append(parameter)
        self.layers = list(groups)
        made = [{"params": own, "lr": 1.0} for own in groups.values()]
        options = {"lr": 1.0, "weight_decay": self.decay}
        if self.several:
            return [torch.optim.SGD([group], **options) for group in made]
        return [torch.optim.SGD(made, **options)]

    def recorder_of(self, **settings: Any) -> Any:
        optimizers = self.optimizers or None
        return pastnet.torch.Recorder(self.logdir, self.model, optimizers, **settings)

    def hold(self, **options: Any) -> Any:
        return pastnet.torch.Masks(self.model, *self.optimizers, **options)

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        with torch.no_grad():
            for name, value in values.items():
                self.parameters[name].copy_(tensor_of(np.asarray(value)))

    def values(self) -> Arrays:
        return {name: array_of(parameter) for name, parameter in self.parameters.items()}

    def update(self, pull: float = 1.0) -> None:
        self.updates += 1
        self.set_rates()
        for parameter in self.parameters.values():
            parameter.grad = pull * parameter.detach()
        for optimizer in self.optimizers:
            optimizer.step()
        self.updates += 1  # as a scheduler, which sets the next rate
        self.set_rates()
        self.updates -= 1

    def set_rates(self) -> None:
        groups = [group for each in self.optimizers for group in each.param_groups]
        for layer, group in zip(self.layers, groups, strict=True):
            group["lr"] = self.rate(f"{layer}/")
