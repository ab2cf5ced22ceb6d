"""What an optimizer keeps of a variable: momentums and the like, and its moving average.

Keras has no public way from a variable to its slots. They are the optimizer's lists with one entry
for each variable, found by their length and shapes, so that a new optimizer's are found as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.model.walk import tf_variable

_AVERAGES = "_model_variables_moving_average"
_WEIGHTS = "_trainable_variables"


def slots_of(optimizer: keras.optimizers.Optimizer, variable: tf.Variable) -> dict[str, Any]:
    """The slots of a variable that have its shape, without its moving average.

    By the name of the optimizer's list, such as "_momentums"; none where the optimizer isn't built
    or doesn't train the variable.
    """
    return {
        name: slot
        for name, weight, slot in _entries(optimizer)
        if weight is variable and name != _AVERAGES and slot.shape == variable.shape
    }


def fresh_value(optimizer: keras.optimizers.Optimizer, name: str) -> float:
    """What a new optimizer has in a slot of a name as from `slots_of`."""
    # Of Adagrad and Ftrl, which divide by it.
    start = getattr(optimizer, "initial_accumulator_value", 0.0)
    return float(start) if name == "_accumulators" else 0.0


def averages_of(optimizer: keras.optimizers.Optimizer) -> dict[int, Any]:
    """The moving averages of weights by the id() of their tf.Variable, {} without `use_ema`."""
    return {id(weight): slot for name, weight, slot in _entries(optimizer) if name == _AVERAGES}


def _entries(optimizer: keras.optimizers.Optimizer) -> Iterator[tuple[str, Any, Any]]:
    # A MultiOptimizer leaves its variables to others.
    for member in (optimizer, *getattr(optimizer, "optimizers", ())):
        weights = [tf_variable(weight) for weight in getattr(member, _WEIGHTS, ())]
        for name, entries in vars(member).items():
            if name == _WEIGHTS or not isinstance(entries, list) or len(entries) != len(weights):
                continue
            for weight, entry in zip(weights, entries, strict=True):
                slot = tf_variable(entry)
                if slot is not None:
                    yield name, weight, slot
