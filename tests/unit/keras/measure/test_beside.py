"""Single numbers that are read in one call with the weights."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.keras.measure.beside import Beside
from tb_pastnet.keras.measure.channel_pass import SWITCH, ChannelPass

AXIS = explicit_axis(-1, (3, 4), "w")


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("replace", [False, True])
def test_they_are_those_of_the_comparison(monkeypatch, fast, replace):
    monkeypatch.setenv(SWITCH, fast)
    rate, other = keras.Variable(0.5), tf.Variable(3.0, dtype=tf.float64)
    beside = Beside([rate, other])
    # A float16 weight is TensorFlow's, also where numba measures the others.
    weights = [tf.Variable(tf.ones((3, 4))), tf.Variable(tf.ones((3, 4), tf.float16))]
    measured = ChannelPass(weights, [AXIS, AXIS], beside=beside)
    for value in (0.25, 0.125):
        rate.assign(value)
        rows = measured.statistics(replace=replace)
        assert (beside.pop(rate), beside.pop(other)) == (value, 3.0)
        np.testing.assert_array_equal(rows[0], np.full(8, np.sqrt(3), np.float32))


def test_only_what_was_read_since_it_was_asked_for():
    rate = tf.Variable(0.5)
    beside = Beside([rate])
    assert beside.pop(rate) is None
    beside.hear(beside.tensors())
    assert beside.pop(tf.Variable(0.5)) is None
    assert (beside.pop(rate), beside.pop(rate)) == (0.5, None)
    assert Beside().tensors() == []
