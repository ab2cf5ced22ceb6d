from __future__ import annotations

import keras
import numpy as np
import pytest

from demo.digits import digits
from demo.keras_network import accuracy, leaves, network


def test_all_runs_start_from_the_same_values():
    for first, second in zip(network().get_weights(), network().get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_leaves_are_the_layers_in_forward_order():
    names = ["conv1", "conv2", "conv1", "conv2", "hidden", "logits"]
    assert [layer.name for layer in leaves(network())] == names


def test_accuracy_is_the_share_of_the_test_digits_that_are_right():
    data = digits()
    model = network()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True), metrics=["accuracy"])
    guesses = model.predict(data.test[0], verbose=0).argmax(1)
    assert accuracy(model, data) == pytest.approx((guesses == data.test[1]).mean())
