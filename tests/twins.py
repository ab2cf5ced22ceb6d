"""A network built a second time, to compare the past of the first with."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf


class Twins:
    """A model that is trained, and one of its own variables that takes the weights of a step.

    Args:
        make: builds the model, the same each time.
        batch: a batch of inputs.
    """

    def __init__(self, make, batch, **called):
        self.current, self.twin = make(), make()
        self.batch = batch
        for model in (self.current, self.twin):
            if not model.built:
                model(batch, **called)
        copy(values(self.current), self.twin)

    def train(self, steps=2):
        """Trains the current one."""
        train(self.current, self.batch, steps)

    def recall(self, saved):
        """The twin, as it was when these values were saved."""
        copy(saved, self.twin)
        return self.twin


def train(model, batch, steps=2):
    """Moves all weights as a training does, and the statistics."""
    optimizer = keras.optimizers.Adam(0.01)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            outputs = tf.nest.flatten(model(batch, training=True))
            loss = tf.add_n([tf.reduce_mean((tf.cast(o, "float32") - 0.5) ** 2) for o in outputs])
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = [
            (g, v)
            for g, v in zip(gradients, model.trainable_variables, strict=True)
            if g is not None
        ]
        optimizer.apply_gradients(pairs)


def values(model):
    """Copies of all variables, also of states and seeds."""
    return [np.array(variable) for variable in model.variables]


def copy(saved, model):
    for value, variable in zip(saved, model.variables, strict=True):
        variable.assign(value)


def same(found, expected):
    """Whether two nests of outputs are bit-equal."""
    pairs = zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)
