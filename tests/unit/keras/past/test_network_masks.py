"""The past of networks with masks of ours: it follows them as of the sync."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import Masked, MaskedDense, Masks, PastNetwork
from tests.twins import train

X = np.random.default_rng(0).normal(size=(5, 4)).astype("f")
HALF = np.arange(12).reshape(4, 3) % 2 == 0


def test_masks_on_the_optimizer():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    masks = Masks(model)
    past = PastNetwork(model)
    assert len(past.past.past) == 2
    kernel, bias = (np.array(one) for one in model.weights)
    masks.prune("dense/kernel", kept=HALF)
    np.testing.assert_allclose(past(X), X @ kernel + bias, rtol=1e-5, atol=1e-6)
    past.sync()
    np.testing.assert_allclose(past(X), X @ (kernel * HALF) + bias, rtol=1e-5, atol=1e-6)
    model.fit(X, np.ones((5, 3)), verbose=0)
    np.testing.assert_allclose(past(X), X @ (kernel * HALF) + bias, rtol=1e-5, atol=1e-6)
    masks.regrow("dense/kernel", kept=np.ones((4, 3)))
    np.testing.assert_allclose(past(X), X @ (kernel * HALF) + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["eager", "graph", "XLA"])
@pytest.mark.parametrize("make", [lambda: MaskedDense(3), lambda: Masked(layers.Dense(3))])
def test_layers_that_own_their_masks(make, way):
    layer = make()
    model = keras.Sequential([keras.Input((4,)), layer])
    past = PastNetwork(model)
    wrap = {"eager": lambda f: f, "graph": tf.function, "XLA": tf.function(jit_compile=True)}[way]
    called = wrap(past)
    weight = {one.name: one for one in layer.masked_weights()}["kernel"]
    kernel, bias = weight.numpy(), np.array(layer.layer.bias)
    weight.prune(HALF)
    weight.freeze(np.arange(12).reshape(4, 3) % 4 == 0)
    np.testing.assert_allclose(called(X), X @ kernel + bias, rtol=1e-5, atol=1e-6)
    past.sync()
    expected = X @ (kernel * HALF) + bias
    np.testing.assert_allclose(called(X), expected, rtol=1e-5, atol=1e-6)
    train(model, X)
    np.testing.assert_allclose(called(X), expected, rtol=1e-5, atol=1e-6)
    past.sync()
    np.testing.assert_array_equal(called(X), wrap(model)(X))


def test_a_subset_by_the_names_of_the_recorder():
    model = keras.Sequential([keras.Input((4,)), MaskedDense(3), layers.Dense(2)])
    past = PastNetwork(model, variables=["*dense/kernel"])
    before = np.array(model(X))
    assert any(one.name.endswith("dense/kernel:0") for one in past.past.past)
    layer = model.layers[0].layer
    layer.kernel.assign_add(tf.ones((4, 3)))
    np.testing.assert_array_equal(past(X), before)
