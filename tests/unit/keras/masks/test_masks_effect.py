"""When a change of a mask takes effect: at once, and after a variable's first mask never by a retrace."""

from __future__ import annotations

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.keras.masks.carried import attached
from tb_pastnet.keras.masks.optimizers import hook_of
from tests.masked import SHAPES, bits, data, free, held_bits, hold_some, network, values

MOVING = {"momentum": 0.9, "weight_decay": 0.1}


class Traces:
    """Counts how often a model's training step is traced."""

    def __init__(self, model):
        self.count = 0
        inner = model.compute_loss

        def compute_loss(*args, **kwargs):
            self.count += bool(kwargs.get("training", True))
            return inner(*args, **kwargs)

        model.compute_loss = compute_loss


def sgd():
    return keras.optimizers.SGD(0.05, **MOVING)


def fit(model, epochs=2, **more):
    model.fit(*data(32), batch_size=8, epochs=epochs, shuffle=False, verbose=0, **more)


@pytest.fixture
def model():
    return network(optimizer=sgd())


def test_fit_that_is_traced_takes_changes_without_a_retrace(model):
    masks = pastnet.Masks(model)
    hold_some(masks)
    traces = Traces(model)
    fit(model)
    once = traces.count
    assert once > 0
    masks.prune("one/kernel", channels=[4])
    masks.freeze("two/kernel", trainable=np.indices((5, 3))[0] > 1)
    masks.thaw("one/bias")
    masks.regrow("one/bias")
    held, before = held_bits(model, masks), values(model)
    fit(model)
    assert traces.count == once
    assert held_bits(model, masks) == held
    assert (values(model)["one/bias"] != before["one/bias"]).all()
    assert not values(model)["one/kernel"][:, 4].any()


@pytest.mark.parametrize("executions", [1, 4])
def test_the_first_mask_of_a_variable_makes_fit_trace_again(executions):
    """Also in the middle of a fit, from a callback."""
    model = network(optimizer=sgd(), steps_per_execution=executions)
    masks = pastnet.Masks(model)
    traces, seen = Traces(model), []

    class Change(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            number = int(model.optimizer.iterations)
            seen.append((number, traces.count, held_bits(model, masks)))
            if number == 8:
                hold_some(masks)
            if number == 16:
                masks.prune("one/kernel", channels=[4])

    fit(model, 6, callbacks=[Change()])
    assert [number for number, _, _ in seen] == list(range(executions, 25, executions))
    first = seen[0][1]
    counts = {number: count for number, count, _ in seen}
    assert counts[8] == first
    assert counts[12] == counts[16] == counts[24] > first
    after = [held for number, _, held in seen if 8 < number <= 16]
    assert all(held == after[0] for held in after)
    assert all(held == seen[-1][2] for number, _, held in seen if number > 16)


def test_predict_and_evaluate_that_are_traced_take_changes(model):
    x, y = data(8)
    before = model.predict(x, verbose=0)
    model.evaluate(x, y, verbose=0)
    masks = pastnet.Masks(model)
    masks.prune("two/kernel", channels=[1])
    masks.prune("two/bias", channels=[1])
    after = model.predict(x, verbose=0)
    assert not after[:, 1].any()
    np.testing.assert_array_equal(after[:, [0, 2]], before[:, [0, 2]])
    masks.prune("two/kernel", kept=np.indices((5, 3))[1] == 0)
    loss = model.evaluate(x, y, verbose=0)
    kernel, bias = model.layers[1].get_weights()
    hidden = np.tanh(x @ model.layers[0].get_weights()[0] + model.layers[0].get_weights()[1])
    assert loss == pytest.approx(np.mean((hidden @ kernel + bias - y) ** 2), rel=1e-5)
    assert not kernel[:, 1:].any()


def own_step(model, optimizer):
    x, y = map(tf.constant, data(8))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    return step


def test_an_own_step_that_is_traced_takes_changes(model):
    masks = pastnet.Masks(model)
    hold_some(masks)
    step = own_step(model, model.optimizer)
    step()
    traced = step.experimental_get_tracing_count()
    masks.prune("one/kernel", channels=[4])
    held = held_bits(model, masks)
    for _ in range(10):
        step()
    assert held_bits(model, masks) == held
    assert step.experimental_get_tracing_count() == traced


def test_counters_show_a_step_that_goes_around_the_masks(model):
    """A step of one's own that was traced too early can't be reached, but it is told from others."""
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    early = own_step(model, optimizer)
    early()
    masks = pastnet.Masks(model)
    hook = hook_of(optimizer)
    masks.prune("one/kernel", channels=[0])
    first = attached(model).masked["one/kernel"].generation
    early()
    assert int(optimizer.iterations) == 2
    assert int(hook.applied) == 0
    between = own_step(model, optimizer)
    between()
    assert int(hook.applied) == 1
    assert int(hook.generation) == first
    masks.prune("two/kernel", channels=[0])
    between()
    assert int(hook.applied) == 2
    assert int(hook.generation) == first < attached(model).masked["two/kernel"].generation
    late = own_step(model, optimizer)
    late()
    assert int(hook.generation) == first + 1


def test_compile_with_a_new_optimizer_goes_on_holding(model):
    masks = pastnet.Masks(model)
    hold_some(masks)
    fit(model)
    held = held_bits(model, masks)
    for optimizer in (keras.optimizers.AdamW(0.05), sgd()):
        model.compile(optimizer, "mse")
        fit(model)
        assert held_bits(model, masks) == held
        assert hook_of(optimizer) is not None
    masks.prune("two/kernel", channels=[1])
    fit(model)
    assert not values(model)["two/kernel"][:, :2].any()


def test_other_ways_of_training_with_a_new_optimizer_hold(model):
    masks = pastnet.Masks(model)
    hold_some(masks)
    held = held_bits(model, masks)
    x, y = data(8)
    model.compile(sgd(), "mse")
    model.train_on_batch(x, y)
    model.compile(sgd(), "mse")
    step = tf.function(lambda: model.train_step((tf.constant(x), tf.constant(y))))
    step()
    step()
    assert held_bits(model, masks) == held


def test_a_train_step_of_ones_own(model):
    class Mine(keras.Sequential):
        def train_step(self, given):
            x, y = given
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    mine = Mine([keras.Input((6,)), *model.layers])
    mine.compile(sgd(), "mse")
    masks = pastnet.Masks(mine)
    hold_some(masks)
    held = held_bits(mine, masks)
    fit(mine)
    mine.compile(sgd(), "mse")
    fit(mine)
    assert held_bits(mine, masks) == held


def test_masks_of_a_model_are_one(model):
    """Made twice, they are the same ones, and hold once."""
    pastnet.Masks(model).prune("one/kernel", channels=[0])
    again = pastnet.Masks(model)
    assert not again.kept["one/kernel"][:, 0].any()
    assert attached(model) is again.state


def test_a_replaced_optimizer_is_let_go(model):
    masks = pastnet.Masks(model)
    hold_some(masks)
    fit(model)
    for _ in range(3):
        model.compile(sgd(), "mse")
        fit(model, 1)
    gc.collect()
    for masked in attached(model).masked.values():
        assert [hook.optimizer for hook in masked.hooks] == [model.optimizer]


FRESH = {"SGD": [0.0], "Adam": [0.0, 0.0], "Adagrad": [0.1], "Ftrl": [0.0, 0.1]}


@pytest.mark.parametrize("name", FRESH)
def test_regrown_weights_train_from_zero_with_fresh_slots(name):
    more = {"momentum": 0.9} if name == "SGD" else {}
    model = network(optimizer=getattr(keras.optimizers, name)(0.05, **more))
    fit(model)
    masks = pastnet.Masks(model)
    masks.prune("two/kernel", channels=[0])
    masks.regrow("two/kernel", channels=[0])
    assert not values(model)["two/kernel"][:, 0].any()
    slots = [np.asarray(one) for one in model.optimizer.variables if tuple(one.shape) == (5, 3)]
    regrown = sorted(np.unique(slot[:, 0]).tolist() for slot in slots)
    assert regrown == [[np.float32(value).item()] for value in FRESH[name]]
    assert all(slot[:, 1:].all() for slot in slots)
    fit(model)
    assert values(model)["two/kernel"][:, 0].all()


def test_a_change_that_changes_nothing_asks_for_no_masks(model):
    masks = pastnet.Masks(model)
    masks.prune("one/kernel", kept=np.ones(SHAPES["one/kernel"]))
    masks.prune_below("one/kernel", 0.0)
    masks.thaw("one/kernel")
    masks.regrow("one/kernel")
    assert not attached(model).masked


def test_masks_that_were_only_declared_hold_once_they_are_enforced(model):
    declared = pastnet.Masks(model, enforce=False)
    hold_some(declared)
    declared_at = values(model)
    fit(model)
    assert declared.zeros() < declared.sparsity()
    masks = pastnet.Masks(model)
    assert masks.zeros() >= masks.sparsity() > 0
    held, before = held_bits(model, masks), values(model)
    # As they were when it was said that they are held.
    for name, value in declared_at.items():
        expected = np.where(masks.kept[name], value, np.float32(0))
        assert held[name] == bits(expected[~free(masks)[name]])
    fit(model)
    assert held_bits(model, masks) == held
    assert any((value != before[name]).any() for name, value in values(model).items())
