"""Networks to clone, and what is asked of a network and of its copy alike."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tb_pastnet import MaskedDense

RNG = np.random.default_rng(3)


def batch(*shape):
    return RNG.normal(size=(4, *shape)).astype("f")


class Scaled(layers.Layer):
    """With variables of Keras, of TensorFlow, and in a plain list; nowhere registered."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor
        self.raw = tf.Variable([1.0, 1.0, 1.0], name="raw")
        self.listed = [tf.Variable(0.0, name="listed")]

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), name="gain", initializer="normal")

    def call(self, x):
        raw, listed = (tf.cast(one, x.dtype) for one in (self.raw, self.listed[0]))
        return x * self.gain * raw * self.factor + listed


class Attending(keras.Model):
    """Subclassed. Of a model Keras doesn't note the arguments, as it does of a layer."""

    def __init__(self, units, dropout=0.2, **settings):
        super().__init__(**settings)
        self.arguments = (units, dropout)
        self.attention = layers.MultiHeadAttention(2, 3)
        self.norm = layers.LayerNormalization()
        self.dropout = layers.Dropout(dropout)
        self.out = layers.Dense(units)

    def call(self, x, training=False):
        y = self.norm(x + self.attention(x, x))
        return self.out(self.dropout(y, training=training))

    def get_config(self):
        units, dropout = self.arguments
        return {**super().get_config(), "units": units, "dropout": dropout}


def dense():
    x = keras.Input((5,))
    y = layers.BatchNormalization()(layers.Dense(4, "relu")(x))
    return x, layers.Dense(2)(layers.Dropout(0.5)(y)), batch(5)


def intermediate():
    x = keras.Input((5,))
    hidden = layers.Dense(3, "tanh")(x)
    return hidden, layers.Dense(2)(layers.Dense(3, "tanh")(hidden)), batch(3)


def shared():
    x, y = keras.Input((4,)), keras.Input((4,))
    one, two = layers.Dense(4, "tanh"), layers.Dense(4)
    return [x, y], layers.add([two(one(x)), one(two(one(y)))]), [batch(4), batch(4)]


def named():
    x, y = keras.Input((4,), name="x"), keras.Input((3,), name="y")
    both = layers.concatenate([x, layers.Dense(2)(y)])
    return (
        {"x": x, "y": y},
        {"a": layers.Dense(2)(both), "b": [both]},
        {"x": batch(4), "y": batch(3)},
    )


def nested():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4, "tanh")], name="inner")
    x = keras.Input((4,))
    block = keras.Model(x, layers.add([x, inner(x)]), name="block")
    z = keras.Input((4,))
    return z, block(inner(block(z))), batch(4)


def custom():
    x = keras.Input((3,))
    y = Scaled(2.0)
    out = layers.TimeDistributed(layers.Dense(2))(ops.reshape(y(x), (-1, 1, 3)))
    y.raw.assign([3.0, 4.0, 5.0])
    y.listed[0].assign(6.0)
    return x, out, batch(3)


def subclassed():
    x = keras.Input((4, 6))
    return x, layers.Flatten()(Attending(3)(x)), batch(4, 6)


def recurrent():
    x = keras.Input((5,), dtype="int32")
    y = layers.Embedding(7, 3, mask_zero=True)(x)
    y = layers.Bidirectional(layers.LSTM(2, return_sequences=True, dropout=0.2))(y)
    return x, layers.GRU(2)(y), RNG.integers(0, 7, (4, 5))


def stateful():
    x = keras.Input(batch_shape=(4, 3, 2))
    return x, layers.LSTM(2, stateful=True)(x), batch(3, 2)


def operations():
    x = keras.Input((5,), dtype="int32")
    embedding = layers.Embedding(7, 3)
    y = ops.mean(embedding(x), axis=1) * 2.0
    return (
        x,
        ops.matmul(y, ops.transpose(layers.Dense(3)(y)))[:, :2] + y[:, 1:],
        RNG.integers(0, 7, (4, 5)),
    )


def tied():
    x = keras.Input((5,), dtype="int32")
    embedding = layers.Embedding(3, 3)
    return (
        x,
        ops.matmul(layers.GRU(3)(embedding(x)), embedding.embeddings),
        RNG.integers(0, 3, (4, 5)),
    )


def lambdas():
    x = keras.Input((4,))
    y = layers.Lambda(lambda z: tf.square(z) + 1.0)(x)
    return x, layers.Dense(2, activation=lambda z: tf.nn.relu(z) * 3.0)(y), batch(4)


def masked():
    x = keras.Input((4,))
    one, two = MaskedDense(3, "tanh"), MaskedDense(2)
    y = two(one(x))
    one.prune_kernel(np.eye(4, 3))
    two.freeze_bias()
    two.masked_weight("bias").weight.assign([5.0, 6.0])
    return x, y, batch(4)


def mixed():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        x = keras.Input((4,))
        return x, layers.Dense(2, dtype="float32")(Scaled()(layers.Dense(3)(x))), batch(4)
    finally:
        keras.config.set_dtype_policy(before)


def text():
    vectorize = layers.TextVectorization(output_sequence_length=3)
    vectorize.adapt(["a b c", "b c d"])
    x = keras.Input((), dtype="string")
    return x, layers.Embedding(8, 2)(vectorize(x)), tf.constant(["a b", "c x y z"])


def images():
    x = keras.Input((6, 6, 2))
    y = layers.RandomFlip()(layers.GaussianNoise(0.1)(x))
    y = layers.SpectralNormalization(layers.Conv2D(3, 3))(y)
    return x, layers.Conv2DTranspose(2, 2)(layers.SeparableConv2D(4, 2)(y)), batch(6, 6, 2)


def numbers():
    normal = layers.Normalization()
    normal.adapt(batch(3) * 5 + 2)
    x = keras.Input((3,))
    return x, layers.Dense(2)(normal(x)), batch(3)


NETWORKS = {
    one.__name__: one
    for one in (
        dense,
        intermediate,
        shared,
        named,
        nested,
        custom,
        subclassed,
        recurrent,
        stateful,
        operations,
        tied,
        lambdas,
        masked,
        mixed,
        text,
        images,
        numbers,
    )
}


def arrays(results):
    return [np.array(tf.convert_to_tensor(one)) for one in tf.nest.flatten(results)]


def equal(first, second):
    first, second = arrays(first), arrays(second)
    return len(first) == len(second) and all(
        np.array_equal(a, b) for a, b in zip(first, second, strict=True)
    )


def values(network):
    return [variable.numpy() for variable in network.variables]


def gradients(network, x, **training):
    """Of a loss of all outputs, for all trainable variables."""
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(network(x, **training))
        loss = sum(tf.reduce_sum(tf.cast(one, "float32") ** 2) for one in outputs)
    found = tape.gradient(loss, [tensor(one) for one in network.trainable_variables])
    return [tf.convert_to_tensor(one) for one in found if one is not None]


def tensor(variable):
    return variable if isinstance(variable, tf.Variable) else variable.value


def move(network):
    """Changes each floating variable, but for those that `adapt` made constants of."""
    for variable in network.variables:
        adapted = variable.name in ("mean", "variance")
        if tf.as_dtype(variable.dtype).is_floating and not adapted:
            variable.assign(np.asarray(variable.numpy()) * 1.5 + 0.25)
