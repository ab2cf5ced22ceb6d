from __future__ import annotations

import keras
import pytest
from keras import layers, losses

from tb_pastnet.keras.probe.measures import Classes, classes_of, loss_of

SOFTMAX, LOGITS = Classes(binary=False, logits=False), Classes(binary=False, logits=True)
SIGMOID, BINARY_LOGITS = Classes(binary=True, logits=False), Classes(binary=True, logits=True)


class Weighted(losses.SparseCategoricalCrossentropy):
    pass


@pytest.mark.parametrize(
    ("layer", "classes"),
    [
        (layers.Dense(3, activation="softmax"), SOFTMAX),
        (layers.Dense(1, activation="sigmoid"), SIGMOID),
        (layers.Conv2D(3, 1, activation="softmax"), SOFTMAX),
        (layers.Activation("softmax"), SOFTMAX),
        (layers.Activation(keras.activations.sigmoid), SIGMOID),
        (layers.Softmax(), SOFTMAX),
        (layers.Softmax(axis=1), None),
        (layers.Dense(3, activation="relu"), None),
        (layers.Dense(3, activation=lambda x: x), None),
        (layers.SimpleRNN(3, activation="softmax"), None),
        (layers.Flatten(), None),
    ],
)
def test_an_activation_tells(layer, classes):
    assert classes_of([layer], None) == classes
    assert classes_of([layers.Flatten(), layer], "mse") == classes


@pytest.mark.parametrize(
    ("loss", "classes"),
    [
        ("sparse_categorical_crossentropy", SOFTMAX),
        ("SparseCategoricalCrossentropy", SOFTMAX),
        (losses.categorical_crossentropy, SOFTMAX),
        (losses.SparseCategoricalCrossentropy(from_logits=True), LOGITS),
        (losses.SparseCategoricalCrossentropy(), SOFTMAX),
        (losses.CategoricalCrossentropy(from_logits=True), LOGITS),
        (losses.CategoricalCrossentropy(from_logits=True, axis=1), None),
        (losses.CategoricalFocalCrossentropy(from_logits=True), LOGITS),
        (losses.BinaryCrossentropy(from_logits=True), BINARY_LOGITS),
        (losses.BinaryFocalCrossentropy(), SIGMOID),
        ("binary_crossentropy", SIGMOID),
        (Weighted(from_logits=True), LOGITS),
        (losses.MeanSquaredError(), None),
        ("mse", None),
        (lambda y, p: p, None),
        (None, None),
    ],
)
def test_a_crossentropy_tells(loss, classes):
    assert classes_of([layers.Dense(3)], loss) == classes


def test_an_activation_goes_before_a_loss():
    softmax = layers.Dense(3, activation="softmax")
    assert classes_of([softmax], losses.BinaryCrossentropy(from_logits=True)) == SOFTMAX


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("mse", ["mse", "mse"]),
        (["mse", "mae"], ["mse", "mae"]),
        (["mse", None], ["mse", None]),
        ({"a": "mse", "b": "mae"}, ["mse", "mae"]),
        ({"b": "mae"}, [None, "mae"]),
        (["mse", "mae", "mape"], [None, None]),
        (None, [None, None]),
    ],
)
def test_each_output_has_its_loss(loss, expected):
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    assert [loss_of(model, at, [name], 2) for at, name in enumerate("ab")] == [None, None]
    model.compile("sgd", loss)
    assert [loss_of(model, at, [name], 2) for at, name in enumerate("ab")] == expected
    assert loss_of(object(), 0, ["a"], 1) is None
