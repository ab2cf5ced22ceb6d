"""How often a network is traced for its past, and what the traces keep alive."""

from __future__ import annotations

import gc
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork


class Counting(layers.Layer):
    """Counts how often it is traced, with which shapes; it may need the size of the batch."""

    def __init__(self, fixed=False):
        super().__init__()
        self.fixed, self.shapes = fixed, []
        self.gain = self.add_weight(shape=(), initializer="ones")

    def call(self, x, training=False):
        self.shapes.append(tuple(x.shape))
        return tf.reshape(x, (int(x.shape[0]), -1)) * self.gain if self.fixed else x * self.gain


def made(fixed=False):
    layer = Counting(fixed)
    layer.build(())
    return layer, PastNetwork(layer)


def test_one_trace_of_a_functional_model_serves_all_batches():
    layer = Counting()
    model = keras.Sequential([keras.Input((5, 4)), layer])
    layer.shapes.clear()
    past = PastNetwork(model)
    for size in (2, 3, 7, 1):
        assert past(np.ones((size, 5, 4), "f")).shape == (size, 5, 4)
    tf.function(past)(tf.ones((9, 5, 4)))
    assert layer.shapes == [(None, 5, 4)]


@pytest.mark.filterwarnings("error:The structure of `inputs`")
def test_one_trace_of_a_model_with_one_named_input_serves_all_batches():
    layer, x = Counting(), keras.Input((5,), name="x")
    model = keras.Model({"x": x}, layer(x))
    layer.shapes.clear()
    past = PastNetwork(model)
    for size in (2, 3, 7):
        past({"x": tf.ones((size, 5))})
    assert layer.shapes == [(None, 5)]


def test_the_exact_shape_first_and_any_batch_after_a_second_size():
    layer, past = made()
    for size in (2, 2, 3, 4, 2):
        past(tf.ones((size, 5)))
    assert layer.shapes == [(2, 5), (None, 5)]
    past(tf.ones((2, 6)))  # another shape is exact again: many layers need to know it
    past(tf.ones((2, 5, 1)))
    assert layer.shapes[2:] == [(2, 6), (2, 5, 1)]
    past(tf.ones((9, 6)))
    assert layer.shapes[4:] == [(None, 6)]


def test_only_the_inputs_whose_batch_differs_are_opened():
    shapes = []
    w = tf.Variable(1.0)

    def network(x, table):
        shapes.append((tuple(x.shape), tuple(table.shape)))
        return tf.reduce_sum(x) * w + tf.reduce_sum(table)

    past = PastNetwork(network, example=(tf.ones((2, 3)), tf.ones((8, 3))))
    past(tf.ones((4, 3)), tf.ones((8, 3)))
    past(tf.ones((5, 3)), tf.ones((8, 3)))
    assert shapes == [((2, 3), (8, 3)), ((None, 3), (8, 3))]


def test_a_network_that_needs_the_size_of_the_batch():
    layer, past = made(fixed=True)
    for size in (2, 3, 4, 3):
        assert past(tf.ones((size, 5))).shape == (size, 5)
    assert layer.shapes == [(2, 5), (None, 5), (3, 5), (4, 5)]  # (None, 5) failed, once


def test_a_wrong_shape_does_not_spoil_the_next():
    layer = Counting()
    model = keras.Sequential([layer, layers.Dense(2)])
    model.build((None, 5))
    past = PastNetwork(model)
    with pytest.raises(ValueError, match="Could not trace"):
        past(tf.ones((2, 3)))
    layer.shapes.clear()
    for size in (2, 3, 4):
        past(tf.ones((size, 5)))
    assert len(layer.shapes) == 0


def test_an_example_of_any_length():
    layer = Counting()
    layer.build(())
    past = PastNetwork(layer, example=tf.TensorSpec([None, None, 3]))
    for length in range(1, 9):
        past(tf.ones((2, length, 3)))
    assert layer.shapes == [(None, None, 3)]


def test_one_trace_for_each_value_that_is_no_tensor():
    layer, past = made()
    x = tf.ones((2, 5))
    for training in (False, True, False, None, True):
        past(x, training=training)
    assert len(layer.shapes) == 2
    past(x.numpy())  # training=False unless it is given
    assert len(layer.shapes) == 2


def test_one_trace_for_each_dtype():
    w = tf.Variable(2.0)
    seen = []

    def network(x):
        seen.append(x.dtype.name)
        return tf.cast(x, tf.float32) * w

    past = PastNetwork(network, example=tf.constant(1))
    for value in (tf.constant(1), tf.constant(1.0), np.float64(1), tf.constant(2)):
        assert past(value).dtype == tf.float32
    assert seen == ["int32", "float32", "float64"]


def test_traces_are_bounded():
    w = tf.Variable(1.0)
    traced = []

    def network(x, factor):
        traced.append(factor)
        return x * w * factor

    past = PastNetwork(network, example=(tf.ones(2), 0))
    alive = []
    for factor in range(1, 70):
        trace, _ = past._calls.trace((tf.ones(2), factor), {})
        alive.append(weakref.ref(trace))
    del trace
    gc.collect()
    assert sum(one() is not None for one in alive) == 64
    past(tf.ones(2), 69)
    assert traced == list(range(70))
    assert past(tf.ones(2), 0).numpy().tolist() == [0.0, 0.0]  # traced again
    assert traced[-1] == 0


def test_shapes_are_bounded():
    layer, past = made()
    for length in range(1, 67):
        past(tf.ones((2, length)))
    layer.shapes.clear()
    past(tf.ones((2, 66)))
    past(tf.ones((2, 3)))
    assert layer.shapes == []
    past(tf.ones((2, 2)))
    assert layer.shapes == [(2, 2)]


def test_shapes_are_known_inside_of_a_function():
    _, past = made()
    shapes = []

    @tf.function
    def step(x):
        shapes.append(past(x).shape)
        return past(x)

    step(tf.ones((2, 5)))
    assert shapes == [(2, 5)]


def test_no_batch_is_kept_alive():
    w = tf.Variable(1.0)
    past = PastNetwork(tf.function(lambda d: d["x"] * w), example={"x": tf.zeros((2, 3))})
    refs = []
    for size in (2, 3, 4):
        batch = tf.random.normal((size, 3))
        outputs = past({"x": batch})
        refs += [weakref.ref(batch), weakref.ref(outputs)]
        del batch, outputs
    gc.collect()
    assert [ref() for ref in refs] == [None] * 6


def test_a_past_network_can_be_freed():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    past = PastNetwork(model)
    past(tf.ones((2, 3)))
    refs = [weakref.ref(past.past.past[0]), weakref.ref(past)]
    del past
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_threads():
    layer, past = made()
    layer.gain.assign(3.0)
    found, failed = [], []

    def call(number):
        try:
            outputs = [past(tf.fill((size, number), 2.0)) for size in range(1, 9)]
            found.extend(bool(np.all(one == 2.0)) for one in outputs)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in (2, 2, 3, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert found == [True] * 32
    assert len(layer.shapes) == len(set(layer.shapes)) == 4  # each exact, then for any batch
