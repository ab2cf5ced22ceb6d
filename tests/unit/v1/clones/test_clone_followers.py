"""What goes along with a clone: statistics and their updates, losses, collections."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1 import clone_network

pytestmark = pytest.mark.usefixtures("graph", "kind", "control_flow")

RNG = np.random.default_rng(0)
UPDATES, LOSSES = tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES


def placeholder(name="x"):
    return tf.placeholder(tf.float32, (None, 3), name)


def normalized(x, scope, decay=0.9):
    """A batch normalization while it trains: the outputs don't use its moving statistics."""
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        mean = tf.get_variable("mean", initializer=tf.zeros(3), trainable=False)
    found, variance = tf.nn.moments(x, [0])
    tf.add_to_collection(UPDATES, tf.assign(mean, mean * decay + found * (1 - decay)))
    return tf.nn.batch_normalization(x, found, variance, None, None, 1e-3)


def layer(x, scope):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", (3, 3), regularizer=lambda w: 0.1 * tf.reduce_sum(w**2))
    return x @ w


def fresh(session):
    session.run(tf.global_variables_initializer())


def test_updates_of_statistics_go_to_those_of_the_clone():
    x = placeholder()
    y = normalized(x, "net/norm")
    (update,) = tf.get_collection(UPDATES)
    copy = clone_network(x, y)
    assert copy.mapping == {"net/norm/mean": "clone/net/norm/mean"}
    (own,) = set(tf.get_collection(UPDATES)) - {update}
    values = RNG.normal(size=(8, 3)).astype("f")
    with tf.Session() as session:
        fresh(session)
        session.run(own, {x: values})
        session.run(own, {x: values})
        expected = values.mean(0) * 0.1 * 1.9  # 0.1 m, then 0.9 * 0.1 m + 0.1 m
        np.testing.assert_allclose(session.run(copy.variables[0]), expected, rtol=1e-5)
        session.run(update, {x: values})
        np.testing.assert_allclose(
            session.run(tf.global_variables()[0]), values.mean(0) * 0.1, rtol=1e-5
        )


def test_an_update_of_the_same_statistics_from_another_input_is_left_out():
    x, other = placeholder(), placeholder("other")
    y = normalized(x, "net")
    normalized(other, "net")
    clone_network(x, y)
    assert len(tf.get_collection(UPDATES)) == 3


def test_updates_of_a_network_behind_it_are_left_out():
    x = placeholder()
    y = layer(x, "generator")
    normalized(layer(y, "judge"), "judge")
    copy = clone_network(x, y)
    assert list(copy.mapping) == ["generator/w"]
    assert len(tf.get_collection(UPDATES)) == 1


def test_an_update_of_statistics_that_only_share_a_constant_is_left_out():
    x = placeholder()
    decay = tf.constant(0.9)
    y = layer(x, "net") * decay
    count = tf.get_variable("count", initializer=0.0, trainable=False)
    tf.add_to_collection(UPDATES, count.assign(count * decay))
    copy = clone_network(x, y)
    assert list(copy.mapping) == ["net/w"]


def test_losses_of_its_weights_are_computed_of_its_own():
    x = placeholder()
    layer(x, "other")
    y = layer(x, "net")
    copy = clone_network(x, y)
    *_, own = tf.get_collection(LOSSES)
    assert len(tf.get_collection(LOSSES)) == 3
    weight = RNG.normal(size=(3, 3)).astype("f")
    with tf.Session() as session:
        fresh(session)
        session.run(copy.variables[0].assign(weight))
        np.testing.assert_allclose(session.run(own), 0.1 * (weight**2).sum(), rtol=1e-5)
    (gradient,) = tf.gradients(own, copy.variables[0])
    assert gradient is not None


def test_a_loss_of_a_shared_weight_counts_once():
    x = placeholder()
    y = layer(layer(x, "shared"), "own")
    shared, _ = tf.trainable_variables()
    copy = clone_network(x, y, share=shared)
    assert list(copy.mapping) == ["own/w"]
    assert len(tf.get_collection(LOSSES)) == 3


def test_a_loss_of_a_label_is_left_out():
    x, label = placeholder(), placeholder("label")
    y = layer(x, "net")
    tf.add_to_collection(LOSSES, tf.reduce_sum(y - label))
    clone_network(x, y)
    assert len(tf.get_collection(LOSSES)) == 3  # that of the weight twice


def test_its_variables_are_in_the_collections_of_their_originals():
    x = placeholder()
    w = tf.get_variable("w", (3, 3), collections=["mine", tf.GraphKeys.GLOBAL_VARIABLES])
    still = tf.get_variable("still", (3,), trainable=False)
    local = tf.get_variable(
        "local", (3,), collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False
    )
    tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, still)
    copy = clone_network(x, x @ w + still + local)
    own_w, own_still, own_local = copy.variables
    assert tf.get_collection("mine") == [w, own_w]
    assert tf.global_variables() == [w, still, own_w, own_still]
    assert tf.trainable_variables() == [w, own_w]
    assert tf.local_variables() == [local, own_local]
    assert tf.model_variables() == [still, own_still]


def test_averages_of_its_weights_are_those_of_its_own():
    x = placeholder()
    w = tf.get_variable("w", initializer=tf.ones((3, 3)), use_resource=True)
    average = tf.train.ExponentialMovingAverage(0.5)
    tf.add_to_collection(UPDATES, average.apply([w]))
    outputs = {"train": x @ w, "test": x @ average.average(w)}
    copy = clone_network(x, outputs)
    own, averaged = copy.variables
    update = tf.get_collection(UPDATES)[-1]
    with tf.Session() as session:
        fresh(session)
        session.run(own.assign(tf.fill((3, 3), 3.0)))
        session.run(update)
        found = session.run(copy.outputs, {x: np.ones((1, 3))})
        np.testing.assert_allclose(found["train"], [[9.0] * 3])
        np.testing.assert_allclose(found["test"], [[6.0] * 3])  # 3 * (1 + 3) / 2
        np.testing.assert_allclose(session.run(average.average(w)), np.ones((3, 3)))
    assert averaged.op.name == "clone/w/ExponentialMovingAverage"
    assert averaged not in tf.trainable_variables()


def test_an_average_alone_is_a_network_without_the_weights():
    x = placeholder()
    w = tf.get_variable("w", initializer=tf.ones((3, 3)))
    average = tf.train.ExponentialMovingAverage(0.5)
    tf.add_to_collection(UPDATES, average.apply([w]))
    copy = clone_network(x, x @ average.average(w))
    assert list(copy.mapping) == ["w/ExponentialMovingAverage"]
    assert len(tf.get_collection(UPDATES)) == 1
