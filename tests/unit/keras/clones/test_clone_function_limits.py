"""Gradients of a function's own, and functions that can't be cloned."""

from __future__ import annotations

import gc
import re

import pytest
import tensorflow as tf

from tb_pastnet import clone_network
from tb_pastnet.errors import InvalidArgument


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def branch(self, x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x @ self.weight, lambda: x)


def custom(variable, factor):
    @tf.custom_gradient
    def call(x):
        return x + 0.0, lambda upstream: upstream * 10.0 * factor

    return tf.function(lambda x: call(x) * variable, input_signature=[tf.TensorSpec([])])


def test_a_custom_gradient_goes_along():
    variable = tf.Variable(3.0)
    for factor, expected in ((1.0, 30.0), (variable, 90.0)):
        copy = clone_network(custom(variable, factor))
        variable.assign(7.0)
        # Also one that reads the variable in its gradient: it is the clone's.
        with tf.GradientTape() as tape:
            x = tf.constant(1.0)
            tape.watch(x)
            y = copy(x)
        assert tape.gradient(y, x).numpy() == expected
        variable.assign(3.0)


def refused(text, function, **settings):
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        clone_network(function, **settings)


def test_a_variable_of_the_gradient_alone_is_refused():
    variable, other = tf.Variable(3.0), tf.Variable(2.0)
    function = custom(variable, other)
    refused("expected a function that can be saved as a SavedModel, got: ", function)
    refused("Use all variables in the function itself, not only in a gradient.", function)


def test_lookup_tables_and_iterators_are_refused():
    values = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    table = tf.lookup.StaticHashTable(values, 0)
    iterator = iter(tf.data.Dataset.range(3))
    refused(
        "expected variables as its state, got a lookup table, used by ",
        tf.function(lambda x: table.lookup(x)),  # noqa: PLW0108 - traced as a function
        example=tf.TensorSpec([], tf.string),
    )
    refused(
        "which can't be copied. Call it before the function, and pass its result.",
        tf.function(lambda x: next(iterator) + x),
        example=tf.TensorSpec([], tf.int64),
    )


def test_a_deleted_variable_is_refused():
    def make():
        variable = tf.Variable(1.0)
        return tf.function(lambda x: x * variable).get_concrete_function(tf.TensorSpec([]))

    function = make()
    gc.collect()
    refused(
        "expected its variables to exist, got one that was deleted. Keep the object that owns "
        "the variables",
        function,
    )


def test_a_function_that_was_never_called_is_refused():
    refused(
        "Could not clone function '<lambda>': expected a traced function, got one that was never "
        "called. Pass example=, a batch of its inputs.",
        tf.function(lambda x: x),
    )
    module = Module()
    refused(
        "expected a function that can be called with its example, got ",
        module.branch,
        example=tf.ones(3),
    )
    # A method without its object.
    refused("got none: AttributeError: ", Module().branch)
    refused("Pass example=, a batch, and keep the owner of the function.", Module().branch)
