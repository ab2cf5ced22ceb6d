"""What a network can be called with, and what it can return."""

from __future__ import annotations

from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork
from tests.twins import same

WAYS = {"eager": lambda function: function, "graph": tf.function}
RNG = np.random.default_rng(0)


class Pair(NamedTuple):
    first: tf.Tensor
    second: tf.Tensor


class Scaled(tf.experimental.ExtensionType):
    values: tf.Tensor
    scale: tf.Tensor


W = tf.Variable([1.0, 2.0])
RAGGED = tf.ragged.constant([[1.0, 2.0, 3.0], [4.0]])
SPARSE = tf.sparse.from_dense([[0.0, 3.0], [4.0, 0.0], [0.0, 5.0]])
X = tf.constant([[1.0, 2.0], [3.0, 4.0]])

NETWORKS = {
    "dict in, dict out": (lambda d: {"sum": d["a"] + d["b"] * W, "a": d["a"]}, ({"a": X, "b": X},)),
    "list in, tuple out": (lambda x: (x[0] * W, [x[1], W + 0.0]), ([X, X],)),
    "named tuple": (lambda p: Pair(p.second * W, p.first), (Pair(X, 2 * X),)),
    "extension type": (lambda e: Scaled(e.values * W, e.scale), (Scaled(X, tf.constant(2.0)),)),
    "several": (lambda a, b, c: a * b + c * W, (X, X, X)),
    "ragged": (lambda r: tf.reduce_sum(r, axis=1) * W, (RAGGED,)),
    "ragged out": (lambda r: r * W[0], (RAGGED,)),
    "sparse": (lambda s: tf.sparse.sparse_dense_matmul(s, W[:, None]), (SPARSE,)),
    "sparse out": (lambda s: s * W[1], (SPARSE,)),
    "nothing": (lambda: W * 2.0, ()),
    "static": (lambda x, sign, name: x * W if (sign, name) == (-1, "a") else x, (X, -1, "a")),
    "none": (lambda x, mask: {"x": x * W, "mask": mask}, (X, None)),
    "strings": (lambda s: (s, W + tf.cast(tf.strings.length(s), tf.float32)), (tf.constant("ab"),)),
    "integers": (lambda i: tf.gather(W, i), (tf.constant([1, 0, 1]),)),
    "booleans": (lambda b: tf.where(b, W, -W), (tf.constant([True, False]),)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_and_outputs_of_all_structures(name, way):
    network, arguments = NETWORKS[name]
    W.assign([1.0, 2.0])
    past = PastNetwork(tf.function(network), example=arguments)
    expected = tf.function(network)(*arguments)
    W.assign([5.0, 6.0])
    found = WAYS[way](lambda: past(*arguments))()
    tf.nest.assert_same_structure(found, expected, expand_composites=True)
    flat = [tf.nest.flatten(one, expand_composites=True) for one in (found, expected)]
    assert same(*([one for one in nest if one is not None] for nest in flat))


@pytest.mark.parametrize(
    "value",
    [
        np.array([3.0, 4.0], "f"),
        np.float32(3.0),
        tf.Variable([3.0, 4.0]),
        keras.Variable([3.0, 4.0]),
        3.0,
    ],
    ids=["array", "NumPy scalar", "tf.Variable", "keras.Variable", "float"],
)
def test_values_that_are_made_tensors(value):
    W.assign([1.0, 2.0])
    past = PastNetwork(tf.function(lambda x: x * W), example=value)
    W.assign([5.0, 6.0])
    number = value if isinstance(value, float) else np.array(value)
    np.testing.assert_array_equal(past(value), number * np.float32([1, 2]))


def test_a_variable_as_input_is_read_at_each_call():
    x = tf.Variable([3.0, 4.0])
    past = PastNetwork(tf.function(lambda x: x * W), example=x)
    first = past(x).numpy()
    x.assign([0.0, 0.0])
    assert first.all()
    assert not past(x).numpy().any()


class TakesAList(keras.Model):
    def call(self, inputs):
        assert isinstance(inputs, list)
        return super().call(inputs)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (keras.Model, lambda x: [x]),
        (keras.Model, lambda x: (x,)),
        (keras.Model, lambda x: [{"a": x}]),
        (TakesAList, lambda x: [x]),
        (TakesAList, lambda x: [{"a": x}]),
    ],
)
def test_a_functional_model_of_one_input_is_called_in_its_own_structure(kind, inputs, recwarn):
    x = keras.Input((2,))
    model = kind(inputs(x), layers.Dense(3)(x))
    past = PastNetwork(model)
    batch = tf.constant(RNG.normal(size=(4, 2)), tf.float32)
    np.testing.assert_array_equal(past(inputs(batch)), model(inputs(batch)))
    assert [str(warning.message) for warning in recwarn] == []


def functional(inputs):
    keras.utils.set_random_seed(1)
    a, b = keras.Input((2,), name="a"), keras.Input((3,), name="b")
    out = layers.Concatenate()([layers.Dense(2)(a), layers.Dense(2)(b)])
    return keras.Model(inputs(a, b), {"out": out, "both": [layers.Dense(1)(out), a]})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "inputs",
    [
        lambda a, b: [a, b],
        lambda a, b: {"b": b, "a": a},
        lambda a, b: (b, a),
        lambda a, b: {"a": a, "b": b},
    ],
    ids=["list", "dict", "tuple", "other dict"],
)
def test_functional_models_of_several_inputs(inputs, way):
    model, twin = functional(inputs), functional(inputs)
    past = PastNetwork(model)
    for variable in model.variables:
        variable.assign_add(tf.ones_like(variable))
    batch = inputs(*(tf.constant(RNG.normal(size=(4, n)), tf.float32) for n in (2, 3)))
    found = WAYS[way](past)(batch)
    tf.nest.assert_same_structure(found, twin(batch))
    assert same(found, WAYS[way](twin)(batch))
    assert not same(found, model(batch))


def test_a_functional_model_with_a_sparse_input():
    x = keras.Input((2,), sparse=True)
    model = keras.Model(x, layers.Dense(3)(x))
    past = PastNetwork(model)
    kernel, bias = (np.array(one) for one in model.weights)
    model.layers[-1].kernel.assign_add(tf.ones((2, 3)))
    expected = tf.sparse.to_dense(SPARSE).numpy() @ kernel + bias
    np.testing.assert_allclose(past(SPARSE), expected, rtol=1e-6)


class Doubled(layers.Layer):
    def __init__(self):
        super().__init__()
        self.gain = self.add_weight(shape=(), initializer="ones")

    def call(self, x, twice=False, mask=None, training=True):
        x = x if mask is None else tf.where(mask, x, 0.0)
        x = x + 100.0 if training else x
        return x * self.gain * (2 if twice else 1)


@pytest.mark.parametrize("way", WAYS)
def test_keyword_arguments(way):
    layer = Doubled()
    layer.supports_masking = True
    layer.build(())
    past = PastNetwork(layer)
    layer.gain.assign(7.0)
    mask = tf.constant([[True, False], [True, True]])

    def called(**kwargs):
        return WAYS[way](lambda x: past(x, **kwargs))(X).numpy().tolist()

    assert called() == called(training=None) == [[1, 2], [3, 4]]
    assert called(twice=True, mask=None) == [[2, 4], [6, 8]]
    assert called(mask=mask) == [[1, 0], [3, 4]]
    assert called(training=True) == [[101, 102], [103, 104]]


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_that_keras_hangs_on_a_tensor(way):
    layer = Doubled()
    layer.supports_masking = True
    layer.build(())
    past = PastNetwork(layer)
    layer.gain.assign(7.0)
    zeros = layers.Masking()  # masks the rows of zeros

    def called(x):
        x = zeros(x)
        y = x + 1.0
        y._keras_mask = x._keras_mask[..., None]
        return past(x + 1.0), past(y)

    plain, masked = WAYS[way](called)(tf.constant([[[0.0, 0.0], [1.0, 2.0]]]))
    assert plain.numpy().tolist() == [[[1, 1], [2, 3]]]
    assert masked.numpy().tolist() == [[[0, 0], [2, 3]]]


def test_a_layer_whose_call_knows_no_training():
    layer = layers.Reshape((1, 2))
    network = keras.Sequential([keras.Input((2,)), layer, layers.Dense(1)])
    assert PastNetwork(network)(X).shape == (2, 1, 1)
