from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.measure import runner as module
from tb_pastnet.keras.measure.runner import EAGER


def test_a_function_reads_what_is_there_when_it_is_called():
    weight = tf.Variable([1.0, 2.0])
    doubled = EAGER.function(lambda: 2 * weight)
    both = EAGER.function(lambda: [weight + 1, 3 * weight])
    assert doubled().numpy().tolist() == [2.0, 4.0]
    weight.assign([5.0, 6.0])
    assert doubled().numpy().tolist() == [10.0, 12.0]
    assert [one.numpy().tolist() for one in both()] == [[6.0, 7.0], [15.0, 18.0]]


def test_a_list_of_one_stays_a_list():
    weight = tf.Variable(1.0)
    assert [one.numpy() for one in EAGER.function(lambda: [weight + 1])()] == [2.0]


def test_what_is_fetched_is_an_array_of_its_own():
    weight = tf.Variable([1.0, 2.0])
    read = EAGER.fetch(lambda: [tf.identity(weight)])
    (before,) = read()
    weight.assign_add([1.0, 1.0])
    assert before.tolist() == [1.0, 2.0]
    assert isinstance(before, np.ndarray)


def test_a_function_writes_and_chooses():
    weight, count = tf.Variable(1.0), tf.Variable(0)

    def build():
        written = tf.cond(weight > 0, lambda: count.assign_add(1, read_value=False), tf.no_op)
        with tf.control_dependencies([written]):
            return tf.constant(True)

    run = EAGER.function(build)
    for value in (1.0, -1.0, 2.0):
        weight.assign(value)
        assert bool(run())
    assert count.numpy() == 2


def test_code_without_variables_runs_too():
    assert EAGER.function(lambda: tf.constant(3.0))().numpy() == 3.0
    assert EAGER.function(list)() == []


@pytest.mark.parametrize("devices", [["GPU:0"], ["CPU:0", "GPU:0"], ["CPU:0", "CPU:1"]])
def test_what_is_not_on_one_processor_is_called_as_tensorflow_does(devices):
    captured = [SimpleNamespace(device=f"/job:localhost/device:{name}") for name in devices]
    function = SimpleNamespace(captured_inputs=captured)
    assert module._quick(function) is function


def test_a_tape_around_it_sees_no_more_than_reads():
    weight = tf.Variable(3.0)
    read = EAGER.function(lambda: [tf.identity(weight)])
    with tf.GradientTape() as tape:
        loss = weight * weight
        read()
    assert tape.gradient(loss, weight).numpy() == 6.0
