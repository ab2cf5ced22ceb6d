"""Which operations take what a function captures, in graphs that TensorFlow makes."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.keras.graphs.nodes import READS, uses

X = tf.constant([1.0, 2.0])


def of(function, *arguments):
    """The uses by the name of the variable, or None."""
    concrete = tf.function(function).get_concrete_function(*arguments)
    names = {id(variable.handle): variable.name[:-2] for variable in concrete.graph.variables}
    captured = zip(concrete.captured_inputs, uses(concrete), strict=True)
    return {names.get(id(tensor)): found for tensor, found in captured}


@pytest.fixture
def w():
    return tf.Variable([1.0, 2.0], name="w")


@pytest.fixture
def v():
    return tf.Variable([1.0, 2.0], name="v")


def test_reads(w):
    assert set(of(lambda x: x * w, X)["w"]) == {"ReadVariableOp"}
    assert set(of(lambda i: tf.gather(w, i), tf.constant([0]))["w"]) == {"ResourceGather"}
    assert set(of(lambda i: tf.gather_nd(w, i), tf.constant([[0]]))["w"]) == {"ResourceGatherNd"}
    assert set(of(lambda x: x * w[0], X)["w"]) <= READS


@pytest.mark.parametrize(
    ("write", "operation"),
    [
        (lambda w, x: w.assign(x), "AssignVariableOp"),
        (lambda w, x: w.assign_add(x), "AssignAddVariableOp"),
        (lambda w, x: w.assign_sub(x), "AssignSubVariableOp"),
        (lambda w, x: w[0].assign(x[0]), "ResourceStridedSliceAssign"),
        (lambda w, x: w.scatter_nd_add([[0]], x[:1]), "ResourceScatterNdAdd"),
    ],
)
def test_writes(w, write, operation):
    assert operation in of(lambda x: write(w, x), X)["w"]
    assert operation not in READS


def test_inside_of_functions(w, v):
    inner = tf.function(lambda x: v.assign_add(x) + w)
    outer = tf.function(lambda x: inner(x) + 1.0)
    found = of(lambda x: outer(x) * 2.0, X)
    assert "AssignAddVariableOp" in found["v"]
    assert set(found["w"]) == {"ReadVariableOp"}


@pytest.mark.parametrize("written", [0, 1])
def test_inside_of_branches(w, v, written):
    variables = [w, v]

    def branch(x):
        return variables[written].assign_add(x) + 0.0

    found = of(lambda x: tf.cond(x[0] > 0, lambda: branch(x), lambda: x * w * v), X)
    writes = {name for name, one in found.items() if not one.keys() <= READS}
    assert writes == {"wv"[written]}

    def cases(x):
        return tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x * w * v, lambda: branch(x)])

    found = of(cases, X)
    assert {name for name, one in found.items() if not one.keys() <= READS} == writes


def test_inside_of_loops(w, v):
    def function(x):
        return tf.while_loop(lambda x: x[0] < w[0], lambda x: (v.assign_add(x) + 1.0,), [x])

    found = of(function, X)
    assert set(found["w"]) <= READS
    assert "AssignAddVariableOp" in found["v"]


def test_the_name_of_the_place():
    keys, values = tf.constant(["a"]), tf.constant([1.0])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.0)

    @tf.function
    def inner(x):
        with tf.name_scope("words"):
            return table.lookup(x)

    (found,) = of(inner, tf.constant(["a"])).values()
    assert list(found) == ["LookupTableFindV2"]
    assert "words" in found["LookupTableFindV2"]


def test_functions_that_are_handed_to_other_operations(w):
    # Where the captured ones come in among the arguments of the function isn't known.
    def function(x):
        data = tf.data.Dataset.from_tensor_slices(x).map(lambda one: one * w)
        return data.reduce(tf.zeros(2), lambda a, b: a + b)

    found = of(function, X)["w"]
    assert found
    assert not found.keys() <= READS


def test_in_keras(w):
    model = keras.Sequential(
        [keras.Input((2,)), layers.Dense(2), layers.BatchNormalization(), layers.Dropout(0.5)]
    )

    def written(training):
        found = of(lambda x: model(x, training=training), X[None])
        paths = {variable.value.name[:-2]: variable.name for variable in model.variables}
        return {paths[name] for name, one in found.items() if not one.keys() <= READS}

    assert written(False) == set()
    assert written(True) == {"moving_mean", "moving_variance", "seed_generator_state"}


def test_a_function_that_captures_nothing():
    assert of(lambda x: x + 1.0, X) == {}
