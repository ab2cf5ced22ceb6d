"""Which variables are recorded: chosen, corrected, refused."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import InvalidArgument, UnknownName, UnsupportedBackend
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.model.weights import shown
from tests.naming import ids, plain, texts


class Unbuilt(keras.Model):
    def call(self, inputs):
        return inputs


def test_variables_can_be_chosen():
    model = plain()
    assert ids(model, variables=["second/kernel", "conv2d/bias"]) == [
        "conv2d/bias",
        "second/kernel",
    ]
    assert ids(model, variables="dense*/kernel") == ["dense/kernel", "dense_1/kernel"]
    assert ids(model, variables=model.layers[0].weights) == ["conv2d/kernel", "conv2d/bias"]
    assert ids(model, variables=[model.layers[2].kernel.value]) == ["second/kernel"]
    with pytest.raises(
        UnknownName, match=r"Could not find variable 'kernel': expected a name that"
    ):
        network(model, variables=["kernel"])
    with pytest.raises(
        InvalidArgument, match=r"Could not choose .*: expected a variable or layer of"
    ):
        network(model, variables=[tf.Variable(1.0)])


def test_axes_can_be_corrected():
    model = plain()
    text = texts(model, channel_axes={"second/kernel": (2, 3), "dense_1/bias": ()})
    assert (text["second/kernel"].channels, text["second/kernel"].axis) == (12, "(2, 3)")
    assert text["dense_1/bias"].channels == 1
    with pytest.raises(InvalidArgument, match=r"Could not use axis 4 of 'second/kernel' for its"):
        network(model, channel_axes={"second/kernel": 4})
    with pytest.raises(UnknownName, match=r"Could not find variable 'third/kernel'"):
        network(model, channel_axes={"third/kernel": 0})


def test_an_unbuilt_model_is_refused():
    with pytest.raises(
        InvalidArgument, match=r"Could not use model 'subclassed.*': expected a built"
    ):
        network(Unbuilt(name="subclassed"))
    with pytest.raises(InvalidArgument, match=r"expected a built model, got one without weights"):
        network(keras.Sequential([layers.Dense(3)]))


def test_nothing_left_to_record_is_refused():
    for model, settings in [
        ({"n": tf.Variable(1)}, {}),
        ({}, {}),
        (plain(), {"variables": []}),
        (keras.Sequential([keras.Input((2,)), layers.ReLU()]), {}),
    ]:
        with pytest.raises(InvalidArgument, match=r"expected at least one variable of floating"):
            network(model, **settings)


@pytest.mark.parametrize("model", [None, 3, [tf.Variable(1.0)], "model"])
def test_something_else_is_refused(model):
    with pytest.raises(InvalidArgument, match=r"expected a keras.Model, a tf.Module or a mapping"):
        network(model)


def test_values_instead_of_variables_are_refused():
    with pytest.raises(
        InvalidArgument, match=r"Could not use 'w' as a variable: expected a keras.Variable or"
    ):
        network({"w": tf.ones(3)})


def test_too_many_channels_are_skipped(monkeypatch):
    monkeypatch.setattr("tb_pastnet.format.limits.MAX_CHANNELS", 2)
    listed = network({"w": tf.Variable([1.0, 2.0, 3.0]), "b": tf.Variable([1.0])})
    assert [weight.name for weight in listed.weights] == ["b"]
    assert listed.skipped == (("w", "it has 3 channels, more than 2"),)
    assert len(listed.everything) == 2  # masks may hold it


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UnsupportedBackend, match=r"expected the TensorFlow backend, got 'jax'"):
        network(plain())


def test_a_model_is_named_in_errors_as_its_user_named_it():
    assert shown(keras.Sequential(name="net")) == "model 'net'"
    assert shown(object()) == "a object"
