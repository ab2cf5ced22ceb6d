"""Layers of every family, trained a few steps, and what is right to record of them.

It shares nothing with the code under test: channels are taken by indexing each element, and the
norms by plain NumPy in float64.
"""

from __future__ import annotations

import itertools

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tb_pastnet import Recorder
from tb_pastnet.keras.model.tf_weights import network

RNG = np.random.default_rng(0)
STEPS = 3


def images(*shape):
    return RNG.normal(size=(4, *shape)).astype("f")


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.gain = self.add_weight(shape=(3,), name="gain", initializer="ones")
        self.inner = layers.Dense(3)

    def call(self, inputs):
        return self.inner(inputs) * self.gain


class SelfAttention(keras.Model):
    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 3)

    def call(self, inputs):
        return self.attention(inputs, inputs)


MODELS = {
    "Dense": (lambda: keras.Sequential([layers.Dense(5), layers.Dense(3)]), images(4)),
    "Conv1D": (lambda: keras.Sequential([layers.Conv1D(5, 3)]), images(6, 2)),
    "Conv2D": (lambda: keras.Sequential([layers.Conv2D(5, 3)]), images(6, 6, 2)),
    "Conv3D": (lambda: keras.Sequential([layers.Conv3D(5, 2)]), images(4, 4, 4, 2)),
    "grouped": (lambda: keras.Sequential([layers.Conv2D(6, 3, groups=2)]), images(6, 6, 4)),
    "Conv2DTranspose": (lambda: keras.Sequential([layers.Conv2DTranspose(5, 3)]), images(4, 4, 2)),
    "DepthwiseConv2D": (
        lambda: keras.Sequential([layers.DepthwiseConv2D(3, depth_multiplier=2)]),
        images(5, 5, 3),
    ),
    "SeparableConv2D": (
        lambda: keras.Sequential([layers.SeparableConv2D(5, 3, depth_multiplier=2)]),
        images(5, 5, 3),
    ),
    "Embedding": (lambda: keras.Sequential([layers.Embedding(9, 4)]), RNG.integers(0, 5, (4, 3))),
    "MultiHeadAttention": (SelfAttention, images(4, 6)),
    "LSTM": (lambda: keras.Sequential([layers.LSTM(3)]), images(4, 5)),
    "GRU": (lambda: keras.Sequential([layers.GRU(3)]), images(4, 5)),
    "BatchNormalization": (lambda: keras.Sequential([layers.BatchNormalization()]), images(5)),
    "LayerNormalization": (lambda: keras.Sequential([layers.LayerNormalization()]), images(5)),
    "subclassed": (Subclassed, images(4)),
}

LAST, FIRST, HEAD = (lambda i, n: i[-1]), (lambda i, n: i[0]), (lambda i, n: i[-2])


def unit(i, n):
    return i[-1] % 3


def depthwise(i, n):
    return i[-2] * n[-1] + i[-1]


# Of each variable the channel that an element belongs to, from its index i and the shape n.
CHANNELS = {
    "Conv2DTranspose": {"kernel": HEAD},
    "DepthwiseConv2D": {"kernel": depthwise},
    "SeparableConv2D": {"depthwise_kernel": depthwise},
    "Embedding": {"embeddings": FIRST},
    "MultiHeadAttention": {
        **{
            f"{part}/{name}": HEAD
            for part in ("query", "key", "value")
            for name in ("kernel", "bias")
        },
        "attention_output/kernel": FIRST,
    },
    "LSTM": dict.fromkeys(("kernel", "recurrent_kernel", "bias"), unit),
    "GRU": dict.fromkeys(("kernel", "recurrent_kernel", "bias"), unit),
}


def channel_of(case, variable):
    rules = CHANNELS.get(case, {})
    fits = [rule for name, rule in rules.items() if variable.endswith("/" + name)]
    return fits[0] if fits else LAST


def by_channel(values, rule):
    """A list of the elements of each channel."""
    groups: dict[int, list[float]] = {}
    for index in itertools.product(*map(range, values.shape)):
        channel = rule(index, values.shape)
        groups.setdefault(channel, []).append(float(values[index]))
    return [np.array(groups[channel]) for channel in sorted(groups)]


def expected(current, past, rule):
    rows = []
    for now, before in zip(by_channel(current, rule), by_channel(past, rule), strict=True):
        delta = now - before
        rows.append(
            [
                np.sqrt((now**2).sum()),
                np.sqrt((before**2).sum()),
                np.sqrt((delta**2).sum()),
                np.abs(delta).max(),
                (delta != 0).mean(),
                0,
                1,
                1,
            ]
        )
    return np.array(rows).T


def train(logdir, model, inputs, steps=STEPS):
    """Trains, and returns all weights after each step, step 0 first, by their id."""
    model(inputs)
    optimizer = keras.optimizers.Adam(0.01)
    variables = {r.text.id: r.found.variable for r in network(model).weights}
    saved = [{name: v.numpy().copy() for name, v in variables.items()}]
    with Recorder(logdir, model, every=1, initial_step=0) as recorder:
        for step in range(1, steps + 1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(inputs, training=True) - 0.5) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
            recorder.record(step)
            saved.append({name: v.numpy().copy() for name, v in variables.items()})
    return saved


def mobilenet():
    """A network of real size, and a batch for it."""
    make = keras.applications.MobileNetV2
    return make(weights=None, input_shape=(32, 32, 3), classes=4), images(32, 32, 3)


def expected_by_column(current, past, axis):
    """As `expected`, by reshaping, for variables with too many elements to take one by one."""
    columns = np.prod(current.shape[-2:] if axis == "(-2, -1)" else current.shape[-1:])
    now = current.astype(np.float64).reshape(-1, columns)
    before = past.astype(np.float64).reshape(-1, columns)
    delta = now - before
    norms = [np.sqrt((values**2).sum(0)) for values in (now, before, delta)]
    return np.stack([*norms, np.abs(delta).max(0), (delta != 0).mean(0)])
