from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import PastDeltas, PastNetwork
from tb_pastnet.errors import InvalidArgument

SHAPE = (64, 65)  # 4,160 elements: more than are kept whole
OFTEN = {"eager": lambda f: f, "graph": tf.function, "XLA": tf.function(jit_compile=True)}


def classifier():
    return keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(65, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3),
        ]
    )


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_a_past_network_of_deltas(compiled):
    """Against full copies and against a network of its own, in a loss that uses both."""
    model, twin = classifier(), classifier()
    deltas = PastDeltas(model.variables)
    short, full = PastNetwork(model, past=deltas), PastNetwork(model)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    x = tf.constant(np.random.default_rng(1).normal(size=(8, 64)).astype(np.float32))

    def step(x):
        past, expected = short(x), full(x)
        with short.step(), full.step(), tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - past - 1) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
        return past, expected

    run = tf.function(step) if compiled else step
    saved = model.get_weights()
    for _ in range(3):
        before = model.get_weights()
        past, expected = run(x)
        twin.set_weights(saved)
        saved = before
        np.testing.assert_allclose(expected, twin(x, training=False), atol=1e-5)
        np.testing.assert_allclose(past, expected, atol=2e-3)
        now = model(x, training=False)
        moved = np.abs(np.subtract(now, short(x))).mean()
        assert np.abs(np.subtract(full(x), short(x))).mean() < 0.01 * moved
    assert short.nbytes < 0.7 * full.nbytes


def test_a_past_network_refuses_what_changed_elsewhere():
    model = classifier()
    past = PastNetwork(model, past=PastDeltas(model.variables))
    x = tf.ones((2, 64))
    graph = tf.function(past)
    assert np.isfinite(graph(x)).all()
    model.layers[0].kernel.assign_add(tf.ones((64, 65)))
    with pytest.raises(InvalidArgument, match=r"Could not read the past of '.*dense.*kernel'"):
        past(x)
    assert np.isnan(graph(x)).all()
    past.sync()
    np.testing.assert_allclose(past(x), model(x), rtol=1e-5)


def test_under_xla_a_past_network_says_what_it_needs():
    model = classifier()
    past = PastNetwork(model, past=PastDeltas(model.variables))
    with pytest.raises(tf.errors.InvalidArgumentError, match="XLA_needs_PastVariables_in_place_of"):
        tf.function(past, jit_compile=True)(tf.ones((2, 64)))


def test_a_checkpoint_with_the_model(tmp_path):
    model = classifier()
    deltas = PastDeltas(model.variables)
    with deltas.step():
        for variable in model.trainable_variables:
            variable.assign_add(tf.fill(variable.shape, 0.25))
    path = tf.train.Checkpoint(model=model, past=deltas).write(str(tmp_path / "both"))
    other = classifier()
    fresh = PastDeltas(other.variables)
    tf.train.Checkpoint(model=other, past=fresh).read(path).assert_existing_objects_matched()
    for found, expected in zip(fresh.values(), deltas.values(), strict=True):
        np.testing.assert_array_equal(found, expected)
    # Without the model that they were taken of the deltas say nothing.
    alone = PastDeltas(classifier().variables)
    tf.train.Checkpoint(past=alone).read(path).expect_partial()
    with pytest.raises(InvalidArgument, match="Could not read the past"):
        alone.values()
