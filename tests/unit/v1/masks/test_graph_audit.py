"""Causes of violations in a graph, of updates that are planted."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tests.masked_graphs import KERNEL, begun, network

pytestmark = pytest.mark.usefixtures("graph")


def add(kernel):
    return tf.assign_add(kernel, tf.ones_like(kernel))


def scale(kernel):
    return tf.assign(kernel, 0.5 * tf.identity(kernel))


def scatter(kernel):
    return tf.scatter_sub(kernel, [1], tf.ones((1, 4)))


def descend(kernel):
    loss = tf.reduce_sum(tf.convert_to_tensor(kernel))
    return tf.train.GradientDescentOptimizer(0.5).minimize(loss, var_list=[kernel])


def fill(kernel):
    return tf.assign(kernel, tf.ones_like(kernel))


def copy(kernel):
    return tf.assign(kernel, tf.get_variable("other", kernel.shape, initializer=tf.ones))


def causes(planted):
    """What the audit says of the kernel after an operation has moved it."""
    loss = network()
    (kernel,) = (one for one in tf.trainable_variables() if one.op.name == KERNEL)
    masks = v1.Masks()
    train = masks.wrap(tf.train.AdamOptimizer()).minimize(loss)
    leak = planted(kernel)
    with tf.Session() as session, session.as_default():
        begun(session, masks)
        masks.freeze(KERNEL)
        session.run(train)
        assert masks.audit(1) == []
        session.run(leak)
        return {one.cause for one in masks.audit(2)}


@pytest.mark.parametrize("planted", [add, scale, scatter, descend])
def test_an_update_that_is_not_held_is_named(kind, planted):
    assert causes(planted) == {"unmasked_update"}


@pytest.mark.parametrize("planted", [fill, copy])
def test_where_all_updates_are_held_it_was_set(kind, planted):
    assert causes(planted) == {"loaded"}


def test_so_it_was_by_a_saver(kind, tmp_path):
    loss = network()
    masks = v1.Masks()
    train = masks.hold(lambda: tf.train.AdagradOptimizer(0.1).minimize(loss))
    saver = tf.train.Saver([one for one in tf.trainable_variables() if one.op.name == KERNEL])
    with tf.Session() as session, session.as_default():
        begun(session, masks)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(train)
        masks.freeze(KERNEL)
        saver.restore(session, path)
        assert {one.cause for one in masks.audit(1)} == {"loaded"}


def test_of_another_variable_nothing_is_said(kind):
    def elsewhere(kernel):
        (bias,) = (one for one in tf.trainable_variables() if one.op.name == "net/dense/b")
        with tf.control_dependencies([add(bias)]):
            return fill(kernel)

    assert causes(elsewhere) == {"loaded"}


@pytest.mark.usefixtures("kind")
def test_a_graph_that_cannot_be_read_has_no_known_cause(monkeypatch):
    def unreadable(*_):
        raise ValueError("unreadable")

    monkeypatch.setattr("tb_pastnet.v1.masks.graph_audit.called_functions", unreadable)
    assert causes(add) == {"unknown"}
