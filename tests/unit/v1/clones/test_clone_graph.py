"""Clones of networks of which only tensors are left, in TF1-style graphs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1 import clone_network
from tests.sampled import sampled
from tests.v1_networks import NETWORKS, WORLDS

RNG = np.random.default_rng(0)


def batch(rows=4):
    return RNG.normal(size=(rows, 3)).astype("f")


@pytest.mark.usefixtures("graph", "world")
@pytest.mark.parametrize(
    ("network", "world"), sampled(product(NETWORKS, WORLDS), every=2), indirect=["world"]
)
def test_a_clone_is_equal_independent_saved_restored_and_minimized(network, tmp_path):
    x = tf.placeholder(tf.float32, (None, 3), "x")
    y = network(x)
    originals = tf.global_variables()
    copy = clone_network(x, y)
    assert [one.op.name for one in copy.variables] == [f"clone/{one.op.name}" for one in originals]
    assert tf.global_variables() == [*originals, *copy.variables]
    trained = [one for one in copy.variables if one in tf.trainable_variables()]
    train = tf.train.AdamOptimizer(0.1).minimize(
        tf.reduce_mean((copy.outputs - 1.0) ** 2), var_list=trained
    )
    saver = tf.train.Saver(copy.variables)
    feed = {x: batch()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(originals)
        for one, two in zip(before, session.run(copy.variables), strict=True):
            np.testing.assert_array_equal(one, two)
        first, second = (session.run(one, feed) for one in (y, copy.outputs))
        np.testing.assert_array_equal(first, second)
        before = session.run(originals)
        path = saver.save(session, str(tmp_path / "clone"))
        for _ in range(3):
            session.run(train, feed)
        assert abs(session.run(copy.outputs, feed) - second).max() > 1e-3
        for one, two in zip(before, session.run(originals), strict=True):
            np.testing.assert_array_equal(one, two)
        session.run([one.assign(one * 0.0) for one in originals])
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(copy.outputs, feed), second)
        session.run(copy.sync_op)
        for one, two in zip(session.run(originals), session.run(copy.variables), strict=True):
            np.testing.assert_array_equal(one, two)
