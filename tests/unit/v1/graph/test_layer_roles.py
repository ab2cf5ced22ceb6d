"""Which layer a variable belongs to, and so which elements are a channel."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1.graph.graph_variables import graph_variables
from tb_pastnet.v1.graph.layers import UNKNOWN, Role, network_in, roles
from tb_pastnet.v1.graph.session import GraphSession

TWO = tf.fixed_size_partitioner(2)


def weight(*shape, name="net/layer/w", **settings):
    return tf.get_variable(name, shape, **settings)


def a_matmul(**settings):
    return tf.matmul(tf.ones((5, 4)), weight(4, 6, **settings)), 1


def a_convolution(**settings):
    return tf.nn.conv2d(tf.ones((2, 5, 5, 4)), weight(3, 3, 4, 6, **settings), 1, "SAME"), 3


def a_convolution_of_sequences(**settings):
    return tf.nn.conv1d(tf.ones((2, 5, 4)), weight(3, 4, 6, **settings), 1, "SAME"), 2


def a_transposed_convolution(**settings):
    shape = (2, 5, 5, 6)
    kernel = weight(3, 3, 6, 4, **settings)
    return tf.nn.conv2d_transpose(tf.ones((2, 5, 5, 4)), kernel, shape, 1), 2


def a_lookup(**settings):
    return tf.nn.embedding_lookup(weight(6, 4, **settings), tf.range(6), "div"), 0


@pytest.mark.parametrize("partitioner", [None, TWO], ids=["whole", "partitioned"])
@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (a_matmul, "Dense"),
        (a_convolution, "Conv2D"),
        (a_convolution_of_sequences, "Conv1D"),
        (a_transposed_convolution, "Conv2DTranspose"),
        (a_lookup, "Embedding"),
    ],
)
def test_a_channel_is_what_an_output_depends_on(graph, kind, build, partitioner):
    output, axis = build(partitioner=partitioner)
    kernel = graph_variables()[0]
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(output))
    (record,) = network_in(GraphSession()).weights
    assert (record.found.type, record.axis.verified) == (kind, True)
    assert record.axis.axes == (axis,)
    # Each channel of the kernel moves one of the output, and that only: its last axis, or a row.
    before = np.random.default_rng(0).normal(size=kernel.shape).astype("f")
    fed = tf.placeholder(tf.float32, kernel.shape)
    assign = kernel.assign(fed)
    with tf.Session() as session:
        session.run(assign, {fed: before})
        first = session.run(output)
        moved = before.copy()
        np.moveaxis(moved, axis, 0)[2] += 1
        session.run(assign, {fed: moved})
        changed = session.run(output) != first
    along = 0 if kind == "Embedding" else changed.ndim - 1
    others = tuple(one for one in range(changed.ndim) if one != along)
    assert np.flatnonzero(changed.any(others)).tolist() == [2]


def test_a_depthwise_kernel_has_a_channel_for_each_multiple(graph):
    tf.nn.depthwise_conv2d(tf.ones((1, 5, 5, 4)), weight(3, 3, 4, 2), [1] * 4, "SAME")
    (record,) = network_in(GraphSession()).weights
    assert (record.axis.axes, record.axis.channels) == ((2, 3), 8)


def test_biases_and_statistics(graph, kind):
    hidden = tf.nn.bias_add(tf.ones((2, 3, 3, 4)), weight(4, name="net/b"))
    gamma, beta = weight(4, name="net/bn/gamma"), weight(4, name="net/bn/beta")
    weight(4, name="net/bn/moving_mean", trainable=False)
    tf.nn.fused_batch_norm(hidden, gamma, beta)
    found = {record.text.id: record for record in network_in(GraphSession()).weights}
    assert list(found) == ["net/b", "net/bn/gamma", "net/bn/beta", "net/bn/moving_mean"]
    assert [one.text.role for one in found.values()] == ["other", "scale", "bias", "statistic"]
    assert all(one.axis.verified for one in found.values())
    assert found["net/bn/moving_mean"].found.type == "BatchNormalization"


def test_what_no_op_tells_is_unverified(graph):
    tf.square(weight(4, 6))
    (record,) = network_in(GraphSession()).weights
    assert (record.found.type, record.text.axis, record.text.verified) == ("Variable", "-1", False)


@pytest.mark.parametrize(
    "read",
    [
        lambda w: tf.matmul(tf.ones((2, 6)), w, transpose_b=True),
        lambda w: tf.split(tf.matmul(tf.ones((2, 4)), w), 3, axis=1),
        lambda w: tf.split(tf.nn.bias_add(tf.matmul(tf.ones((2, 4)), w), tf.ones(6)), 3, axis=1),
    ],
    ids=["transposed", "gates", "gates with a bias"],
)
def test_channels_elsewhere_are_not_claimed(graph, read):
    read(weight(4, 6))
    assert roles(graph_variables()) == {"net/layer/w": UNKNOWN}


def test_the_first_reader_counts(graph):
    table = weight(6, 4)
    tf.nn.embedding_lookup(table, tf.range(2))
    tf.matmul(tf.ones((1, 6)), table)
    assert roles(graph_variables()) == {"net/layer/w": Role("Embedding", "embeddings")}


def test_in_a_loop(graph, kind):
    kernel = weight(4, 4)
    tf.disable_control_flow_v2()
    try:
        tf.while_loop(
            lambda x: tf.reduce_all(x < 9), lambda x: tf.matmul(x, kernel), [tf.ones((1, 4))]
        )
    finally:
        tf.enable_control_flow_v2()
    assert roles(graph_variables()) == {"net/layer/w": Role("Dense", "kernel")}


def test_no_variables():
    assert roles([]) == {}
