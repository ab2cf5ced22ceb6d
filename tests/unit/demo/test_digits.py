from __future__ import annotations

import keras
import numpy as np
import pytest

from demo.digits import BATCH, STEPS_PER_EPOCH, accuracy, digits, leaves, network


def test_all_runs_start_from_the_same_values():
    for one, other in zip(network().get_weights(), network().get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_digits_are_split_into_full_batches_and_a_rest():
    data = digits()
    assert data.train[0].shape == (BATCH * STEPS_PER_EPOCH, 8, 8, 1)
    assert data.train[0].dtype == np.float32
    assert (data.train[0].min(), data.train[0].max()) == (0, 1)
    assert len(data.train[0]) + len(data.test[0]) == 1797
    assert set(data.test[1]) == set(range(10))


def test_leaves_are_the_layers_in_forward_order():
    names = ["conv1", "conv2", "conv1", "conv2", "hidden", "logits"]
    assert [layer.name for layer in leaves(network())] == names


def test_accuracy_is_the_share_of_the_test_digits_that_are_right():
    data = digits()
    model = network()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True), metrics=["accuracy"])
    guesses = model.predict(data.test[0], verbose=0).argmax(1)
    assert accuracy(model, data) == pytest.approx((guesses == data.test[1]).mean())
