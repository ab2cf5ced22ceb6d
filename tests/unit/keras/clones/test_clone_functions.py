"""Functions of which no layers are left."""

from __future__ import annotations

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork, clone_network
from tests.clones import arrays, batch, equal, values

START = np.array([[1.0, 2.0], [3.0, 4.0]], "f")
X = tf.constant([[1.0, 1.0], [2.0, -1.0]])


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(START, name="weight")
        self.steps = tf.Variable(0, trainable=False, name="steps")

    @tf.function
    def __call__(self, x, scale=1.0):
        self.steps.assign_add(1)
        return x @ self.weight * scale

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def power(self, x):
        return {
            "x": tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ self.weight), [0, x])[1]
        }

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def branch(self, x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x @ self.weight, lambda: x - self.weight[0])


def model_function():
    inputs = keras.Input((3, 2))
    outputs = layers.Dense(2)(layers.Bidirectional(layers.LSTM(2))(inputs))
    model = keras.Model(inputs, outputs)
    function = tf.function(model, input_signature=[tf.TensorSpec([None, 3, 2])])
    return function, tf.constant(batch(3, 2)), model


def concrete():
    module = Module()
    return module.__call__.get_concrete_function(tf.TensorSpec([None, 2]), 2.0), X, module


def traced():
    module = Module()
    module(X)
    module(X, scale=3.0)
    return module.__call__, X, module


def exported(tmp_path):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3), layers.BatchNormalization()])
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    return loaded.serve, X, loaded


def saved(tmp_path):
    tf.saved_model.save(Module(), tmp_path / "module")
    loaded = tf.saved_model.load(tmp_path / "module")
    return loaded.power, X, loaded


def signature(tmp_path):
    module = Module()
    tf.saved_model.save(module, tmp_path / "module", signatures=module.power)
    loaded = tf.saved_model.load(tmp_path / "module")
    return loaded.signatures["serving_default"], X, loaded


def inner():
    module = Module()
    first = tf.function(lambda x: x @ module.weight)
    second = tf.function(lambda x: first(x) * module.weight[0], jit_compile=True)
    return (
        tf.function(lambda x: second(first(x)), input_signature=[tf.TensorSpec([None, 2])]),
        X,
        module,
    )


def method(name):
    module = Module()
    return getattr(module, name), X, module


def whole():
    module = called(Module())
    return module, X, module


SOURCES = {
    "module": lambda tmp_path: whole(),
    "while": lambda tmp_path: method("power"),
    "cond": lambda tmp_path: method("branch"),
    "concrete": lambda tmp_path: concrete(),
    "traced": lambda tmp_path: traced(),
    "Keras": lambda tmp_path: model_function(),
    "nested": lambda tmp_path: inner(),
    "exported": exported,
    "saved": saved,
    "signature": signature,
}


def called(module):
    module(X)
    return module


@pytest.fixture(scope="module", params=SOURCES)
def cloned(request, tmp_path_factory):
    function, x, owner = SOURCES[request.param](tmp_path_factory.mktemp("source"))
    return function, clone_network(function), x, owner


@pytest.fixture
def source(cloned):
    """A function, its clone, an input, and what owns the variables."""
    function, copy, x, _ = cloned
    variables = [*slopes(function, x)[1], *copy.trainable_variables]
    before = arrays(variables)
    yield cloned
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)


def slopes(function, x):
    """Gradients, and the trainable variables that the function uses, by name."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = sum(tf.reduce_sum(one**2) for one in tf.nest.flatten(function(x)))
    variables = sorted(tape.watched_variables(), key=lambda one: one.name)
    return tape.gradient(loss, [x, *variables]), variables


def test_the_same_function_and_gradients(source):
    function, copy, x, _ = source
    tf.nest.assert_same_structure(function(x), copy(x))
    assert equal(function(x), copy(x))
    (expected, originals), (found, own) = slopes(function, x), slopes(copy, x)
    assert equal(found, expected)
    assert [one.name for one in own] == [one.name for one in originals]
    assert {id(one) for one in own} == {id(one) for one in copy.trainable_variables}
    assert {id(one) for one in own}.isdisjoint(id(one) for one in originals)


def test_independent_both_ways(source):
    function, copy, x, _ = source
    before, originals = arrays(function(x)), slopes(function, x)[1]
    for variable in copy.trainable_variables:
        variable.assign(variable * 2.0 + 1.0)
    moved = arrays(copy(x))
    assert equal(function(x), before)
    assert not equal(moved, before)
    for variable in originals:
        variable.assign(variable * 3.0 - 1.0)
    assert equal(copy(x), moved)
    assert not equal(function(x), before)


def test_an_optimizer_of_its_own_trains_it(source):
    function, copy, x, _ = source
    result, (found, variables) = arrays(function(x)), slopes(copy, x)
    start = arrays(variables)
    keras.optimizers.Adam(0.1).apply_gradients(zip(found[1:], variables, strict=True))
    assert equal(function(x), result)
    assert not any(equal(a, b) for a, b in zip(start, variables, strict=True))


def test_names_flags_and_values():
    module = called(Module())
    copy = clone_network(module)
    told = {v.name: (v.trainable, v.shape, v.dtype, v.numpy().tolist()) for v in copy.variables}
    assert told == {
        "weight:0": (True, (2, 2), tf.float32, START.tolist()),
        "steps:0": (False, (), tf.int32, 1),
    }
    assert repr(copy) == "<ClonedFunction with 2 variables>"


def test_state_that_it_writes_is_its_own():
    module = called(Module())
    copy = clone_network(module)
    copy(X)
    copy(X)
    steps = next(v for v in copy.variables if not v.trainable)
    assert (module.steps.numpy(), steps.numpy()) == (1, 3)


def test_all_traces_of_a_function():
    function, x, module = traced()
    copy = clone_network(function)
    module.weight.assign(tf.zeros((2, 2)))
    expected = X.numpy() @ START
    np.testing.assert_array_equal(copy(x), expected)
    np.testing.assert_array_equal(copy(x, scale=3.0), expected * 3)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        copy(x, scale=4.0)


def test_an_example_traces_it():
    module = Module()
    copy = clone_network(module, example=(X, 5.0))
    np.testing.assert_array_equal(copy(X, 5.0), X.numpy() @ START * 5)
    plain = clone_network(lambda x: {"y": [x @ module.weight]}, example=tf.TensorSpec([None, 2]))
    np.testing.assert_array_equal(plain(X)["y"][0], X.numpy() @ START)


def test_the_original_can_be_deleted():
    module = called(Module())
    copy, gone = clone_network(module), weakref.ref(module.weight)
    del module
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(copy(X), X.numpy() @ START)


def test_a_clone_of_a_clone_also_after_a_gradient():
    module = Module()
    slopes(module.power, X)  # which changes the graph of a loop
    copy = clone_network(module.power)
    slopes(copy, X)
    second = clone_network(copy)
    copy.trainable_variables[0].assign(tf.zeros((2, 2)))
    # START cubed.
    np.testing.assert_array_equal(second(X)["x"], X.numpy() @ START @ START @ START)


def test_a_past_network_of_a_clone():
    module = Module()
    copy = clone_network(module.branch)
    past = PastNetwork(copy, example=X)
    copy.trainable_variables[0].assign(tf.zeros((2, 2)))
    np.testing.assert_array_equal(past(X), X.numpy() @ START)
    np.testing.assert_array_equal(copy(X), np.zeros((2, 2)))


def test_large_constants_are_copied():
    constant = tf.constant(batch(300))
    copy = clone_network(lambda x: x @ tf.transpose(constant), example=tf.TensorSpec([None, 300]))
    x = tf.constant(batch(300))
    np.testing.assert_array_equal(copy(x), x @ tf.transpose(constant))


def test_no_files_are_left():
    clone_network(called(Module()))
    assert tf.io.gfile.glob("ram://pastnet*") == []


def test_values_are_not_changed_by_cloning():
    module = called(Module())
    before = values(module)
    clone_network(module)
    assert equal(values(module), before)
