"""Variables of our own in the place of a network's while its trace is called."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.keras.graphs.trace import Trace
from tb_pastnet.keras.strategies import outside_strategy


class TemporaryVariable:
    """Stands in for a variable, and has no memory between calls unless it is kept.

    XLA can't compile what fills an empty one: it can't change the shape of a variable.
    """

    def __init__(
        self, variable: tf.Variable, name: str = "pastnet_stand_in", *, kept: bool = False
    ) -> None:
        self._kept = kept
        with tf.init_scope():
            self._nothing = tf.zeros([0], variable.dtype)
            initial = variable.read_value() if kept else self._nothing
            # Only without a shape of its own can it be emptied.
            shape = variable.shape if kept else tf.TensorShape(None)

            def make() -> tf.Variable:
                with tf.device(variable.device):
                    return tf.Variable(initial, trainable=False, shape=shape, name=name)

            self.variable = outside_strategy(make)

    def fill(self, value: tf.Tensor) -> Any:
        """Takes a value; returns the operation that does, None eagerly."""
        return self.variable.assign(value, read_value=False)

    def empty(self) -> None:
        """Frees the memory that isn't kept."""
        if not self._kept:
            self.variable.assign(self._nothing, read_value=False)


class Scratch:
    """Takes what a network writes, so that the current values stay; TensorFlow doesn't save it."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._copies: dict[int, tuple[tf.Variable, TemporaryVariable]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes that the copies take."""
        copies = [copy.variable for _, copy in self._copies.values()]
        return sum(int(tf.size(copy)) * copy.dtype.size for copy in copies)

    def add(self, variable: tf.Variable) -> None:
        """Has a copy of a tf.Variable from now on."""
        copy = TemporaryVariable(variable, "scratch", kept=self._kept)
        self._copies[id(variable.handle)] = variable, copy

    def filled(self, trace: Trace) -> dict[int, Any]:
        """By `id` of each current handle that a trace writes to, that of its copy, just filled."""
        handles = {}
        for capture in trace.captures:
            if capture.written and id(capture.tensor) in self._copies:
                current, copy = self._copies[id(capture.tensor)]
                copy.fill(current.read_value())
                handles[id(capture.tensor)] = copy.variable.handle
        return handles

    def empty(self) -> None:
        """Frees the memory that isn't kept."""
        for _, copy in self._copies.values():
            copy.empty()
