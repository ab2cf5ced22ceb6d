"""Residual networks of TF1-style graphs (He et al., 1512.03385), training or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

RESNET_50 = (3, 4, 6, 3)
"""Blocks of three convolutions, by stage."""


class Layers(NamedTuple):
    """The three layers that have variables.

    Attributes:
        conv: of an input, filters, width of the kernel, strides.
        norm: of an input: a batch normalization with its updates in UPDATE_OPS.
        dense: of an input and units.
    """

    conv: Any
    norm: Any
    dense: Any


def by_hand() -> Layers:
    """Layers of get_variable and tf.nn, while they train."""
    return Layers(_conv, _norm, _dense)


def of_tensorflow() -> Layers:
    """tf.layers, which needs the package tf-keras, and TF_USE_LEGACY_KERAS=1."""
    return Layers(
        lambda x, filters, width, strides: tf.layers.conv2d(
            x, filters, width, strides, "same", use_bias=False, kernel_regularizer=_decay
        ),
        lambda x: tf.layers.batch_normalization(x, training=True),
        tf.layers.dense,
    )


def resnet(
    image: Any,
    layers: Layers,
    blocks: Sequence[int] = RESNET_50,
    width: int = 64,
    classes: int = 1000,
) -> Any:
    """The logits of a residual network with bottlenecks.

    Args:
        image: (batch, height, width, 3).
        layers: what it is built of.
        blocks: of each stage.
        width: filters of the first stage.
        classes: how many logits.
    """
    x = tf.nn.relu(layers.norm(layers.conv(image, width, 7, 2)))
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, count in enumerate(blocks):
        for block in range(count):
            with tf.variable_scope(f"stage{stage}/block{block}"):
                strides = 2 if stage and not block else 1
                x = _bottleneck(x, layers, width * 2**stage, strides)
    with tf.variable_scope("head"):
        return layers.dense(tf.reduce_mean(x, [1, 2]), classes)


def _bottleneck(x: Any, layers: Layers, filters: int, strides: int) -> Any:
    shortcut = x
    if strides > 1 or x.shape.as_list()[-1] != 4 * filters:
        with tf.variable_scope("shortcut"):
            shortcut = layers.norm(layers.conv(x, 4 * filters, 1, strides))
    for name, (count, width, step) in {
        "first": (filters, 1, 1),
        "second": (filters, 3, strides),
        "third": (4 * filters, 1, 1),
    }.items():
        with tf.variable_scope(name):
            x = layers.norm(layers.conv(x, count, width, step))
            x = x if name == "third" else tf.nn.relu(x)
    return tf.nn.relu(x + shortcut)


def _decay(kernel: Any) -> Any:
    return 1e-4 * tf.nn.l2_loss(kernel)


def _conv(x: Any, filters: int, width: int, strides: int) -> Any:
    shape = (width, width, x.shape.as_list()[-1], filters)
    kernel = tf.get_variable("conv/kernel", shape, regularizer=_decay)
    return tf.nn.conv2d(x, kernel, strides, "SAME")


def _norm(x: Any) -> Any:
    one, zero = tf.ones_initializer(), tf.zeros_initializer()
    shape = (x.shape.as_list()[-1],)
    gamma = tf.get_variable("norm/gamma", shape, initializer=one)
    beta = tf.get_variable("norm/beta", shape, initializer=zero)
    x, *found = tf.nn.fused_batch_norm(x, gamma, beta, is_training=True)
    for name, value, start in zip(("mean", "variance"), found, (zero, one), strict=True):
        moving = tf.get_variable(f"norm/moving_{name}", shape, initializer=start, trainable=False)
        update = tf.assign_sub(moving, 0.01 * (moving - value))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return x


def _dense(x: Any, units: int) -> Any:
    kernel = tf.get_variable("kernel", (x.shape.as_list()[-1], units))
    return x @ kernel + tf.get_variable("bias", (units,), initializer=tf.zeros_initializer())
