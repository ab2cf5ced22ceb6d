"""Networks that aren't Keras models: functions, modules, and what was loaded."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork
from tests.twins import same, train

X = tf.constant(np.random.default_rng(0).normal(size=(3, 4)), tf.float32)
WAYS = {
    "eager": lambda function: function,
    "graph": tf.function,
    "XLA": tf.function(jit_compile=True),
}


class Module(tf.Module):
    """A network of raw variables, in all the places where they can hide."""

    def __init__(self, seed=0):
        super().__init__()
        draw = np.random.default_rng(seed).normal
        self.kernel = tf.Variable(draw(size=(4, 4)), dtype=tf.float32)
        self.parts = {"bias": [tf.Variable(draw(size=4), dtype=tf.float32)]}
        self._hidden = tf.Variable(draw(size=4), dtype=tf.float32, trainable=False)

    @property
    def all(self):
        return [self.kernel, *self.parts["bias"], self._hidden]

    def __call__(self, x):
        x = self.inner(x)
        return x if tf.reduce_sum(x) < -100.0 else x * self._hidden

    @tf.function
    def inner(self, x):
        return tf.matmul(x, self.kernel) + self.parts["bias"][0]

    @tf.function
    def branches(self, x):
        return tf.cond(tf.reduce_sum(x) > 1e3, lambda: x, lambda: tf.matmul(x, self.kernel))

    @tf.function
    def loops(self, x):
        for i in tf.range(3):
            if i != 1:
                x = tf.tanh(x @ self.kernel) + self.parts["bias"][0]
        return x

    @tf.function
    def folds(self, x):
        return tf.scan(lambda a, b: tf.tensordot(a, self.kernel, 1) + b, x, self._hidden)

    @tf.function
    def gathers(self, x):
        places = tf.cast(tf.abs(x[:, 0]) % 4, tf.int32)
        cases = [lambda: self.parts["bias"][0], lambda: self._hidden]
        return tf.gather(self.kernel, places) + tf.switch_case(places[0] // 4, cases)


def check(network, twin, variables, way, example=X):
    """Past values are those of the twin, whose variables aren't moved."""
    past = PastNetwork(network, example=example)
    before = network(X)
    assert same(before, twin(X))
    for variable in variables:
        variable.assign_add(tf.ones_like(variable) / 2)
    assert not same(network(X), before)
    assert same(way(past)(X), way(twin)(X))
    past.sync()
    assert same(way(past)(X), way(network)(X))


@pytest.mark.parametrize("way", WAYS)
def test_a_module(way):
    module, twin = Module(), Module()
    check(tf.function(module), tf.function(twin), module.all, WAYS[way])
    past = PastNetwork(module)
    assert len(past.past.past) == 3
    assert same(past(X), tf.function(module)(X))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["inner", "branches", "loops", "folds", "gathers"])
def test_a_function_with_control_flow(name, way):
    module, twin = Module(), Module()
    check(getattr(module, name), getattr(twin, name), module.all, WAYS[way])


def test_a_concrete_function():
    module, twin = Module(), Module()
    batch = tf.TensorSpec([None, 4])
    concrete = module.loops.get_concrete_function(batch)
    check(concrete, twin.loops.get_concrete_function(batch), module.all, WAYS["eager"], None)


def test_a_function_with_a_signature_needs_no_example():
    w = tf.Variable(2.0)
    function = tf.function(lambda x: w * x, input_signature=[tf.TensorSpec([])])
    past = PastNetwork(function)
    w.assign(3.0)
    assert past(tf.constant(5.0)).numpy() == 10.0


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_a_python_function_with_ifs_on_tensors(way):
    w = tf.Variable(2.0)

    def function(x):
        if tf.reduce_sum(x) > 0:
            x = x * w
        return x

    past = PastNetwork(function, example=tf.ones(2))
    w.assign(7.0)
    called = WAYS[way](past)
    assert called(tf.ones(2)).numpy().tolist() == [2.0, 2.0]
    assert called(-tf.ones(2)).numpy().tolist() == [-1.0, -1.0]


def test_a_loaded_saved_model(tmp_path):
    module = Module()
    module.inner(X)
    module.loops(X)
    tf.saved_model.save(module, str(tmp_path))
    loaded, twin = tf.saved_model.load(str(tmp_path)), tf.saved_model.load(str(tmp_path))
    variables = [loaded.kernel, loaded.parts["bias"][0]]
    check(loaded.loops, twin.loops, variables, WAYS["eager"])


def test_an_exported_keras_model(tmp_path):
    keras.utils.set_random_seed(1)
    parts = [layers.Dense(4), layers.BatchNormalization(), layers.LSTM(3)]
    model = keras.Sequential([keras.Input((5, 4)), *parts])
    model.export(tmp_path, verbose=False)
    loaded, twin = tf.saved_model.load(str(tmp_path)), tf.saved_model.load(str(tmp_path))
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 4)), tf.float32)
    for network, other in [
        (loaded.serve, twin.serve),
        (loaded.signatures["serving_default"], twin.signatures["serving_default"]),
    ]:
        past = PastNetwork(network, example=x)
        before = network(x)
        for variable in loaded.variables:
            variable.assign(variable + tf.ones_like(variable))
        assert not same(network(x), before)
        assert same(past(x), other(x))
        past.sync()
        assert same(past(x), network(x))
        for variable, value in zip(loaded.variables, twin.variables, strict=True):
            variable.assign(value)


class Raw(layers.Layer):
    """Variables that Keras doesn't see, and a function of its own."""

    def __init__(self):
        super().__init__()
        self.hidden = [tf.Variable(tf.ones(4)), {"gain": tf.Variable(2.0)}]
        self.module = Module()

    def call(self, x):
        return self.inner(x) + self.module.inner(x)

    @tf.function
    def inner(self, x):
        return x * self.hidden[0] - self.hidden[1]["gain"]


@pytest.mark.parametrize("way", WAYS)
def test_raw_variables_in_a_layer(way):
    def make():
        keras.utils.set_random_seed(1)
        return keras.Sequential([keras.Input((4,)), layers.Dense(4), Raw()])

    model, twin = make(), make()
    raw = model.layers[1]
    assert len(model.variables) == 2  # the raw ones are found by tracing
    past = PastNetwork(model)
    called = WAYS[way](past)
    # TensorFlow rounds otherwise where functions are nested.
    expected = called_by_another(WAYS[way], twin)(X)
    for variable in [*raw.hidden[:1], raw.hidden[1]["gain"], *raw.module.all]:
        variable.assign_add(tf.ones_like(variable))
    train(model, X)
    assert same(called(X), expected)
    past.sync()
    assert same(called(X), called_by_another(WAYS[way], model)(X))


def called_by_another(way, function):
    inner = way(function)
    return way(lambda x: inner(x) + 0.0)


def test_one_layer_alone():
    layer = layers.Dense(2)
    layer.build((None, 4))
    past = PastNetwork(layer)
    kernel, bias = (np.array(one) for one in layer.weights)
    layer.kernel.assign_add(tf.ones((4, 2)))
    np.testing.assert_allclose(past(X), X.numpy() @ kernel + bias, rtol=1e-5, atol=1e-6)


def test_what_it_counts_is_counted_apart():
    count = tf.Variable(0)

    @tf.function
    def function(x):
        return x * tf.cast(count.assign_add(1), tf.float32)

    past = PastNetwork(function, example=tf.constant(1.0))
    assert [past(tf.constant(2.0)).numpy() for _ in range(3)] == [2.0, 4.0, 6.0]
    assert count.numpy() == 0
    past.sync()
    assert past(tf.constant(2.0)).numpy() == 2.0
