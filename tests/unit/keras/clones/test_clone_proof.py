"""That what isn't a copy is found out."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import clone_network
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.proof import Differs, captured_pairs, check_pairs, pair_captures
from tb_pastnet.keras.graphs.nodes import operation_types

X = tf.TensorSpec([2])
A, B, C, D = (tf.Variable([value, value]) for value in (1.0, 2.0, 3.0, 4.0))

TWICE, THRICE = (tf.function(lambda y, by=by: y * by) for by in (2.0, 3.0))


def traced(function, *specs):
    return tf.function(function, autograph=False).get_concrete_function(*(specs or (X,)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: x + 1.0, lambda x: x + 2.0),
        (lambda x: x + 1.0, lambda x: x - 1.0),
        (lambda x: x - A, lambda x: A - x),
        (lambda x: (x + A, x + B), lambda x: (x + A, x + A)),
        (lambda x: (x + A, x + A), lambda x: (x + A, x + B)),
        (lambda x: tf.reduce_sum(x, 0), lambda x: tf.reduce_sum(x, 0, keepdims=True)),
        (lambda x: tf.cast(x, tf.float64), lambda x: tf.cast(x, tf.float16)),
        (lambda x: x, lambda x: (x, x)),
        (lambda x: A.assign(x + 1.0), lambda x: A.assign_add(x + 1.0)),
        (
            lambda x: tf.cond(x[0] > 0, lambda: x, lambda: -x),
            lambda x: tf.cond(x[0] > 0, lambda: x, lambda: x),
        ),
        (
            lambda x: tf.while_loop(lambda y: y[0] < 9, lambda y: y * 2.0, [x]),
            lambda x: tf.while_loop(lambda y: y[0] < 9, lambda y: y * 3.0, [x]),
        ),
        (lambda x: TWICE(x) + 1.0, lambda x: THRICE(x) + 1.0),
    ],
)
def test_what_differs(first, second):
    with pytest.raises(Differs):
        pair_captures(traced(first), traced(second))
    # Each is the same as itself.
    for one in (first, second):
        numbers = pair_captures(traced(one), traced(one))
        assert numbers == [(at, at) for at, _ in numbers]


def test_inputs_that_are_swapped():
    with pytest.raises(Differs):
        pair_captures(traced(lambda x, y: x - y, X, X), traced(lambda x, y: y - x, X, X))


def test_what_is_captured_is_paired_by_its_use():
    def first(x):
        return B * x + A

    def second(x):
        tf.reduce_sum(A)  # which no result needs
        return C * x + B

    one, two = traced(first), traced(second)
    pairs = pair_captures(one, two)
    handles = [[id(each) for each in concrete.captured_inputs] for concrete in (one, two)]
    found = {handles[0][a]: handles[1][b] for a, b in pairs}
    assert found == {id(B.handle): id(C.handle), id(A.handle): id(B.handle)}


def test_what_no_result_needs_is_left_out():
    def second(x):
        tf.reduce_sum(x * 3.0)
        return x * A

    assert pair_captures(traced(lambda x: x * A), traced(second)) == [(0, 0)]


def test_effects_in_another_order_are_the_same():
    def first(x):
        A.assign(x)
        B.assign(x * 2.0)
        return x

    def second(x):
        B.assign(x * 2.0)
        A.assign(x)
        return x

    one, two = traced(first), traced(second)
    found = {
        id(one.captured_inputs[a]): id(two.captured_inputs[b]) for a, b in pair_captures(one, two)
    }
    assert len(found) == 2


def test_operations_in_called_functions_are_found():
    concrete = traced(lambda x: tf.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x)))
    assert {"Sin", "Cos"} <= operation_types(concrete)


def refused(text, check, *args):
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        check(*args, "it")


def test_pairs_of_variables():
    assert check_pairs([(A, B), (A, B)], "it") == [(A, B)]
    refused(
        "Could not clone it: expected for 'Variable:0' its own variable, got the original's.",
        check_pairs,
        [(A, A)],
    )
    refused(
        "expected for 'Variable:0' one copy, as layers share it, got several.",
        check_pairs,
        [(A, B), (A, C)],
    )
    refused(
        "expected for 'Variable:0' a separate copy, got that of 'Variable:0'.",
        check_pairs,
        [(A, C), (B, C)],
    )
    refused(
        "expected for 'Variable:0' its own variable, got the original's.",
        check_pairs,
        [(A, B), (B, C)],
    )
    other = tf.Variable([1, 2])
    refused("expected for 'Variable:0' float32 (2,), got int32 (2,).", check_pairs, [(A, other)])


def test_captures_of_a_loaded_function():
    big, bigger = tf.ones(300), tf.zeros(300)
    spec = tf.TensorSpec([300])
    refused(
        "Could not clone it: expected a copy that uses 1 values, got one that uses 2. Save it as "
        "a SavedModel, and load that instead.",
        captured_pairs,
        traced(lambda x: x * A),
        traced(lambda x: x * B + C),
    )
    refused(
        "expected a copy with the same constants, got a different value of",
        captured_pairs,
        traced(lambda x: x * big, spec),
        traced(lambda x: x * bigger, spec),
    )
    refused(
        "expected its own variables, got Variable of the original",
        captured_pairs,
        *[traced(lambda x: x * A)] * 2,
    )
    one, two = traced(lambda x: x * A + B), traced(lambda x: x * C + D)
    pairs = captured_pairs(one, two, "it")
    assert [(id(one), id(two)) for one, two in pairs] == [(id(A), id(C)), (id(B), id(D))]


def test_a_vocabulary_that_can_not_be_set():
    class Stubborn(layers.StringLookup):
        def set_vocabulary(self, vocabulary, idf_weights=None):
            if self.vocabulary_size() == 1:
                super().set_vocabulary(vocabulary[:2], idf_weights)

        def get_config(self):
            return super().get_config()

    words = Stubborn(name="words")
    words.adapt(["a", "b"])
    x = keras.Input((1,), dtype="string")
    with pytest.raises(
        InvalidArgument,
        match=r"Could not clone layer 'words': expected its vocabulary of 3 tokens, got 2 in the copy\. Pass the vocabulary "
        r"to the layer's constructor\.",
    ):
        clone_network(x, words(x))


def test_state_that_a_class_saves_in_its_own_way():
    class Table(layers.Layer):
        def __init__(self, **settings):
            super().__init__(**settings)
            self.values = np.zeros(3, "f")

        def build(self, shape):
            self.built = True

        def call(self, x):
            return x + self.values

        def save_own_variables(self, store):
            store["values"] = self.values

        def load_own_variables(self, store):
            self.values = np.array(store["values"])

        def save_assets(self, folder):
            (tf.io.gfile.GFile(f"{folder}/note.txt", "w")).write("kept")

        def load_assets(self, folder):
            self.note = tf.io.gfile.GFile(f"{folder}/note.txt").read()

    x = keras.Input((3,))
    table = Table()
    y = table(x)
    table.values = np.array([1.0, 2.0, 3.0], "f")
    copy = clone_network(x, y)
    np.testing.assert_array_equal(copy(np.zeros((1, 3), "f")), [[1.0, 2.0, 3.0]])
    assert copy.layers[1].note == "kept"
