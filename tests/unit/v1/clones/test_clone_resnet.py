"""Clones of residual networks that train: weights, statistics, updates and weight decay."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from benchmarks._v1_resnet import by_hand, resnet
from benchmarks.v1_clone import SIZE, equal, timed
from tb_pastnet.v1 import clone_network


@pytest.mark.usefixtures("graph", "kind")
def test_a_small_one_is_equal():
    image = tf.placeholder(tf.float32, (None, SIZE, SIZE, 3), "image")
    logits = resnet(image, by_hand(), blocks=(1, 1), width=4, classes=5)
    layers = 1 + 2 * (3 + 1)  # each block has a shortcut of its own
    copy = clone_network(image, logits)
    assert len(copy.variables) == 5 * layers + 2
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2 * 2 * layers
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2 * layers
    assert len(tf.trainable_variables()) == 2 * (3 * layers + 2)
    assert equal(image, logits, copy)


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_resnet_50_is_equal(kind):
    _, same, _, variables = timed(by_hand(), kind, "copy")
    assert same
    assert variables == 5 * 53 + 2
