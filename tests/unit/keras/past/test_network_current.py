"""What evaluating the past leaves as it is: gradients, and all state of the current network."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork
from tests.twins import same, train, values

X = tf.constant(np.random.default_rng(0).normal(size=(6, 4)), tf.float32)
Y = tf.ones((6, 2))
WAYS = {
    "eager": lambda function: function,
    "graph": tf.function,
    "XLA": tf.function(jit_compile=True),
}


class Penalty(layers.Layer):
    def call(self, x):
        self.add_loss(tf.reduce_mean(x**2))
        return x


def make():
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(5, "relu", activity_regularizer="l2", kernel_regularizer="l1"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            Penalty(),
            layers.Dense(2),
        ]
    )


@pytest.fixture
def model():
    return make()


@pytest.mark.parametrize("way", WAYS)
def test_no_gradient_flows_through_the_past(model, way):
    past = PastNetwork(model)
    train(model, X)

    def step(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, *past.past.past])
            loss = tf.reduce_sum(past(x) ** 2)
        sources = [x, *past.past.past, *model.trainable_variables]
        return tape.gradient(loss, sources)

    found = []

    @WAYS[way]
    def called(x):
        found.extend(step(x))
        return x

    called(X)
    assert found == [None] * (1 + len(past.past.past) + len(model.trainable_variables))


@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_the_current_one_are_those_beside_a_constant(model, way):
    past = PastNetwork(model)
    train(model, X)
    constant = past(X)

    def gradients(target):
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum((model(x) - target(x)) ** 2)
            return tape.gradient(loss, [x, *model.trainable_variables])

        return WAYS[way](step)(X)

    for mine, theirs in zip(gradients(past), gradients(lambda x: constant), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)
        assert np.abs(mine).max() > 0


def test_forward_mode_has_no_tangent(model):
    past = PastNetwork(model)
    with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
        outputs = past(X)
    assert accumulator.jvp(outputs) is None


@pytest.mark.parametrize(
    ("way", "training"),
    [
        ("eager", False),
        ("graph", True),
        ("XLA", True),
        # What is written is written by calls in training, in which these ways differ.
        *(
            pytest.param(way, training, marks=pytest.mark.prove)
            for way, training in (("eager", True), ("graph", False), ("XLA", False))
        ),
    ],
)
def test_the_current_state_stays_to_the_bit(model, way, training):
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    model.train_on_batch(X, Y)
    past = PastNetwork(model)
    state = [*model.variables, *model.optimizer.variables]
    before = [np.array(one) for one in state]
    called = WAYS[way](lambda x: past(x, training=training))
    first, second = called(X), called(X)
    assert same(first, second) is not training  # with dropout its seeds move on
    for one, value in zip(state, before, strict=True):
        np.testing.assert_array_equal(one, value)


@pytest.mark.parametrize("training", [False, True])
def test_the_losses_are_those_of_the_current_call(training):
    model, alone = make(), make()
    past = PastNetwork(model)
    model(X)
    alone(X)
    expected = [float(loss) for loss in alone.losses]
    assert [float(loss) for loss in model.losses] == expected
    past(2 * X, training=training)  # traced between the call and its losses
    assert [float(loss) for loss in model.losses] == expected
    past(3 * X, training=training)
    assert [float(loss) for loss in model.losses] == expected
    assert len(expected) == 3


def test_the_losses_inside_of_a_step():
    model = make()
    past = PastNetwork(model)

    @tf.function
    def step(x):
        outputs = model(x)
        past(tf.concat([x, x], 0), training=True)
        return outputs, model.losses

    _, losses = step(X)
    model(X)
    np.testing.assert_allclose(losses, model.losses, rtol=1e-6)


class Distilled(keras.Model):
    """A model with a training step of its own, which may look at its past."""

    def __init__(self, network, looks, weight=0.0):
        super().__init__()
        self.network, self.looks, self.weight = network, looks, weight
        self.yesterday = PastNetwork(network) if looks else None

    def call(self, x, training=False):
        return self.network(x, training=training)

    def train_step(self, data):
        x, y = data
        if self.looks:
            before = self.yesterday(x)
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x, y, outputs)
            if self.weight:
                loss += self.weight * tf.reduce_mean((outputs - before) ** 2)
        if self.looks:
            self.yesterday(x, training=True)
            self.yesterday.sync()
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


# XLA compiles the step of both below, as by default.
@pytest.mark.parametrize(
    "compiled",
    [
        {"jit_compile": False},
        {"jit_compile": False, "steps_per_execution": 3},
        {"run_eagerly": True},
        pytest.param({"jit_compile": True}, marks=pytest.mark.prove),
    ],
    ids=["graph", "steps_per_execution", "eager", "XLA"],
)
def test_training_beside_the_past_is_bit_identical(compiled):
    found = []
    epochs = 1 if "run_eagerly" in compiled else 3
    for looks in (False, True):
        model = Distilled(make(), looks)
        model.compile(keras.optimizers.Adam(0.01), "mse", **compiled)
        model.optimizer.build(model.network.trainable_variables)
        history = model.fit(X, Y, batch_size=2, epochs=epochs, shuffle=False, verbose=0)
        losses = history.history["loss"]
        found.append((losses, values(model.network)))
    assert found[0][0] == found[1][0]
    for alone, beside in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(alone, beside)


@pytest.mark.parametrize(
    "compiled",
    [
        {},
        {"steps_per_execution": 3},
        pytest.param({"jit_compile": True}, marks=pytest.mark.prove),
    ],
)
def test_a_loss_of_both(compiled):
    keras.utils.set_random_seed(1)
    network = keras.Sequential([keras.Input((4,)), layers.Dense(2)])
    model = Distilled(network, True, weight=0.5)
    model.compile(keras.optimizers.SGD(0.1), "mse", **compiled)
    model.build((None, 4))
    kernel, bias = values(network)
    last, x, y = (kernel, bias), X.numpy(), Y.numpy()
    model.fit(X, Y, batch_size=6, epochs=6, shuffle=False, verbose=0)
    for _ in range(6):
        now, before = x @ kernel + bias, x @ last[0] + last[1]
        slope = 2 * ((now - y) + 0.5 * (now - before)) / now.size
        last = kernel, bias
        kernel, bias = kernel - 0.1 * x.T @ slope, bias - 0.1 * slope.sum(0)
    np.testing.assert_allclose(values(network)[0], kernel, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.yesterday(X), x @ last[0] + last[1], rtol=1e-4, atol=1e-5)
