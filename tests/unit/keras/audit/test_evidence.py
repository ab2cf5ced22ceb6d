"""What the causes of violations are told from, in trainings whose logs are read back."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet

KERNEL = "dense/kernel"
STEPS = 6


class Leaky(keras.Model):
    """Trains one kernel. Channels of `masked` get no gradient; those of `restored` are put back."""

    def __init__(self, shape, masked=(), restored=()):
        inputs = keras.Input((shape[0],))
        layer = keras.layers.Dense(shape[1], use_bias=False, name="dense")
        super().__init__(inputs, layer(inputs))
        kernel = np.random.default_rng(0).normal(size=shape).astype("f")
        layer.kernel.assign(kernel)
        every = np.arange(shape[1])
        self.free = tf.Variable(~np.isin(every, masked), trainable=False)
        self.moving = ~np.isin(every, restored)
        self.masking = tf.Variable(0.0, trainable=False)

    def train_step(self, data):
        kernel = self.weights[0]
        # As large for each element, but changing sign from step to step, so that no slot just fades.
        sign = 1.0 - 2.0 * tf.cast(self.optimizer.iterations % 2, "float32")
        gradient = sign * tf.ones(kernel.shape)
        stopped = self.masking * tf.cast(~self.free, "float32")
        before = tf.identity(kernel.value)
        self.optimizer.apply([gradient * (1.0 - stopped)], [kernel])
        kernel.value.assign(tf.where(self.moving, kernel.value, before))
        return {"loss": tf.constant(0.0)}


def batches(model, steps):
    return np.zeros((steps, model.inputs[0].shape[1]), "f"), np.zeros((steps, 1), "f")


def causes(tmp_path):
    """The causes by channel, of the only run."""
    (run,) = pastnet.read(tmp_path).runs.values()
    return {one.channel: one.cause for one in run.violations}


def fit(model, steps=STEPS, **settings):
    x, y = batches(model, steps)
    model.fit(x, y, batch_size=1, shuffle=False, verbose=0, **settings)


def leak(tmp_path, model, held):
    """Trains, declares that elements are held and masks their gradients, and trains on."""
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    fit(model, 3)
    masks = pastnet.Masks(model, enforce=False)
    masks.freeze(KERNEL, ~held)
    model.masking.assign(1.0)
    fit(model, callbacks=[pastnet.PastNetCallback(tmp_path, every=1)])
    return causes(tmp_path)


def columns(shape, *channels):
    return np.broadcast_to(np.isin(np.arange(shape[1]), channels), shape)


@pytest.mark.parametrize("shape", [(6, 8), (1 << 16, 4)], ids=["all", "sampled"])
def test_only_slots_of_violated_channels_say_whether_momentum_moved_them(tmp_path, shape):
    model = Leaky(shape, masked=[1], restored=[0])
    assert leak(tmp_path, model, columns(shape, 0, 1)) == {1: "momentum"}


def test_a_channel_that_is_not_in_the_sample_is_taken_to_be_like_the_others(tmp_path):
    shape, moving = (1, 1000), 1
    every = np.arange(shape[1])
    model = Leaky(shape, masked=every, restored=every[every != moving])
    assert leak(tmp_path, model, np.ones(shape, bool)) == {moving: "momentum"}


def test_few_held_elements_of_a_large_variable_are_found(tmp_path):
    shape = (200_000, 1)
    held = np.zeros(shape, bool)
    held[[1, 4, 7, 100_003]] = True  # none of them a multiple of the stride
    assert leak(tmp_path, Leaky(shape, masked=[0]), held) == {0: "momentum"}


def test_rates_of_a_replaced_optimizer_are_its_own(tmp_path):
    model = Leaky((6, 8), masked=range(8))
    model.masking.assign(1.0)
    model.compile(keras.optimizers.SGD(0.5), "mse")
    fit(model, 30)
    pastnet.Masks(model, enforce=False).freeze(KERNEL)
    record = pastnet.PastNetCallback(tmp_path, every=4)
    fit(model, 20, callbacks=[record])
    assert causes(tmp_path) == {}
    model.compile(keras.optimizers.SGD(0.05, weight_decay=0.1), "mse")
    fit(model, 20, callbacks=[record])
    assert causes(tmp_path) == dict.fromkeys(range(8), "weight_decay")


class Net(tf.Module):
    """Two weights without a model of Keras."""

    def __init__(self):
        super().__init__()
        self.first = tf.Variable(tf.ones((3, 2)), name="first")
        self.second = tf.Variable(tf.ones((3, 2)), name="second")


def step_of(net, optimizer):
    @tf.function
    def step():
        optimizer.apply([tf.ones((3, 2))] * 2, [net.first, net.second])

    return step


def test_updates_around_the_masks_are_those_of_the_optimizer_they_are_held_on(tmp_path):
    net, optimizer = Net(), keras.optimizers.SGD(0.1)
    step = step_of(net, optimizer)
    step()
    masks = pastnet.Masks(net, optimizer)
    masks.freeze("first")
    with pastnet.Recorder(tmp_path, net, every=1, masks=masks) as recorder:
        for at in range(4):
            step()
            recorder.record(at)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {(one.variable, one.cause) for one in run.violations} == {("first", "bypassed")}


def test_masks_of_an_inner_model_are_in_force_in_the_steps_of_the_outer(tmp_path):
    inner = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, name="inner")])
    inputs = keras.Input((6,))
    outer = keras.Model(inputs, keras.layers.Dense(2)(inner(inputs)))
    outer.compile("adam", "mse")
    x, y = np.ones((8, 6), "f"), np.ones((8, 2), "f")
    outer.fit(x, y, batch_size=2, verbose=0)
    masks = pastnet.Masks(inner)
    masks.prune_smallest(0.5)
    record = pastnet.PastNetCallback(tmp_path, every=1)
    # Later it prunes in the middle of `fit`.
    for sparsity, start in ((0.5, 0), (0.75, 10)):
        pruning = pastnet.PruningCallback(masks, pastnet.OneShot(sparsity, start), every=1)
        outer.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[pruning, record])
    record.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert not run.notes
    assert not run.violations
    assert masks.zeros() == masks.sparsity() == 0.75


def test_a_step_of_the_outer_model_from_before_masks_goes_around_them(tmp_path):
    inner = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, name="inner")])
    inputs = keras.Input((6,))
    outer = keras.Model(inputs, inner(inputs))
    outer.compile(keras.optimizers.SGD(0.1), "mse")

    def step():
        weights = outer.trainable_variables
        outer.optimizer.apply([tf.ones_like(each) for each in weights], weights)

    old = tf.function(step)
    old()
    pastnet.Masks(inner).freeze("inner/kernel")
    with pastnet.Recorder(tmp_path, outer, every=1) as recorder:
        for number, run in enumerate((tf.function(step), old)):
            run()
            recorder.record(number)
    (logged,) = pastnet.read(tmp_path).runs.values()
    assert {each.cause for each in logged.violations} == {"bypassed"}


def test_a_step_that_knows_only_the_masks_of_before_goes_around_the_new_ones(tmp_path):
    net, optimizer = Net(), keras.optimizers.SGD(0.1)
    masks = pastnet.Masks(net, optimizer)
    masks.freeze("first")
    step = step_of(net, optimizer)
    step()
    masks.freeze("second")
    with pastnet.Recorder(tmp_path, net, every=1, masks=masks) as recorder:
        for at in range(4):
            step()
            recorder.record(at)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {(one.variable, one.cause) for one in run.violations} == {("second", "bypassed")}
