"""The first of the questions, in the form in which it was asked: a TF1-style graph.

Two networks in two name scopes, one operation that copies the one into the other, no gradients
into the copy, which may be a part. Each published way that goes wrong is shown to go wrong.
"""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from benchmarks.v1_order import STEPS, Ordered
from tb_pastnet.v1 import sync_op

pytestmark = pytest.mark.usefixtures("graph")


def linear(scope, x):
    with tf.variable_scope(scope):
        return tf.matmul(x, tf.get_variable("w", initializer=tf.constant([[2.0]])))


def test_in_sync_out_of_sync_in_sync_again(kind):
    # Outputs are known: 3 w, and gradient descent on (3 w - 12)^2 that halves the error.
    x = tf.placeholder(tf.float32, (1, 1))
    current, past = linear("current", x), linear("past", x)
    sync = sync_op("current", "past")
    loss = tf.reduce_sum((current - 12.0) ** 2)
    train = tf.train.GradientDescentOptimizer(1 / 36).minimize(
        loss, var_list=tf.trainable_variables("current/")
    )
    feed = {x: [[3.0]]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def outputs():
            return [float(one[0, 0]) for one in session.run([current, past], feed)]

        session.run(sync)
        assert outputs() == [6.0, 6.0]
        found = []
        for _ in range(3):
            session.run(train, feed)
            found.append(outputs())
        assert found == [[9.0, 6.0], [10.5, 6.0], [11.25, 6.0]]
        session.run(sync)
        assert outputs() == [11.25, 11.25]


def test_the_backup_may_be_a_part(kind):
    x = tf.constant([[3.0]])
    body = linear("net/body", x)
    linear("net/head", body)
    backup = linear("backup/body", x)
    sync = sync_op("net", "backup")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([one.assign([[5.0]]) for one in tf.global_variables("net/")])
        session.run(sync)
        assert session.run(backup) == [[15.0]]


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
class TestOrder:
    def test_past_sync_and_train_in_one_run(self, resource):
        training = Ordered(resource=resource, dependencies=True)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert training.wrong(session) == 0

    def test_in_a_monitored_session(self, resource):
        tf.train.get_or_create_global_step()
        training = Ordered(resource=resource, dependencies=True)
        with tf.train.MonitoredTrainingSession() as session:
            assert training.wrong(session) == 0

    def test_without_dependencies_the_order_is_chance(self, resource):
        # Measured: 108 to 200 of 200 steps were wrong.
        training = Ordered(resource=resource, dependencies=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert 0 < training.wrong(session) <= STEPS


class TestPublishedWays:
    def test_a_collection_of_a_scope_has_its_neighbours_variables_too(self, kind):
        for scope, value in (("net_2", 2.0), ("net", 1.0), ("past", 0.0)):
            tf.get_variable(f"{scope}/w", initializer=value)
        key = tf.GraphKeys.GLOBAL_VARIABLES
        pairs = zip(tf.get_collection(key, "net"), tf.get_collection(key, "past"), strict=False)
        published = tf.group(*(past.assign(current) for current, past in pairs))
        assert copied(published) == 2.0
        assert copied(sync_op("net", "past")) == 1.0

    def test_a_replaced_scope_may_match_nothing(self, kind):
        for name, value in (("net/subnet/w", 1.0), ("past/subnet/w", 0.0)):
            tf.get_variable(name, initializer=value)
        everything = {one.op.name: one for one in tf.global_variables()}
        assert "net/subnet/w".replace("net", "past") == "past/subpast/w"
        assert not {name.replace("net", "past") for name in everything} <= everything.keys()
        assert copied(sync_op("net", "past"), "subnet/w") == 1.0

    def test_a_replaced_scope_may_match_twice(self, kind):
        for name, value in (("net/w", 1.0), ("net/net/w", 2.0), ("past/w", 0.0)):
            tf.get_variable(name, initializer=value)
        assert "net/w".replace("net/", "") == "net/net/w".replace("net/", "") == "w"
        assert copied(sync_op("net", "past")) == 1.0

    def test_a_custom_getter_stops_no_gradient_of_a_variable_made_by_its_class(self, kind):
        def stopping(getter, *args, **kwargs):
            return tf.stop_gradient(getter(*args, **kwargs))

        with tf.variable_scope("past", custom_getter=stopping):
            output = tf.get_variable("got", initializer=2.0) * tf.Variable(3.0, name="made")
        got, made = tf.global_variables("past/")
        assert tf.gradients(output, got) == [None]
        assert tf.gradients(output, made) != [None]


def copied(sync, rest="w"):
    """What a sync makes of the past's variable."""
    (past,) = (one for one in tf.global_variables() if one.op.name == f"past/{rest}")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        return session.run(past)
