"""Custom gradients through a clone: their tensors are the clone's, or they are refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1 import clone_network

pytestmark = pytest.mark.usefixtures("graph", "control_flow")

X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")


def placeholder(name="x"):
    return tf.placeholder(tf.float32, (None, 3), name)


def scale(name="net/scale", value=2.0):
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=True)


def gradient(copy):
    return tf.gradients(copy.outputs, copy.inputs)[0]


def test_one_that_closes_over_a_variable_of_the_network_reads_that_of_the_clone():
    x, other, factor = placeholder(), placeholder("other"), scale()

    @tf.custom_gradient
    def twice(a):
        return a * 2.0, lambda dy: dy * tf.square(factor)

    copy = clone_network(x, twice(x) * factor, new_inputs=other)
    found = gradient(copy)
    with tf.Session() as session:
        session.run(factor.assign(100.0))
        session.run(copy.variables[0].assign(3.0))
        found = session.run(found, {other: X})
        np.testing.assert_allclose(found, np.full((4, 3), 27.0))  # 3 of the product, 3² of ours


def test_one_that_closes_over_a_tensor_behind_the_outputs_computes_it_from_the_clone():
    x, other, factor = placeholder(), placeholder("other"), scale()
    y = x * factor
    unused = tf.exp(y)

    @tf.custom_gradient
    def same(a):
        return a + 0.0, lambda dy: dy * unused

    copy = clone_network(x, same(y), new_inputs=other)
    found = gradient(copy)
    with tf.Session() as session:
        session.run(copy.variables[0].assign(0.5))
        found = session.run(found, {other: X})
        np.testing.assert_allclose(found, 0.5 * np.exp(X * 0.5), rtol=1e-5)


def test_one_that_closes_over_a_variable_of_another_network_is_refused_unless_shared():
    x, factor, foreign = placeholder(), scale(), scale("foreign")

    @tf.custom_gradient
    def same(a):
        return a + 0.0, lambda dy: dy * foreign

    y = same(x * factor)
    copy = clone_network(x, y)
    with pytest.raises(
        InvalidArgument,
        match=r"Could not take a gradient through the copy of 'IdentityN': expected a custom "
        r"gradient that uses variables of the network, got foreign, which its outputs don't use\. "
        r"Use it in the function itself as well, or add it to share\.",
    ):
        tf.gradients(copy.outputs, x)
    shared = clone_network(x, y, "shared", share=foreign)
    found = gradient(shared)
    with tf.Session() as session:
        session.run(foreign.assign(5.0))
        session.run(shared.variables[0].assign(3.0))
        np.testing.assert_allclose(session.run(found, {x: X}), np.full((4, 3), 15.0))


@pytest.mark.parametrize("inside", [True, False], ids=["a value inside", "a value outside"])
@pytest.mark.parametrize("flow", ["loop", "branch"])
def test_one_in_a_loop_or_branch_that_closes_over_a_value_is_refused(flow, inside):
    x, factor = placeholder(), scale()
    outside = factor * 3.0

    @tf.custom_gradient
    def same(a):
        b = a + 0.0
        return b * 1.0, lambda dy: dy * (b if inside else outside)

    if flow == "loop":
        y = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, same(a * factor)), (0, x))[1]
    else:
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: same(x * factor), lambda: same(x))
    copy = clone_network(x, y + outside)
    initialize, expected = tf.global_variables_initializer(), y + outside
    with pytest.raises(
        InvalidArgument,
        match=r"Could not take a gradient through '.*IdentityN.*' of a copied network: expected a "
        r"custom gradient in a loop or branch to use only its incoming gradient, got one "
        r"that closes over tensors of the original\. Move the tf\.custom_gradient out",
    ):
        tf.gradients(copy.outputs, x)
    with tf.Session() as session:  # its outputs are right
        session.run(initialize)
        one, two = session.run([expected, copy.outputs], {x: X})
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("flow", ["loop", "branch"])
def test_one_in_a_loop_or_branch_that_uses_only_what_it_is_given_works(flow):
    x, factor = placeholder(), scale()
    reversed_ = tf.custom_gradient(lambda a: (a + 0.0, lambda dy: -dy))
    if flow == "loop":
        y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, reversed_(a * factor)), (0, x))[
            1
        ]
    else:
        y = tf.cond(tf.reduce_sum(x) > 1e9, lambda: x, lambda: reversed_(x * factor))
    copy = clone_network(x, y)
    found = gradient(copy)
    with tf.Session() as session:
        session.run(copy.variables[0].assign(3.0))
        expected = -27.0 if flow == "loop" else -3.0
        np.testing.assert_allclose(session.run(found, {x: X}), np.full((4, 3), expected))


def test_a_clone_of_a_clone_has_its_own():
    x, factor = placeholder(), scale()

    @tf.custom_gradient
    def same(a):
        b = a * factor
        return b, lambda dy, variables: (dy * b, [tf.reduce_sum(dy)])

    first = clone_network(x, same(x))
    second = clone_network(x, first.outputs, "second")
    found = gradient(second)
    (own,) = tf.gradients(second.outputs, second.variables)
    with tf.Session() as session:
        session.run(second.variables[0].assign(3.0))
        np.testing.assert_allclose(session.run(found, {x: X}), 3 * X, rtol=1e-6)
        np.testing.assert_allclose(session.run(own, {x: X}), 12.0)


def test_gradients_of_gradients_are_those_of_the_clone():
    x, factor = placeholder(), scale()

    @tf.custom_gradient
    def cube(a):
        return a**3, lambda dy: dy * 3.0 * a**2

    copy = clone_network(x, cube(x * factor))
    (first,) = tf.gradients(copy.outputs, x)
    (second,) = tf.gradients(first, x)
    with tf.Session() as session:
        session.run(copy.variables[0].assign(3.0))
        np.testing.assert_allclose(session.run(first, {x: X}), 81 * X**2, rtol=1e-5)
        np.testing.assert_allclose(session.run(second, {x: X}), 162 * X, rtol=1e-5)
