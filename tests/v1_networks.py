"""Small networks of one placeholder, built in every way that TF1-style code builds them."""

from __future__ import annotations

import tensorflow as tf2
import tensorflow.compat.v1 as tf

WORLDS = ("reference-v1", "resource-v1", "resource-v2")
"""Kinds of variables, and versions of control flow."""


def weight(name, shape=(3, 3), **settings):
    return tf.get_variable(f"net/{name}", shape, **settings)


def dense(x):
    return tf.tanh(x @ weight("w") + weight("b", (3,)))


def branch(x):
    w, b = weight("w"), weight("b", (3,))
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x @ w + b, lambda: tf.tanh(x @ w - b) * 2.0)


def loop(x):
    w = weight("w")
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a @ w)), (0, x))[1]


def nested(x):
    """A branch in a loop in a loop, and a branch after them."""
    w, b = weight("w"), weight("b", (3,))

    def inner(i, a):
        return i + 1, tf.cond(i > 0, lambda: tf.tanh(a @ w), lambda: a @ w + b)

    def outer(i, a):
        return i + 1, tf.while_loop(lambda j, _: j < 2, inner, (0, a))[1]

    h = tf.while_loop(lambda i, _: i < 2, outer, (0, x))[1]
    return tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2.0 + b, lambda: h * 3.0 - b)


def scan(x):
    w = weight("w")
    steps = tf.stack([x, x * 2.0, x])
    return tf.scan(lambda a, e: tf.tanh(a @ w + e), steps, initializer=tf.zeros_like(x))[-1]


def mapped(x):
    w = weight("w")
    return tf.map_fn(lambda row: tf.nn.relu(tf.tensordot(row, w, 1)), x)


def embedding(x):
    rows = tf.nn.embedding_lookup(weight("table", (7, 3)), tf.argmax(x, 1))
    return x @ weight("w") + rows


def partitioned(x):
    w = weight("w", (3, 3), partitioner=tf.fixed_size_partitioner(2))
    return tf.tanh(x @ tf.convert_to_tensor(w))


def custom(x):
    """A gradient that uses an intermediate value, and isn't the true one."""

    @tf.custom_gradient
    def cube(a):
        return a**3, lambda dy: dy * a * 5.0

    return cube(x @ weight("w"))


def _twice(w):
    """A tf.function with a loop in it, which captures a variable."""

    @tf2.function
    def run(a):
        for _ in tf2.range(2):
            a = tf2.tanh(a @ w)
        return a

    return run


def function(x):
    return _twice(weight("w", use_resource=True))(x)


def function_in_loop(x):
    run = _twice(weight("w", use_resource=True))
    return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, run(a)), (0, x))[1]


def waits(x):
    """A counter counts how often the output is computed."""
    w = weight("w")
    count = tf.get_variable("net/count", initializer=0.0)
    with tf.control_dependencies([count.assign_add(1.0)]):
        return x @ w + 0.0


NETWORKS = [
    dense,
    branch,
    loop,
    nested,
    scan,
    mapped,
    embedding,
    partitioned,
    custom,
    function,
    function_in_loop,
    waits,
]
