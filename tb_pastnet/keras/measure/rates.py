"""Learning rates, from whatever a user has at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_pastnet.keras.measure.beside import Beside

Rate = Callable[[int], float]


def rate_of(source: Any, model: Any, beside: Beside | None = None) -> Rate:
    """Makes a function of the step that gives the learning rate.

    Args:
        source: a number, a variable, an optimizer, a Keras schedule, a function without
            arguments; None takes the optimizer that the model was compiled with, if any.
        model: the recorded model.
        beside: what was read of variables with the weights isn't read again.

    Returns:
        A function that gives NaN where no rate is known.

    Example:
        >>> rate_of(0.1, None)(7)
        0.1
    """
    import keras

    beside = beside or Beside()
    if isinstance(source, keras.optimizers.schedules.LearningRateSchedule):
        return lambda step: _number(source(step), beside)
    if source is None:
        return lambda _: _number(_of_optimizer(getattr(model, "optimizer", None)), beside)
    if hasattr(source, "learning_rate"):
        return lambda _: _number(_of_optimizer(source), beside)
    if callable(source) and not hasattr(source, "dtype"):
        return lambda _: _number(source(), beside)
    return lambda _: _number(source, beside)


def variables_of(source: Any, model: Any) -> list[Any]:
    """The variables that hold the learning rate: one, or none.

    Args:
        source: as of `rate_of`.
        model: the recorded model.

    Example:
        >>> import keras
        >>> optimizer = keras.optimizers.SGD(0.1)
        >>> variables_of(optimizer, None) == [optimizer.learning_rate]
        True
        >>> variables_of(0.1, None)
        []
    """
    import keras
    import tensorflow as tf

    owner = getattr(model, "optimizer", None) if source is None else source
    held = getattr(owner, "learning_rate", source)
    return [held] if isinstance(held, keras.Variable | tf.Variable) else []


def optimizer_of(source: Any) -> Any:
    """The Keras optimizer among the sources of a learning rate, None of others."""
    import keras

    return source if isinstance(source, keras.optimizers.Optimizer) else None


def _of_optimizer(optimizer: Any) -> Any:
    return getattr(optimizer, "learning_rate", float("nan"))


def _number(value: Any, beside: Beside) -> float:
    if isinstance(value, int | float):
        return float(value)
    known = beside.pop(value)
    if known is not None:
        return known
    import tensorflow as tf

    return float(tf.convert_to_tensor(value))
