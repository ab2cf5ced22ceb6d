"""Shadow variables: past values of chosen variables, synced by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.train.model.walk import tf_variable


class PastVariables:
    """Past copies of variables, as for a target network or to compare a step with the one before.

    The copies are variables of their own; they never share storage with the current ones. They are
    not trainable and belong to no model. All methods work eagerly and inside a tf.function.

    Args:
        variables: keras.Variables or tf.Variables, in an order that `past` and `delta` keep; or a
            mapping of names to them.

    Attributes:
        past: the shadow variables, tf.Variables of the same shapes and dtypes, named
            `past/<name>`.

    Raises:
        InvalidArgument: there are none, or one is something else.

    Example:
        >>> weight = tf.Variable([1.0, 2.0], name="weight")
        >>> shadow = PastVariables([weight])
        >>> _ = weight.assign_add([0.5, 0.0])
        >>> [delta.numpy().tolist() for delta in shadow.delta()]
        [[0.5, 0.0]]
        >>> shadow.sync()
        >>> shadow.past[0].numpy().tolist()
        [1.5, 2.0]
    """

    def __init__(self, variables: Sequence[Any] | dict[str, Any]) -> None:
        named = variables if isinstance(variables, dict) else dict(enumerate(variables))
        self._current = [_checked(name, variable) for name, variable in named.items()]
        if not self._current:
            raise InvalidArgument(
                "Could not make past variables: expected at least one variable, got none. Build "
                "the model before you pass its variables."
            )
        names = [
            name if isinstance(name, str) else _own_name(variable)
            for name, variable in named.items()
        ]
        # Values of Keras's statistics move by averages of their own, which a soft sync would slow.
        self._hard = [not getattr(variable, "trainable", True) for variable in named.values()]
        with tf.init_scope():
            self.past = [
                tf.Variable(current.read_value(), trainable=False, name=f"past/{name}")
                for current, name in zip(self._current, names, strict=True)
            ]

    def delta(self) -> list[Any]:
        """Current minus past, one tensor a variable, in the variable's own dtype and shape."""
        return [
            tf.convert_to_tensor(current) - past.read_value()
            for current, past in zip(self._current, self.past, strict=True)
        ]

    def sync(self, tau: float | Any = 1.0) -> None:
        """Moves the past values towards the current ones: past = tau * current + (1 - tau) * past.

        Args:
            tau: 1 copies; smaller values follow softly (Keras's `ema_momentum` is 1 - tau).
                A tensor does as well. Variables that aren't trainable, such as a
                BatchNormalization's statistics, and those that aren't floating are always copied.

        Raises:
            InvalidArgument: a number outside of 0 to 1.
        """
        hard = isinstance(tau, int | float) and tau == 1
        if isinstance(tau, int | float) and not 0 <= tau <= 1:
            raise InvalidArgument(
                f"Could not sync past variables: expected tau from 0 to 1, got {tau}. Use 1 for a "
                f"copy."
            )
        for current, past, copied in zip(self._current, self.past, self._hard, strict=True):
            value = tf.convert_to_tensor(current)
            if not (hard or copied) and value.dtype.is_floating:
                share = tf.cast(tau, value.dtype)
                value = share * value + (1 - share) * past.read_value()
            past.assign(value)


def _checked(name: Any, variable: Any) -> Any:
    current = tf_variable(variable)
    if current is None:
        raise InvalidArgument(
            f"Could not make a past variable of {name!r}: expected a keras.Variable or a "
            f"tf.Variable, got {type(variable).__name__}. Pass variables, not values."
        )
    return current


def _own_name(variable: Any) -> str:
    path = getattr(variable, "path", None) or variable.name
    return str(path).partition(":")[0]
