"""Single numbers that are read in the same call as the weights, where they cost nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf


class Beside:
    """Variables of one number, such as an optimizer's learning rate, and what was read of them.

    Args:
        variables: of TensorFlow or Keras.

    Example:
        >>> rate = tf.Variable(0.5)
        >>> beside = Beside([rate])
        >>> beside.hear(float(one) for one in beside.tensors())
        >>> beside.pop(rate), beside.pop(rate)  # the second time it may be another
        (0.5, None)
    """

    def __init__(self, variables: Sequence[Any] = ()) -> None:
        self._variables = tuple(variables)
        self._heard: dict[int, float] = {}

    def tensors(self) -> list[Any]:
        """Their values now: a float32 scalar each."""
        read = [tf.convert_to_tensor(one) for one in self._variables]
        return [tf.reshape(tf.cast(one, tf.float32), ()) for one in read]

    def hear(self, values: Iterable[Any]) -> None:
        """Takes note of what was read.

        Args:
            values: numbers, in the order of `tensors`.
        """
        self._heard = {
            id(one): float(value) for one, value in zip(self._variables, values, strict=True)
        }

    def pop(self, variable: Any) -> float | None:
        """What was read of a variable since it was asked for last; None where nothing was.

        Args:
            variable: anything.
        """
        return self._heard.pop(id(variable), None)
