"""Trainings with a planted leak, and an audit of their own in NumPy."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.keras.audit.model_audit import audit_of as audited
from tb_pastnet.keras.masks.carried import attached
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network

KERNEL, BIAS = "dense/kernel", "dense/bias"
HELD_FROM = 5
"""The update after which the tests begin to hold weights."""

_INTS = {2: np.int16, 4: np.int32, 8: np.int64}


class GradientMasks(keras.Model):
    """Freezes as many do: by a mask on the gradient alone."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.factors = [tf.Variable(tf.ones(v.shape), trainable=False) for v in self.weights]
        self.leak = tf.Variable(0.0, trainable=False)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        places = {id(v): n for n, v in enumerate(self.weights)}
        variables = self.trainable_variables
        gradients = [
            gradient * self.factors[places[id(v)]]
            for gradient, v in zip(tape.gradient(loss, variables), variables, strict=True)
        ]
        self.optimizer.apply(gradients, variables)
        kernel = self.weights[0].value
        kernel.assign_add(tf.one_hot(2, 8) * self.leak * tf.ones_like(kernel))
        return {"loss": loss}


def build(kind=GradientMasks, dtype=None):
    keras.utils.set_random_seed(3)
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(8, activation="tanh", name="dense", bias_initializer="normal")
    return kind(inputs, keras.layers.Dense(3, name="out")(hidden(inputs)))


def holes():
    """Masks for kernel and bias of "dense": channel 2 whole, channel 5 in part."""
    kernel, bias = np.ones((6, 8), bool), np.ones(8, bool)
    kernel[:, 2] = bias[2] = False
    kernel[1:3, 5] = False
    return kernel, bias


HELD = {(KERNEL, 2), (KERNEL, 5), (BIAS, 2)}


def declare(model):
    """Says what is frozen, to masks that only watch and to the gradient masks."""
    masks = Masks(model, enforce=False)
    for name, factor, hole in zip((KERNEL, BIAS), model.factors, holes(), strict=False):
        masks.freeze(name, hole)
        factor.assign(hole.astype("f"))


def fit(model, *callbacks, steps=20, epochs=1):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4 * steps, 6)), rng.normal(size=(4 * steps, 3))
    settings = {"batch_size": 4, "epochs": epochs, "shuffle": False, "verbose": 0}
    model.fit(x, y, callbacks=list(callbacks), **settings)


class At(keras.callbacks.Callback):
    """Does something before the batch that follows some update."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action, self.seen = step, action, 0

    def on_train_batch_begin(self, batch, logs=None):
        if self.seen == self.step:
            self.action()
        self.seen += 1


class Audited(keras.callbacks.Callback):
    """Audits, and keeps all weights to audit them once more in NumPy."""

    def __init__(self, every):
        super().__init__()
        self.every, self.step, self.audit = every, 0, None
        self.told, self.reference, self.truth = [], {}, {}

    def on_train_begin(self, logs=None):
        if self.audit is None:
            self.records = network(self.model).weights
            self.audit = audited(self.model, self.records)

    def on_train_batch_begin(self, batch, logs=None):
        self.audit.observe()
        self._refer()

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        self.audit.observe()
        self._refer()
        if self.step % self.every == 0:
            self.told += self.audit.check(self.step)
            self._compare()

    def _held(self, record):
        state = attached(self.model)
        kept, trainable = np.ones((2, *record.text.shape), bool)
        if state is not None:
            kept, trainable = state.read(record.text.id)
        found = record.found
        if not all(holder.trainable for holder in found.flags):
            trainable = np.zeros_like(kept)
        return ~(kept & trainable), ~kept

    def _refer(self):
        for record in self.records:
            name, value = record.text.id, record.found.variable.numpy()
            held, pruned = self._held(record)
            was_held, was = self.reference.get(name, (np.zeros_like(held), value))
            expected = np.where(pruned, np.zeros_like(value), np.where(was_held, was, value))
            self.reference[name] = held & ~pruned, expected

    def _compare(self):
        """Which channels differ from their reference, and since which record."""
        for record in self.records:
            name, value = record.text.id, record.found.variable.numpy()
            held, expected = self._held(record)[0], self.reference[name][1]
            bits = _INTS[value.itemsize]
            differ = held & (value.view(bits) != expected.view(bits))
            size = np.abs(value.astype("f8") - expected.astype("f8"))
            rows = [record.axis.split(each) for each in (differ, held, size)]
            for channel in np.flatnonzero(rows[0].any(1)).tolist():
                before = self.truth.get((name, channel))
                row = [each[channel] for each in rows]
                self.truth[name, channel] = (
                    self.step if before is None else before[0],
                    int(row[0].sum()),
                    int(row[1].sum()),
                    float(row[2][row[0]].max()),
                )

    def found(self):
        return {
            (one.variable, one.channel): (one.first_step, one.elements, one.held, one.largest)
            for one in self.audit.violations
        }
