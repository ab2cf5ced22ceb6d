"""Which optimizers train a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from tb_pastnet.keras.types import Model


def optimizers_of(model: Model) -> list[Any]:
    """Those that a model holds: compiled with, or as attributes, as a GAN has two; each once.

    One that `compile` made, as it was told of none, is listed although it may never make a step.
    """
    own = [getattr(model, "optimizer", None), *getattr(model, "__dict__", {}).values()]
    found = [each for value in own for each in _optimizers_in(value)]
    return list({id(optimizer): optimizer for optimizer in found}.values())


def innermost(optimizer: keras.optimizers.Optimizer) -> Any:
    """The optimizer that updates the weights, inside of those that scale its loss."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer


def _optimizers_in(value: object) -> Iterator[keras.optimizers.Optimizer]:
    if isinstance(value, keras.optimizers.Optimizer):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, keras.optimizers.Optimizer))
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, keras.optimizers.Optimizer))
