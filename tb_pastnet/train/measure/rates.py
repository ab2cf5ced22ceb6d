"""Learning rates, from whatever a user has at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rate = Callable[[int], float]


def rate_of(source: Any, model: Any) -> Rate:
    """Makes a function of the step that gives the learning rate.

    Args:
        source: a number, a variable, an optimizer, a Keras schedule, a function without
            arguments; None takes the optimizer that the model was compiled with, if any.
        model: the recorded model.

    Returns:
        A function that gives NaN where no rate is known.

    Example:
        >>> rate_of(0.1, None)(7)
        0.1
    """
    import keras

    if isinstance(source, keras.optimizers.schedules.LearningRateSchedule):
        return lambda step: _number(source(step))
    if source is None:
        return lambda _: _of_optimizer(getattr(model, "optimizer", None))
    if hasattr(source, "learning_rate"):
        return lambda _: _of_optimizer(source)
    if callable(source) and not hasattr(source, "dtype"):
        return lambda _: _number(source())
    return lambda _: _number(source)


def optimizer_of(source: Any) -> Any:
    """The Keras optimizer among the sources of a learning rate, None of others."""
    import keras

    return source if isinstance(source, keras.optimizers.Optimizer) else None


def _of_optimizer(optimizer: Any) -> float:
    return _number(getattr(optimizer, "learning_rate", float("nan")))


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    import tensorflow as tf

    return float(tf.convert_to_tensor(value))
