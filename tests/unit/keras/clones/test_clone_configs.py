"""Layers whose configs don't make them again."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import clone_network
from tb_pastnet.errors import InvalidArgument

HINT = "clone a function: clone_network(tf.function(model), example=batch)."
CONFIG = f"Return everything that affects the layer's results from its get_config, or {HINT}"


def refused(text, *args, **settings):
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        clone_network(*args, **settings)


class Forgetful(layers.Layer):
    """Its config lacks the factor."""

    def __init__(self, factor=1.0, **settings):
        super().__init__(**settings)
        self.factor = factor

    def call(self, x):
        return x * self.factor

    def get_config(self):
        return super().get_config()


def test_a_config_that_lacks_something():
    x = keras.Input((2,))
    y = Forgetful(3.0, name="forgetful")(x)
    refused(
        "Could not clone the network: expected a copy that computes the same, got one that "
        "differs from 'network",
        x,
        y,
    )
    refused(f"/mul/y' on. {CONFIG}", x, y)
    assert clone_network(x, Forgetful(1.0)(x))(np.ones((1, 2))).numpy().tolist() == [[1.0, 1.0]]


def test_a_config_that_lacks_something_of_the_training_alone():
    class Dropping(Forgetful):
        def call(self, x, training=False):
            return x * self.factor if training else x

    x = keras.Input((2,))
    refused("expected a copy that computes the same, got one that differs", x, Dropping(3.0)(x))


def test_a_config_that_lacks_something_of_the_loss_alone():
    class Penalty(Forgetful):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x) * self.factor)
            return x

    x = keras.Input((2,))
    refused("expected a copy that computes the same, got one that differs", x, Penalty(3.0)(x))


def test_a_config_of_other_shapes():
    class Wide(Forgetful):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], int(self.factor)), name="kernel")

        def call(self, x):
            return tf.matmul(x, self.kernel)

    x = keras.Input((2,))
    y = Wide(3.0, name="wide")(x)
    refused(
        "Could not clone the network: expected for 'wide/kernel:0' float32 (2, 3), got float32 "
        f"(2, 1). {CONFIG}",
        x,
        y,
    )


def test_a_class_without_a_config():
    class Held(layers.Layer):
        def __init__(self, function):
            super().__init__(name="held")
            self.function = function

        def call(self, x):
            return self.function(x)

    x = keras.Input((2,))
    y = Held(tf.nn.relu)(x)
    refused(
        "Could not clone layer 'held': expected a Held that can be made again from its config, "
        "got: ",
        x,
        y,
    )
    refused(
        "Please implement `get_config()`. Give it a get_config with all arguments of its "
        f"constructor, or {HINT}",
        x,
        y,
    )


def test_a_config_that_makes_something_else():
    class Odd(layers.Dense):
        @classmethod
        def from_config(cls, config):
            return layers.Dense(**config)

    x = keras.Input((2,))
    refused(
        "Could not clone layer 'odd': expected a Odd from its config, got a Dense. Return "
        "cls(**config) from its from_config.",
        x,
        Odd(1, name="odd")(x),
    )


class Tied(layers.Layer):
    """Shares a layer through its config."""

    def __init__(self, to, **settings):
        super().__init__(**settings)
        self.to = to

    def call(self, x):
        return tf.matmul(x, tf.convert_to_tensor(self.to.embeddings), transpose_b=True)

    def get_config(self):
        return {**super().get_config(), "to": keras.saving.serialize_keras_object(self.to)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "to": keras.saving.deserialize_keras_object(config["to"])})


def test_a_layer_that_is_shared_through_a_config():
    embedding = layers.Embedding(5, 3, name="words")
    x = keras.Input((2,), dtype="int32")
    y = Tied(embedding)(embedding(x))
    told = f"Layers that share a layer through their configs each make a new one: {HINT}"
    refused("expected for 'words/embeddings", x, y)
    refused(f"one copy, as layers share it, got several. {told}", x, y)
    copy = clone_network(tf.function(keras.Model(x, y)), example=tf.TensorSpec((None, 2), tf.int32))
    assert len(copy.variables) == 1


def test_layers_that_are_made_later():
    class Late(layers.Layer):
        def call(self, x):
            return self.inner(x) if hasattr(self, "inner") else x

    x = keras.Input((2,))
    late = Late(name="late")
    y = late(x)
    late._lock = False
    late._tracker.unlock()
    late.inner = layers.Dense(2)
    refused(
        "Could not clone the network: expected 'late' to be made of Dense, got no layers. Make "
        "all its inner layers in its __init__ or build.",
        x,
        y,
    )


def test_variables_that_are_made_later():
    class Late(layers.Layer):
        def call(self, x):
            return x

    x = keras.Input((2,))
    late = Late(name="late")
    y = late(x)
    late._tracker.unlock()
    late.more = late.add_weight(shape=(2,), name="more")
    refused(
        "Could not clone the network: expected 'late' to have 1 variables, got 0 in its copy. "
        "Make all of them in its __init__ or build.",
        x,
        y,
    )
