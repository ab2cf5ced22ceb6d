from __future__ import annotations

import math
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from tb_pastnet.train.measure.rates import rate_of

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
        (keras.optimizers.SGD(SCHEDULE), 0.5),
        (keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25)), 0.25),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_user_has_at_hand(source, rate):
    assert rate_of(source, None)(10) == pytest.approx(rate)


def test_the_optimizer_of_the_model_of_now():
    model = SimpleNamespace()
    rate = rate_of(None, model)
    assert math.isnan(rate(1))
    model.optimizer = keras.optimizers.SGD(0.5)
    assert rate(1) == 0.5
    model.optimizer.learning_rate = 0.25
    assert rate(1) == 0.25
