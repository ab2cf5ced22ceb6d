"""Learning rates, from whatever a user has at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tb_pastnet.keras.types import Model, Optimizer, RateSource

UNKNOWN = float("nan")


class LearningRate:
    """Gives the learning rate of a step, NaN where none is known.

    Where one variable holds it, that is read in the same call as the weights, where it costs
    nothing more.

    Args:
        source: a number, a variable, an optimizer, a Keras schedule, a function without
            arguments; None takes the optimizer that the model was compiled with, if any.
        model: the recorded model.

    Example:
        >>> LearningRate(0.1)(7)
        0.1
        >>> import keras
        >>> rate = LearningRate(keras.optimizers.SGD(0.5))
        >>> rate.hear(rate.tensors())
        >>> rate(7)
        0.5
    """

    def __init__(self, source: RateSource = UNKNOWN, model: Model = None) -> None:
        import keras
        import tensorflow as tf

        self._value = _value_of(source, model)
        owner = getattr(model, "optimizer", None) if source is None else source
        holder = getattr(owner, "learning_rate", source)
        readable = isinstance(holder, keras.Variable | tf.Variable)
        self._variable = holder if readable else None
        self._heard: float | None = None

    def tensors(self) -> list[Any]:
        """What to read with the weights: one float32 scalar, or none."""
        import tensorflow as tf

        if self._variable is None:
            return []
        return [tf.reshape(tf.cast(tf.convert_to_tensor(self._variable), tf.float32), ())]

    def hear(self, values: Iterable[Any]) -> None:
        """Takes note of what was read; it is used once, as the next time it may be another."""
        for value in values:
            self._heard = float(value)

    def __call__(self, step: int) -> float:
        """The rate of a step."""
        value = self._value(step)
        if isinstance(value, int | float):
            return float(value)
        if value is self._variable and self._heard is not None:
            heard, self._heard = self._heard, None
            return heard
        import tensorflow as tf

        return float(tf.convert_to_tensor(value))


def optimizer_of(source: RateSource) -> Any:
    """The Keras optimizer among the sources of a learning rate, None of others."""
    import keras

    return source if isinstance(source, keras.optimizers.Optimizer) else None


def _value_of(source: RateSource, model: Model) -> Callable[[int], Any]:
    import keras

    if isinstance(source, keras.optimizers.schedules.LearningRateSchedule):
        return source  # type: ignore[no-any-return]
    if source is None:
        return lambda _: _of_optimizer(getattr(model, "optimizer", None))
    if hasattr(source, "learning_rate"):
        return lambda _: _of_optimizer(source)
    if callable(source) and not hasattr(source, "dtype"):
        return lambda _: source()
    return lambda _: source


def _of_optimizer(optimizer: Optimizer) -> Any:
    return getattr(optimizer, "learning_rate", UNKNOWN)
