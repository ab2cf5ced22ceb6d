"""A rewind sets back all optimizers that train the weights, not only the compiled one."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Masks

X = np.random.default_rng(0).normal(size=(32, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("f4")


def network():
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(2)])


def loop(model, optimizer):
    """Trains some steps of a loop of a user's own, and returns the losses."""

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(X) - Y) ** 2)
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    return lambda: [float(step()) for _ in range(5)]


def state(optimizer):
    return [variable.numpy() for variable in optimizer.variables]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [keras.optimizers.Adam, keras.optimizers.Ftrl])
def test_the_optimizer_of_a_loop_goes_back_with_the_weights(compiled, kind):
    model, optimizer = network(), kind(0.01)
    if compiled:
        model.compile()
    train = loop(model, optimizer)
    train()
    masks = Masks(model)
    snapshot, before = masks.snapshot(), state(optimizer)
    assert snapshot.step == 5
    first = train()
    done = masks.rewind(snapshot)
    assert (done.slots, done.step) == ("snapshot", (10, 5))
    for one, other in zip(state(optimizer), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert train() == first


def test_an_optimizer_that_began_after_the_snapshot_starts_again():
    model, optimizer = network(), keras.optimizers.Adam(0.01)
    masks = Masks(model)
    snapshot = masks.snapshot()
    train = loop(model, optimizer)
    first = train()
    done = masks.rewind(snapshot)
    assert (done.slots, done.step) == ("initial", (5, 0))
    assert train() == first


def test_a_model_that_is_compiled_later_takes_no_state_of_another_class():
    model, optimizer = network(), keras.optimizers.Adam(0.01)
    masks, train = Masks(model), loop(model, optimizer)
    train()
    snapshot = masks.snapshot()
    first = train()
    model.compile("rmsprop", "mse")
    masks.rewind(snapshot)
    assert int(optimizer.iterations) == 5
    assert train() == first


def test_a_model_that_shares_layers_has_its_optimizer_set_back():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6,))
    trunk = keras.layers.Dense(8, "tanh", name="trunk")(inputs)
    actor = keras.Model(inputs, keras.layers.Dense(2, name="actor")(trunk))
    critic = keras.Model(inputs, keras.layers.Dense(1, name="critic")(trunk))
    for model in actor, critic:
        model.compile(keras.optimizers.Adam(0.01), "mse")
    actor.fit(X, Y, 8, verbose=0)
    critic.fit(X, Y[:, :1], 16, verbose=0)
    masks = Masks(actor)
    snapshot, before = masks.snapshot(), state(critic.optimizer)
    assert [kind for kind, _ in snapshot.optimizers] == ["Adam", "Adam"]
    critic.fit(X, Y[:, :1], 16, verbose=0)
    assert masks.rewind(snapshot).slots == "snapshot"
    assert (int(actor.optimizer.iterations), int(critic.optimizer.iterations)) == (4, 2)
    for one, other in zip(state(critic.optimizer), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_replaced_optimizer_is_not_one_of_the_model():
    model, old = network(), keras.optimizers.SGD(0.01)
    model.compile(old, "mse")
    masks = Masks(model)
    model.fit(X, Y, 8, epochs=2, verbose=0)
    model.compile(keras.optimizers.SGD(0.01), "mse")
    model.fit(X, Y, 8, verbose=0)
    snapshot = masks.snapshot()
    assert (len(snapshot.optimizers), snapshot.step, int(old.iterations)) == (1, 4, 8)


def test_an_optimizer_of_other_weights_is_left_alone():
    model, other, optimizer = network(), network(), keras.optimizers.Adam(0.01)
    masks = Masks(model)
    loop(other, optimizer)()
    assert masks.snapshot().optimizers == ()
