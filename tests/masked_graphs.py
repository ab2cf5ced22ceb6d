"""A small network of a graph, whose weights are held."""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet import v1

KERNEL = "net/dense/w"
STEPS = 5


def network(scope="net", partitioner=None):
    """The loss of a network with two kernels, always of the same inputs and first values."""
    rng = np.random.default_rng(3)
    values = [rng.normal(size=size).astype("f") for size in ((8, 6), (6, 4), (4,), (4, 3))]
    x, *weights = values

    def weight(name, value, divided=None):
        def first(shape, dtype=None, partition_info=None):
            rows = 0 if partition_info is None else partition_info.var_offset[0]
            return tf.constant(value[rows : rows + shape[0]])

        return tf.get_variable(name, value.shape, initializer=first, partitioner=divided)

    with tf.variable_scope(scope):
        kernel = weight("dense/w", weights[0], partitioner)
        bias = weight("dense/b", weights[1])
        hidden = tf.tanh(tf.nn.bias_add(tf.matmul(x, tf.convert_to_tensor(kernel)), bias))
        return tf.reduce_sum(tf.matmul(hidden, weight("out/w", weights[2])) ** 2)


def trained():
    """Masks and train op of a network."""
    loss = network()
    masks = v1.Masks()
    optimizer = masks.wrap(tf.train.MomentumOptimizer(0.01, 0.9))
    return masks, optimizer.minimize(loss, tf.train.get_or_create_global_step())


def begun(session, masks):
    session.run([tf.global_variables_initializer(), masks.initializer])


def start(session, train, steps=STEPS):
    for _ in range(steps):
        session.run(train)


def value_of(session, name):
    """The value of a variable, apart from what is tested; parts are joined along the first axis."""
    parts = [
        one
        for one in tf.global_variables()
        if one.op.name in (name, f"{name}/part_0", f"{name}/part_1")
    ]
    return np.concatenate([np.atleast_1d(session.run(part)) for part in parts])
