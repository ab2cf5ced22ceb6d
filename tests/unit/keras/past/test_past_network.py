"""The first of the questions that the package answers: yesterday's network beside today's."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork, PastVariables
from tests.twins import same, train, values

X = np.random.default_rng(0).normal(size=(6, 4)).astype("f")


@pytest.fixture
def model():
    keras.utils.set_random_seed(1)
    parts = [layers.Dense(5, "tanh"), layers.BatchNormalization(), layers.Dense(2)]
    return keras.Sequential([keras.Input((4,)), *parts])


def forward(weights, x):
    """The model in NumPy."""
    kernel, bias, gamma, beta, mean, variance, kernel_1, bias_1 = weights
    x = np.tanh(x @ kernel + bias)
    return ((x - mean) / np.sqrt(variance + 1e-3) * gamma + beta) @ kernel_1 + bias_1


def test_in_sync_out_of_sync_in_sync_again():
    # As it was asked: two networks of one structure, the current one is trained, the other isn't,
    # and one call makes them equal. Outputs are known: 3 w, and gradient descent on (3 w - 12)^2.
    w = tf.Variable([[2.0]])
    current = tf.function(lambda x: tf.matmul(x, w))
    x = tf.constant([[3.0]])
    past = PastNetwork(current, example=x)
    assert current(x).numpy().item() == past(x).numpy().item() == 6.0
    found = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((current(x) - 12.0) ** 2)
        w.assign_sub(tape.gradient(loss, w) / 36.0)  # halves the error
        found.append((current(x).numpy().item(), past(x).numpy().item()))
    assert found == [(9.0, 6.0), (10.5, 6.0), (11.25, 6.0)]
    past.sync()
    assert current(x).numpy().item() == past(x).numpy().item() == 11.25


def test_the_past_stays_while_the_model_is_trained(model):
    past = PastNetwork(model)
    before = values(model)
    assert same(past(X), model(X))
    train(model, X, 5)
    assert not same(past(X), model(X))
    np.testing.assert_allclose(past(X), forward(before, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(X), forward(values(model), X), rtol=1e-5, atol=1e-6)
    past.sync()
    assert same(past(X), model(X))


def test_the_past_is_never_trained(model):
    past = PastNetwork(model)
    before = [one.numpy() for one in past.past.past]
    assert past.trainable_variables == ()
    assert not any(one.trainable for one in past.variables)
    model.compile("adam", "mse")
    model.fit(X, np.ones((6, 2)), epochs=3, verbose=0)
    for one, value in zip(past.past.past, before, strict=True):
        np.testing.assert_array_equal(one, value)


@pytest.mark.parametrize(
    "wanted",
    [["*/kernel"], ["dense/kernel", "dense_1/kernel"], "objects"],
    ids=["pattern", "names", "objects"],
)
def test_a_subset_of_the_variables(model, wanted):
    chosen = [0, 6]
    if wanted == "objects":
        wanted = [model.variables[at] for at in chosen]
    past = PastNetwork(model, variables=wanted)
    saved = values(model)
    train(model, X)
    mixed = [saved[at] if at in chosen else value for at, value in enumerate(values(model))]
    np.testing.assert_allclose(past(X), forward(mixed, X), rtol=1e-5, atol=1e-6)
    assert past.nbytes == 4 * (4 * 5 + 5 * 2)


def test_past_variables_of_ones_own(model):
    shadow = PastVariables(model.layers[0].weights)
    past = PastNetwork(model, past=shadow)
    saved = values(model)
    train(model, X)
    mixed = saved[:2] + values(model)[2:]
    np.testing.assert_allclose(past(X), forward(mixed, X), rtol=1e-5, atol=1e-6)
    shadow.sync()
    assert same(past(X), model(X))
    assert past.past is shadow


def test_what_has_no_past_is_the_current_also_where_the_call_writes_it(model):
    past = PastNetwork(model, variables=["*/kernel"])
    saved = values(model)
    train(model, X)
    now = values(model)
    outputs = past(X, training=True)  # writes statistics, whose past isn't kept
    for one, value in zip(model.variables, now, strict=True):
        np.testing.assert_array_equal(one, value)
    again = past(X, training=True)
    assert same(outputs, again)
    mixed = [saved[at] if at in (0, 6) else value for at, value in enumerate(now)]
    np.testing.assert_allclose(past(X), forward(mixed, X), rtol=1e-5, atol=1e-6)


def test_a_soft_sync(model):
    past = PastNetwork(model)
    saved = values(model)
    train(model, X)
    now = values(model)
    past.sync(tau=0.25)
    moved = [0.25 * b + 0.75 * a for a, b in zip(saved, now, strict=True)]
    moved[4:6] = now[4:6]  # statistics are copied
    np.testing.assert_allclose(past(X), forward(moved, X), rtol=1e-5, atol=1e-6)


def test_several_pasts_of_one_model(model):
    pasts, saved = [], []
    for _ in range(3):
        pasts.append(PastNetwork(model))
        saved.append(values(model))
        train(model, X)
    for past, weights in zip(pasts, saved, strict=True):
        np.testing.assert_allclose(past(X), forward(weights, X), rtol=1e-5, atol=1e-6)


def test_it_says_what_it_is(model):
    past = PastNetwork(model)
    elements = sum(value.size for value in values(model))
    assert past.nbytes == 4 * elements
    assert repr(past) == f"<PastNetwork of model {model.name!r}, {4 * elements:,} bytes>"
