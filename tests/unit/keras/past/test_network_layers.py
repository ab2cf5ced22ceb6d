"""past(x) is what a twin with the weights of that step returns, to the bit, whatever the layers."""

from __future__ import annotations

from itertools import product

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork
from tests.families import MODELS, images
from tests.sampled import sampled
from tests.twins import Twins, same, values

RNG = np.random.default_rng(0)
WAYS = {
    "eager": lambda function: function,
    "graph": tf.function,
    "XLA": tf.function(jit_compile=True),
}
APPLICATIONS = {
    "MobileNetV2": 32,
    "EfficientNetB0": 32,
    "DenseNet121": 32,
    "ResNet50": 32,
    "InceptionV3": 75,
}


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4, dropout=0.2)
        self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
        self.dense = keras.Sequential([layers.Dense(16, "gelu"), layers.Dense(8)])

    def call(self, x, training=False):
        x = x + self.attention(x, x, use_causal_mask=True, training=training)
        return x + self.dense(self.norms[0](x)) * self.norms[1](x)


class Transformer(keras.Model):
    def __init__(self):
        super().__init__()
        self.tokens = layers.Embedding(11, 8, mask_zero=True)
        self.places = self.add_weight(shape=(1, 5, 8), name="places", initializer="normal")
        self.blocks = [Block(), Block()]
        self.drop = layers.Dropout(0.3)
        self.out = layers.Dense(11)

    def call(self, x, training=False):
        x = self.drop(self.tokens(x) + self.places, training=training)
        for block in self.blocks:
            x = block(x, training=training)
        return self.out(x)


def nested():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4), layers.BatchNormalization()])
    x = keras.Input((4,))
    return keras.Model(x, layers.Add()([inner(x), inner(layers.Dense(4, "relu")(x))]))


def spectral():
    norm = layers.SpectralNormalization(layers.Dense(3))
    return keras.Sequential([keras.Input((4,)), norm, layers.GroupNormalization(3)])


MORE = {
    "transformer": (Transformer, RNG.integers(0, 11, (3, 5))),
    "nested": (nested, images(4)),
    "spectral": (spectral, images(4)),
    "bidirectional": (
        lambda: keras.Sequential([layers.Bidirectional(layers.GRU(3, return_sequences=True))]),
        images(5, 4),
    ),
    "ConvLSTM": (lambda: keras.Sequential([layers.ConvLSTM1D(2, 2)]), images(4, 5, 2)),
}


def check(make, batch, way):
    keras.utils.set_random_seed(1)
    twins = Twins(make, batch)
    past = PastNetwork(twins.current, example=batch)
    called = way(past)
    twins.train()
    past.sync()
    saved = values(twins.current)
    twins.train()
    current = way(twins.current)(batch)
    twin = twins.recall(saved)
    expected = way(twin)(batch)
    assert not same(current, expected)
    assert same(called(batch), expected)
    assert same(way(twins.current)(batch), current)


# Every second family in one of the compiled ways.
ALTERNATELY = [(name, ("graph", "XLA")[at % 2]) for at, name in enumerate([*MODELS][::2])]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        if way == "eager" or (name, way) in ALTERNATELY
        else pytest.param(name, way, marks=pytest.mark.prove)
        for name in MODELS
        for way in WAYS
    ],
)
def test_every_family_of_layers(name, way):
    check(*MODELS[name], WAYS[way])


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        if way == "eager" or (name, way) == ("nested", "graph")
        else pytest.param(name, way, marks=pytest.mark.prove)
        for name in MORE
        for way in WAYS
    ],
)
def test_networks_that_are_built_otherwise(name, way):
    check(*MORE[name], WAYS[way])


@pytest.mark.prove
@pytest.mark.parametrize("name", APPLICATIONS)
def test_networks_of_keras_applications(name):
    size = APPLICATIONS[name]
    make = getattr(keras.applications, name)
    batch = images(size, size, 3)
    # Logits: random networks are so sure of a class that all outputs may be 0 and 1.
    given = {"weights": None, "input_shape": (size, size, 3), "classes": 4}
    check(lambda: make(**given, classifier_activation=None), batch, WAYS["graph"])


@pytest.mark.parametrize(
    ("policy", "way"),
    sampled(product(["mixed_float16", "mixed_bfloat16", "float64"], ["eager", "graph"]), every=3),
)
def test_precisions(policy, way):
    def make():
        return keras.Sequential(
            [
                layers.Dense(4, dtype=policy),
                layers.BatchNormalization(dtype=policy),
                layers.Dense(3, dtype="float32"),
            ]
        )

    check(make, images(4), WAYS[way])


def test_a_stateful_rnn():
    def make():
        return keras.Sequential(
            [keras.Input(batch_shape=(4, 5, 2)), layers.LSTM(3, stateful=True), layers.Dense(2)]
        )

    def everything(model):  # Keras doesn't list the states
        return [*model.variables, *model.layers[0].states]

    twins = Twins(make, images(5, 2))
    past = PastNetwork(twins.current)
    twins.current(twins.batch)  # moves its state on
    past.sync()
    for one, saved in zip(everything(twins.twin), everything(twins.current), strict=True):
        one.assign(saved)
    twins.train()
    now = [np.array(one) for one in everything(twins.current)]
    # Calls go on from the past's own state, as the twin's do from its own.
    for _ in range(3):
        assert same(past(twins.batch), twins.twin(twins.batch))
    for one, value in zip(everything(twins.current), now, strict=True):
        np.testing.assert_array_equal(one, value)
    past.sync()
    assert same(past(twins.batch), twins.current(twins.batch))


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_training_behaviour(way):
    def make():
        parts = [layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5, seed=3)]
        return keras.Sequential([keras.Input((4,)), *parts, layers.GaussianNoise(0.1, seed=1)])

    twins = Twins(make, images(4))
    past = PastNetwork(twins.current)
    past_called = WAYS[way](lambda x: past(x, training=True))
    twins.train()
    past.sync()
    saved = values(twins.current)
    twins.train()
    twin, now = twins.recall(saved), values(twins.current)
    twin_called = WAYS[way](lambda x: twin(x, training=True))
    # Own seeds and own statistics: the second call draws anew and counts on.
    for _ in range(2):
        assert same(past_called(twins.batch), twin_called(twins.batch))
    assert same(past(twins.batch), twin(twins.batch))
    assert all(map(np.array_equal, values(twins.current), now))
