"""The optimizers of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from tb_pastnet.keras.model.walk import held_by
from tb_pastnet.keras.types import Model, Variable


def optimizers_of(model: Model) -> list[Any]:
    """Those of `named_optimizers`."""
    return list(named_optimizers(model).values())


def named_optimizers(model: Model) -> dict[str, Any]:
    """A model's optimizers, each once: the compiled one, and attributes, like the two of a GAN.

    The default one of `compile` is listed although it may never make a step. Names are those of
    attributes, followed by a key for one in a dictionary, a list or a tuple.
    """
    own = {"optimizer": getattr(model, "optimizer", None), **getattr(model, "__dict__", {})}
    found = [pair for name, value in own.items() for pair in _optimizers_in(name, value)]
    names = {id(optimizer): name for name, optimizer in reversed(found)}
    return {name: optimizer for name, optimizer in found if names[id(optimizer)] == name}


def innermost(optimizer: keras.optimizers.Optimizer) -> Any:
    """The optimizer that updates the weights, inside of those that scale its loss."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer


def steps_of(optimizer: keras.optimizers.Optimizer) -> int:
    """How many updates an optimizer has made."""
    return int(keras.ops.convert_to_numpy(optimizer.iterations))


def trains(optimizer: keras.optimizers.Optimizer, variable: Variable) -> bool:
    """Whether an optimizer was built for a weight, as from `held_by`."""
    own = getattr(innermost(optimizer), "_trainable_variables", ())
    return any(held_by(each) is variable for each in own)


def _optimizers_in(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, keras.optimizers.Optimizer):
        yield name, value
        return
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    for key, each in value.items() if isinstance(value, Mapping) else ():
        if isinstance(each, keras.optimizers.Optimizer):
            yield f"{name}/{key}", each
