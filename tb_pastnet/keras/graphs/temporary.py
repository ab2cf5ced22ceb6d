"""Variables that hold values only while a network is evaluated with them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.keras.unscoped import unscoped


class StandIn:
    """Stands in for a variable; in between it is empty.

    XLA can't compile what fills it: it can't change the shape of a variable.

    Args:
        variable: the tf.Variable.
        name: of its own.

    Example:
        >>> stand_in = StandIn(tf.Variable([1.0, 2.0]))
        >>> stand_in.fill(tf.constant([3.0, 4.0]))
        >>> stand_in.variable.numpy().tolist()
        [3.0, 4.0]
        >>> stand_in.empty()
        >>> stand_in.variable.numpy().tolist()
        []
    """

    def __init__(self, variable: Any, name: str = "pastnet_stand_in") -> None:
        self._nothing = tf.zeros([0], variable.dtype)
        with tf.init_scope():
            self.variable = unscoped(lambda: self._made(variable.device, name))

    def _made(self, device: str, name: str) -> Any:
        with tf.device(device):
            # Only without a shape of its own can it be emptied.
            shape = tf.TensorShape(None)
            return tf.Variable(self._nothing, trainable=False, shape=shape, name=name)

    @property
    def handle(self) -> Any:
        """What a trace takes in the place of the variable's."""
        return self.variable.handle

    def fill(self, value: Any) -> Any:
        """Takes a value; returns the operation that does, None eagerly."""
        return self.variable.assign(value, read_value=False)

    def empty(self) -> None:
        """Frees the memory."""
        self.variable.assign(self._nothing, read_value=False)
