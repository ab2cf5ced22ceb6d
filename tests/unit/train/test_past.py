from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import PastVariables
from tb_pastnet.errors import InvalidArgument


@pytest.fixture
def model():
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()]
    )


def move(model):
    for variable in model.weights:
        variable.assign_add(tf.ones(variable.shape))


@pytest.mark.parametrize("compiled", [False, None, True], ids=["eager", "graph", "XLA"])
def test_delta_and_sync(model, compiled):
    shadow = PastVariables(model.weights)
    wrap = (lambda f: f) if compiled is False else tf.function(jit_compile=compiled)
    delta, sync = wrap(shadow.delta), wrap(shadow.sync)
    move(model)
    assert all(np.allclose(d, 1) for d in delta())
    sync()
    assert all((d.numpy() == 0).all() for d in delta())
    move(model)
    move(model)
    assert all(np.allclose(d, 2) for d in delta())


def test_copies_are_not_aliases(model):
    before = [w.numpy().copy() for w in model.weights]
    shadow = PastVariables(model.weights)
    move(model)
    shadow.sync()
    after = [w.numpy().copy() for w in model.weights]
    model.layers[0].kernel.assign_add(tf.ones((4, 3)))
    shadow.past[1].assign_add(tf.ones(3))
    assert (shadow.past[0].numpy() == after[0]).all()
    assert (model.weights[1].numpy() == after[1]).all()
    assert not (before[0] == after[0]).any()


def test_a_soft_sync_copies_statistics(model):
    shadow = PastVariables(model.weights)
    past = [p.numpy() for p in shadow.past]
    move(model)
    shadow.sync(tau=0.25)
    for variable, old, new in zip(model.weights, past, shadow.past, strict=True):
        share = 1.0 if "moving" in variable.name else 0.25
        np.testing.assert_allclose(new, old + share, rtol=1e-6)


def test_tau_may_be_a_tensor_inside_a_function():
    weight, count = tf.Variable([2.0, 4.0]), tf.Variable(7)
    shadow = PastVariables([weight, count])

    @tf.function
    def step(tau):
        weight.assign([4.0, 8.0])
        count.assign(8)
        shadow.sync(tau)

    step(tf.constant(0.5))
    assert shadow.past[0].numpy().tolist() == [3, 6]
    assert shadow.past[1].numpy() == 8


def test_names_and_gradients(model):
    shadow = PastVariables({"a/b": model.weights[0]})
    assert shadow.past[0].name == "past/a/b:0"
    assert not shadow.past[0].trainable
    assert PastVariables(model.weights[:1]).past[0].name.startswith("past/")
    assert len(model.weights) == 6


def test_a_half_keeps_its_dtype():
    weight = tf.Variable([1.0], dtype=tf.bfloat16)
    shadow = PastVariables([weight])
    shadow.sync(0.5)
    assert shadow.past[0].dtype == tf.bfloat16
    assert shadow.delta()[0].dtype == tf.bfloat16


def test_wrong_use_is_refused():
    with pytest.raises(InvalidArgument, match=r"expected at least one variable, got none"):
        PastVariables([])
    with pytest.raises(
        InvalidArgument, match=r"Could not make a past variable of 0: expected a keras"
    ):
        PastVariables([np.ones(3)])
    shadow = PastVariables([tf.Variable(1.0)])
    for tau in (-0.1, 1.5, 2):
        with pytest.raises(InvalidArgument, match=r"expected tau from 0 to 1, got"):
            shadow.sync(tau)
