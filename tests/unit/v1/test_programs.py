"""Whole programs as they were written for TensorFlow 1."""

from __future__ import annotations

MONITORED = """
import numpy as np
import tb_pastnet as pastnet

assert not tf.executing_eagerly()
x = tf.placeholder(tf.float32, (None, 1))
y = tf.placeholder(tf.float32, (None, 1))
weight = tf.get_variable("net/weight", initializer=tf.constant([[2.0]]))
norm = tf.get_variable("net/norm", initializer=tf.zeros(()), trainable=False)
tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, norm.assign_add(1.0))
output = tf.matmul(x, weight) + 0 * norm
past = pastnet.v1.past_network(x, output)
loss = tf.reduce_sum((output - y) ** 2)
with past.step(), tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(1 / 36).minimize(loss, step)
given = {x: [[3.0]], y: [[12.0]]}
with tf.train.MonitoredTrainingSession() as session:
    for _ in range(4):
        before, _ = session.run([past.outputs, train], given)
        print(before.item(), *session.run([v for v in past.variables if v.shape.as_list() == []]))
print(type(weight).__name__, past.mapping)
"""

SCOPES = """
from tb_pastnet import v1

for scope, value in (("net", 3.0), ("net_2", 4.0), ("past", 0.0)):
    with tf.variable_scope(scope):
        tf.get_variable("w", initializer=value)
step = tf.train.get_or_create_global_step()
sync = v1.SyncHook(v1.sync_op("net", "past"))
train = tf.group(step.assign_add(1), tf.global_variables("net/")[0].assign_add(1.0))
with tf.train.MonitoredTrainingSession(hooks=[sync]) as session:
    session.run(train)
    print(*session.run(tf.global_variables("past")))
"""


def test_a_past_network_in_a_monitored_session(python):
    # 3 w, whose error against 12 is halved in each step; the past is one step behind.
    assert python.run(MONITORED).splitlines() == [
        "6.0 0.0",
        "6.0 1.0",
        "9.0 2.0",
        "10.5 3.0",
        "RefVariable {'net/weight': 'past/net/weight', 'net/norm': 'past/net/norm'}",
    ]


def test_a_sync_of_scopes(python):
    assert python.run(SCOPES) == "4.0\n"
