"""Shadow variables: past values of chosen variables, synced by hand."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.past.shadows import Shadow, Shadows, Variables, followed


class PastVariables(Shadows):
    """Past copies of variables, as for a target network or to compare a step with the one before.

    The copies are variables of their own; they never share storage with the current ones. They are
    not trainable and belong to no model. All methods work eagerly and inside a tf.function. A
    `tf.train.Checkpoint(past=shadow)` saves and restores them, without the current ones.

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

    def __init__(self, variables: Variables) -> None:
        with tf.init_scope():
            parts = [Shadow(variable) for variable in followed(variables)]
        super().__init__(parts)
        self.past = [part.full for part in parts]

    def sync(self, tau: float | Any = 1.0) -> None:
        """Moves the past values towards the current ones: past = tau * current + (1 - tau) * past.

        Args:
            tau: 1 parts; smaller values follow softly (Keras's `ema_momentum` is 1 - tau).
                A tensor does as well. Variables that aren't trainable, such as a
                BatchNormalization's statistics, and those that aren't floating are always copied.

        Raises:
            InvalidArgument: a number outside of 0 to 1.
        """
        if isinstance(tau, int | float) and not 0 <= tau <= 1:
            raise InvalidArgument(
                f"Could not sync past variables: expected tau from 0 to 1, got {tau}. Use 1 for a "
                f"copy."
            )
        for part in self._parts:
            part.sync(tau)
