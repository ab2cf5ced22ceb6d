from __future__ import annotations

import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet
from tb_pastnet import Recorder
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.numba_switch import SWITCH
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tests.sources import source_of

AXIS = explicit_axis(-1, (3, 4), "w")
SCHEDULE = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.1)


@pytest.mark.parametrize(
    ("source", "rate"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (tf.Variable(0.25), 0.25),
        (keras.Variable(0.25), 0.25),
        (lambda: 0.25, 0.25),
        (SCHEDULE, 0.05),
        (keras.optimizers.SGD(0.25), 0.25),
        ([keras.optimizers.SGD(0.25)], 0.25),
        (keras.optimizers.SGD(SCHEDULE), 0.5),
        (keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25)), 0.25),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_user_has_at_hand(source, rate):
    assert LearningRate(source)(10) == pytest.approx(rate)


def test_the_optimizer_of_the_model_of_now():
    model = SimpleNamespace()
    rate = LearningRate(None, model)
    assert math.isnan(rate(1))
    model.optimizer = keras.optimizers.SGD(0.5)
    assert rate(1) == 0.5
    model.optimizer.learning_rate = 0.25
    assert rate(1) == 0.25


def test_a_single_optimizer_is_found_under_any_name():
    model = SimpleNamespace(own=keras.optimizers.SGD(0.5))
    rate = LearningRate(None, model)
    assert rate(1) == 0.5
    assert len(rate.tensors()) == 1


def heard(source, model=None):
    rate = LearningRate(source, model)
    rate.hear(rate.tensors())
    return rate


@pytest.mark.parametrize(
    ("source", "held"),
    [
        (0.25, 0),
        (None, 0),
        (lambda: 1 / 0, 0),
        (SCHEDULE, 0),
        (keras.optimizers.SGD(SCHEDULE), 0),
        (tf.Variable(0.25), 1),
        (keras.Variable(0.25), 1),
        (keras.optimizers.SGD(0.25), 1),
        (keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25)), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_variables_that_hold_it_are_found_and_nothing_of_the_users_is_called(source, held):
    assert len(LearningRate(source).tensors()) == held


def test_what_was_read_with_the_weights_is_used_once():
    optimizer = keras.optimizers.SGD(0.5)
    model = SimpleNamespace(optimizer=optimizer)
    rate = heard(None, model)
    optimizer.learning_rate = 0.25
    assert (rate(1), rate(2)) == (0.5, 0.25)
    # Nor is it used for another optimizer.
    rate = heard(None, model)
    model.optimizer = keras.optimizers.SGD(0.125)
    assert rate(1) == 0.125


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("replace", [False, True])
def test_it_is_read_with_the_comparison(monkeypatch, fast, replace):
    monkeypatch.setenv(SWITCH, fast)
    variable = tf.Variable(0.5, dtype=tf.float64)
    rate = LearningRate(variable)
    # A float16 weight is TensorFlow's, also where numba measures the others.
    weights = [tf.Variable(tf.ones((3, 4))), tf.Variable(tf.ones((3, 4), tf.float16))]
    source = source_of(weights, [AXIS, AXIS], rate=rate)
    for value in (0.25, 0.125):
        variable.assign(value)
        rows = source.compare(0, replace=replace)
        variable.assign(7)
        assert (rate(1), rate(2)) == (value, 7)
        np.testing.assert_array_equal(rows[0], np.full(8, np.sqrt(3), np.float32))


def test_a_recorder_writes_the_rate_of_each_step(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    optimizer = keras.optimizers.SGD(1.0)
    model.compile(optimizer)
    with Recorder(tmp_path, model, every=1) as recorder:
        for step in range(1, 5):
            optimizer.learning_rate = 2.0**-step
            recorder.record(step)
        # One that was never known to it.
        model.compile(keras.optimizers.SGD(0.75))
        recorder.record(5)
    [run] = tb_pastnet.read(tmp_path).runs.values()
    assert run.learning_rates.tolist() == [0.5, 0.25, 0.125, 0.0625, 0.75]


def test_the_rate_of_a_schedule_is_that_of_the_update_that_was_made():
    optimizer = keras.optimizers.SGD(SCHEDULE)
    weight = keras.Variable([1.0])
    rate = LearningRate(optimizer)
    for made in range(3):
        optimizer.apply([tf.constant([1.0])], [weight])
        assert rate(made + 1) == pytest.approx(0.5 * 0.1 ** (made / 10))


@pytest.mark.parametrize(("second", "known"), [(0.1, True), (0.2, False)])
def test_several_optimizers_have_a_rate_where_it_is_the_same(second, known):
    model = SimpleNamespace(
        # What `compile` makes where it is told of none: it never steps.
        optimizer=keras.optimizers.RMSprop(0.7),
        parts={"a": keras.optimizers.SGD(0.1), "b": keras.optimizers.SGD(second)},
    )
    rate = LearningRate(None, model)
    assert math.isnan(rate(0))
    weight = keras.Variable([1.0])
    for optimizer in model.parts.values():
        optimizer.apply([tf.constant([1.0])], [weight])
    assert rate(1) == pytest.approx(0.1) if known else math.isnan(rate(1))


class Pair(keras.Model):
    """Two networks that two optimizers train, as in a GAN."""

    def __init__(self):
        super().__init__()
        norm = keras.layers.BatchNormalization(name="norm")
        self.one = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), norm], name="one")
        self.other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)], name="other")
        self.optimizers = [keras.optimizers.SGD(rate, name="own") for rate in (0.5, 0.25)]

    def train(self):
        for part, optimizer in zip((self.one, self.other), self.optimizers, strict=True):
            variables = part.trainable_variables
            optimizer.apply([tf.ones(v.shape) for v in variables], variables)


@pytest.mark.parametrize("given", [False, True])
def test_each_weight_has_the_rate_of_its_own_optimizer(tmp_path, given):
    pair = Pair()
    source = pair.optimizers if given else None
    with Recorder(tmp_path, pair, every=1, learning_rate=source) as recorder:
        for step in range(1, 4):
            pair.optimizers[1].learning_rate = 2.0**-step
            pair.train()
            recorder.record(step)
        pair.optimizers[0].learning_rate = 2.0**-3
        recorder.record(4)
    [run] = tb_pastnet.read(tmp_path).runs.values()
    rates = {name: variable.learning_rates.tolist() for name, variable in run.variables.items()}
    first, second = [0.5, 0.5, 0.5, 0.125], [0.5, 0.25, 0.125, 0.125]
    assert rates["one/dense/kernel"] == rates["one/dense/bias"] == first
    assert rates["other/dense/kernel"] == rates["other/dense/bias"] == second
    # What no optimizer trains has the rate of all, where that is one.
    common = [0.5, math.nan, math.nan, 0.125]
    np.testing.assert_array_equal(rates["one/norm/moving_mean"], common)
    np.testing.assert_array_equal(run.learning_rates, np.maximum(first, second))
