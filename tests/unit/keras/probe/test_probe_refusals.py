"""What a probe refuses, by its text."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.probe.probe import Probe

X = np.random.default_rng(0).normal(size=(5, 6)).astype("f")


def test_an_iterator_is_refused():
    class Draws(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(3.0)
            self.batches = iter(tf.data.Dataset.range(9).repeat())

        def __call__(self, x):
            return self.weight * x + tf.cast(next(self.batches), tf.float32)

    model = Draws()
    text = "Could not probe module 'Draws': expected variables as its state, got "
    with pytest.raises(InvalidArgument, match=text):
        Probe(model, network(model), X)
    assert int(next(model.batches)) == 0


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ({"w": tf.Variable([1.0])}, "Could not probe a dict: expected a model that can be called"),
        (tf.Module(), "Could not probe a Module: expected a model that can be called, got one"),
    ],
)
def test_what_can_not_be_called_is_refused(model, text):
    recorded = network({"w": tf.Variable([1.0])})
    with pytest.raises(InvalidArgument, match=text):
        Probe(model, recorded, X)


def dense():
    return keras.Sequential([keras.Input((6,)), layers.Dense(2)], name="dense")


def two():
    inputs = [keras.Input((6,)), keras.Input((6,))]
    return keras.Model(inputs, layers.Dense(2)(layers.Add()(inputs)))


def words():
    return keras.Sequential([keras.Input((2,), dtype="int32"), layers.Embedding(4, 3)], name="w")


@pytest.mark.parametrize(
    ("build", "batch", "text"),
    [
        (dense, X[:, :5], "float32 (5, 5)"),
        (two, X, "float32 (5, 6)"),
        (dense, np.array([["a"] * 6]), "string (1, 6)"),
        (words, np.array([[0, 4]], np.int32), "int32 (1, 2)"),
    ],
    ids=["width", "inputs", "dtype", "index"],
)
def test_a_probe_that_the_network_does_not_take_is_refused(build, batch, text):
    model = build()
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        Probe(model, network(model), batch)


def test_outputs_without_numbers_are_refused():
    class Says(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(1.0)

        def __call__(self, x):
            return tf.as_string(self.weight * x)

    model = Says()
    text = "Could not probe module 'Says': expected outputs of numbers, got none"
    with pytest.raises(InvalidArgument, match=text):
        Probe(model, network(model), X)
