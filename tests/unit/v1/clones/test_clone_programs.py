"""A whole program as it was written for TensorFlow 1, with a clone in it."""

from __future__ import annotations

import pytest

PROGRAM = """
import numpy as np
import tb_pastnet as pastnet

assert not tf.executing_eagerly()
tf.reset_default_graph()


def model(x, training):
    with tf.variable_scope("net", use_resource=resource):
        kernel = tf.get_variable("kernel", initializer=tf.constant([[2.0]]))
        mean = tf.get_variable("mean", initializer=0.0, trainable=False)
        halves = tf.get_variable("halves", (2, 1), partitioner=tf.fixed_size_partitioner(2),
                                 initializer=tf.ones_initializer())
        h = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.matmul(a, kernel)), [0, x])[1]
        found = tf.reduce_mean(h)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(mean, found))
        h = tf.cond(training, lambda: h - found, lambda: h - mean)
        return h * tf.reduce_sum(halves)


x = tf.placeholder(tf.float32, [None, 1])
training = tf.placeholder_with_default(False, [], name="training")
y = model(x, training)
shape = y.shape.as_list()
del model

copy = pastnet.v1.clone_network([x], {"y": y}, scope="target", share=[training])
loss = tf.reduce_mean(tf.square(copy.outputs["y"] - 1.0))
trained = tf.trainable_variables("target/")
step = tf.train.get_or_create_global_step()
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, "target/")):
    train = tf.train.AdamOptimizer(0.1).minimize(loss, step, var_list=trained)
with tf.train.MonitoredTrainingSession() as session:
    print(*session.run([y, copy.outputs["y"]], {x: [[1.0]]}))
    session.run(train, {x: [[1.0], [2.0]]})
    print(*session.run([one for one in tf.global_variables() if "mean" in one.op.name]))
    print(*session.run([y, step], {x: [[1.0]]}))
print([one.op.name for one in trained], shape == copy.outputs["y"].shape.as_list())
"""


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
def test_a_network_is_cloned_trained_and_leaves_the_original_alone(python, resource):
    # 2 * 2³ = 16; the mean of 8 and 16 is 12, moved in the clone alone.
    assert python.run(PROGRAM, resource=resource).splitlines() == [
        "[[16.]] [[16.]]",
        "0.0 12.0",
        "[[16.]] 1",
        "['target/net/kernel', 'target/net/halves/part_0', 'target/net/halves/part_1'] True",
    ]
