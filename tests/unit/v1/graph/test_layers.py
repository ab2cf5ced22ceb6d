"""Which variables of a graph are recorded or masked."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.v1.graph.graph_variables import graph_variables
from tb_pastnet.v1.graph.layers import network_in
from tb_pastnet.v1.graph.session import GraphSession

NETWORK = ["net/conv/kernel", "net/conv/bias", "net/norm/moving_mean"]


@pytest.fixture(autouse=True)
def trained(graph):
    """A network with the slots of Adam and an average, all in its scope."""
    with tf.variable_scope("net"):
        kernel = tf.get_variable("conv/kernel", (3, 3, 1, 2))
        bias = tf.get_variable("conv/bias", (2,))
        statistic = tf.get_variable("norm/moving_mean", (2,), trainable=False)
    tf.get_variable("other/kernel", (1, 2))
    output = tf.nn.bias_add(tf.nn.conv2d(tf.ones((1, 8, 8, 1)), kernel, 1, "SAME"), bias)
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(output - statistic))
    tf.train.ExponentialMovingAverage(0.9).apply([bias])


def ids(variables):
    return [one.text.id for one in network_in(GraphSession(), variables).weights]


def test_a_scope_is_its_network_without_slots_and_averages():
    every = {one.op.name for one in tf.global_variables()}
    assert {"net/conv/kernel/Adam", "net/conv/bias/ExponentialMovingAverage"} <= every
    assert ids("net") == NETWORK


def test_so_is_a_pattern():
    assert ids(["net/*"]) == NETWORK


def test_all_is_what_is_trained_and_its_statistics():
    assert ids(None) == [*NETWORK, "other/kernel"]


def test_a_slot_that_is_named_is_taken():
    slot = "net/conv/kernel/Adam"
    given = next(one for one in tf.global_variables() if one.op.name == slot)
    assert ids([slot]) == ids([given]) == [slot]
    assert ids([slot, "conv/kernel"]) == ["net/conv/kernel", slot]


def test_slots_leave_the_channels_of_their_variable_alone():
    kernel, bias, _ = network_in(GraphSession(), "net").weights
    assert (kernel.text.verified, bias.text.verified) == (True, True)


def test_masks_are_none_of_it():
    v1.Masks("net")
    assert "pastnet/net/conv/kernel/reference" in {one.name for one in graph_variables()}
    assert ids(["*conv*"]) == NETWORK[:2]


def test_statistics_of_the_past_are_none_of_it(graph):
    locals_only = [tf.GraphKeys.LOCAL_VARIABLES]
    tf.Variable(tf.ones(2), name="past/norm/moving_mean", trainable=False, collections=locals_only)
    assert ids(None) == [*NETWORK, "other/kernel"]
