"""`trainable` of layers, variables and what is around them, as of each variable."""

from __future__ import annotations

import keras
import pytest

from tb_pastnet.keras.model.tf_weights import find_variables
from tb_pastnet.keras.model.weights import TrainableFlags


@pytest.fixture
def model():
    inner = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()]
    )
    return keras.Sequential([keras.Input((3,)), inner, keras.layers.Dense(2)])


def free(model):
    found = find_variables(model)
    switches = TrainableFlags(found)
    flags = switches.read()
    return {one.id.split("/", 1)[-1] for one, flag in zip(found, flags, strict=True) if flag}


ALL = {
    "dense/kernel", "dense/bias", "batch_normalization/gamma", "batch_normalization/beta",
    "batch_normalization/moving_mean", "batch_normalization/moving_variance", "kernel", "bias",
}  # fmt: skip
STATISTICS = {name for name in ALL if "moving" in name}


def test_a_layer_a_variable_and_what_is_around_them(model):
    assert free(model) == ALL
    inner, last = model.layers
    inner.layers[0].trainable = False
    assert free(model) == ALL - {"dense/kernel", "dense/bias"}
    inner.layers[0].trainable = True
    inner.layers[0].bias.trainable = False
    assert free(model) == ALL - {"dense/bias"}
    last.trainable = False
    assert free(model) == ALL - {"dense/bias", "kernel", "bias"}
    inner.trainable = False
    assert free(model) == STATISTICS


def test_flags_are_equal_where_nothing_was_switched(model):
    switches = TrainableFlags(find_variables(model))
    before = switches.read()
    assert switches.read() == before
    model.layers[1].trainable = False
    assert switches.read() != before


def test_at_a_glance_are_layers_seen_and_what_is_around_them_but_not_variables(model):
    switches = TrainableFlags(find_variables(model))
    inner, last = model.layers
    for one, glimpsed in ((last.bias, False), (inner, True), (last, True)):
        glance, flags = switches.quick_key(), switches.read()
        one.trainable = not one.trainable
        assert (switches.quick_key() != glance) is glimpsed
        assert switches.read() != flags


def test_each_layer_is_asked_once():
    asked = []

    class Layer(keras.layers.Dense):
        @property
        def trainable(self):
            asked.append(self.name)
            return True

        @trainable.setter
        def trainable(self, value):
            pass

    model = keras.Sequential([keras.Input((3,)), Layer(2)])
    switches = TrainableFlags(find_variables(model))
    asked.clear()
    switches.quick_key()
    assert len(asked) == 1
    assert TrainableFlags([]).read() == []
