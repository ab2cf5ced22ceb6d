"""Copies of current variables, for calls that write to what has no past."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.keras.graphs.trace import Trace
from tb_pastnet.keras.outside_strategy import outside_strategy


class Scratch:
    """Takes what a network writes, so that the current values stay as they are.

    A copy is filled before each call that writes to it. TensorFlow doesn't save it.

    Example:
        >>> from tb_pastnet.keras.graphs.trace import Tracer
        >>> total = tf.Variable(1.0)
        >>> trace, inputs = Tracer(lambda x: total.assign_add(x), "sums").trace([tf.ones(())], {})
        >>> scratch = Scratch()
        >>> scratch.add(total)
        >>> called = trace.call(inputs, scratch.standing_in(trace))
        >>> called.numpy().item(), total.numpy().item()
        (2.0, 1.0)
    """

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Any, Any]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes that the copies take."""
        return sum(int(tf.size(copy)) * copy.dtype.size for _, copy in self._copies.values())

    def add(self, variable: Any) -> None:
        """Keeps a copy of a tf.Variable from now on."""
        with tf.init_scope():
            value, shape = variable.read_value(), variable.shape
            copy = outside_strategy(
                lambda: tf.Variable(value, trainable=False, name="scratch", shape=shape)
            )
        self._copies[id(variable.handle)] = variable, copy

    def standing_in(self, trace: Trace) -> dict[int, Any]:
        """By `id` of each current handle that a trace writes to, that of its copy, just filled."""
        handles = {}
        for capture in trace.captures:
            if capture.written and id(capture.tensor) in self._copies:
                current, copy = self._copies[id(capture.tensor)]
                copy.assign(current.read_value())
                handles[id(capture.tensor)] = copy.handle
        return handles
