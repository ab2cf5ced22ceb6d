"""The optimizers of a model."""

from __future__ import annotations

from typing import Any

import keras

from tb_pastnet.keras.model.walk import held_by
from tb_pastnet.keras.types import Model, Variable

Optimizer = keras.optimizers.Optimizer

_PLAIN = {type(None), bool, int, float, str}
"""Classes of most attributes of a model, none of which holds an optimizer."""


def optimizers_of(model: Model) -> list[Any]:
    """Those of `named_optimizers`."""
    return list(named_optimizers(model).values())


def named_optimizers(model: Model) -> dict[str, Any]:
    """A model's optimizers, each once: the compiled one, and attributes, like the two of a GAN.

    The default one of `compile` is listed although it may never make a step. Names are those of
    attributes, followed by a key for one in a dictionary, a list or a tuple.
    """
    own = {"optimizer": getattr(model, "optimizer", None), **getattr(model, "__dict__", {})}
    found: dict[int, tuple[str, Any]] = {}
    # Quick: a record of each step looks for them.
    values = [(name, value) for name, value in own.items() if type(value) not in _PLAIN]
    for name, value in values:
        for each, key in _optimizers_in(value):
            found.setdefault(id(each), (name + key, each))
    return dict(found.values())


def innermost(optimizer: keras.optimizers.Optimizer) -> Any:
    """The optimizer that updates the weights, inside of those that scale its loss."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer


def steps_of(optimizer: keras.optimizers.Optimizer) -> int:
    """How many updates an optimizer has made."""
    count = optimizer.iterations
    if keras.backend.backend() == "tensorflow":
        # Under a strategy it is a variable of several devices, which is no number.
        count = keras.ops.convert_to_numpy(count)
    return int(count)


def trains(optimizer: keras.optimizers.Optimizer, variable: Variable) -> bool:
    """Whether an optimizer was built for a weight, as from `held_by`."""
    own = getattr(innermost(optimizer), "_trainable_variables", ())
    return any(held_by(each) is variable for each in own)


def _optimizers_in(value: object) -> list[tuple[Any, str]]:
    """Each with what follows the name of the attribute."""
    if isinstance(value, Optimizer):
        return [(value, "")]
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    within = value.items() if isinstance(value, dict) else ()
    return [(each, f"/{key}") for key, each in within if isinstance(each, Optimizer)]
