"""Checkpoints of the past, and pasts that hang on a model which is saved."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork
from tests.twins import same, train, values

X = tf.constant(np.random.default_rng(0).normal(size=(5, 4)), tf.float32)


def make():
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.BatchNormalization()])


def test_a_checkpoint_has_the_past_values_alone(tmp_path):
    model = make()
    past = PastNetwork(model)
    train(model, X)
    path = tf.train.Checkpoint(past=past).save(tmp_path / "past")
    expected = past(X)
    sizes = [
        int(np.prod(shape))
        for name, shape in tf.train.list_variables(path)
        if name.endswith("VARIABLE_VALUE") and name.startswith("past/")
    ]
    assert sum(sizes) == sum(value.size for value in values(model))
    train(model, X)
    past.sync()
    now = values(model)
    assert not same(past(X), expected)
    tf.train.Checkpoint(past=past).restore(path).assert_consumed()
    assert same(past(X), expected)
    for one, value in zip(model.variables, now, strict=True):
        np.testing.assert_array_equal(one, value)


def test_into_another_process(tmp_path):
    model = make()
    past = PastNetwork(model)
    train(model, X)
    path = tf.train.Checkpoint(past=past, model=model).save(tmp_path / "both")
    again = make()
    later = PastNetwork(again)
    train(again, X, 3)
    tf.train.Checkpoint(past=later, model=again).restore(path).assert_consumed()
    assert same(later(X), past(X))
    assert same(again(X), model(X))


class WithPast(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.network = make()
        self.yesterday = PastNetwork(self.network)

    def call(self, x, training=False):
        return self.network(x, training=training)

    def get_config(self):
        return {}


def test_a_model_that_has_its_past_as_an_attribute(tmp_path):
    model, plain = WithPast(), make()
    model(X)
    assert len(model.variables) == len(plain.variables)
    assert len(model.weights) == len(plain.weights)
    assert len(model.trainable_variables) == len(plain.trainable_variables)
    train(model, X)
    kept = [one.numpy() for one in model.yesterday.past.past]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(
        tmp_path / "model.keras", custom_objects={"WithPast": WithPast}
    )
    assert same(loaded(X), model(X))
    model.save_weights(tmp_path / "model.weights.h5")
    other = WithPast()
    other(X)
    other.load_weights(tmp_path / "model.weights.h5")
    assert same(other(X), model(X))
    for one, value in zip(model.yesterday.past.past, kept, strict=True):
        np.testing.assert_array_equal(one, value)


def test_an_export_of_a_model_with_its_past(tmp_path):
    model = WithPast()
    model(X)
    train(model, X)
    model.export(tmp_path, verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.serve(X), model(X), rtol=1e-5, atol=1e-6)
    assert len(loaded.variables) == len(model.variables)


def test_a_saved_function_that_calls_the_past(tmp_path):
    model = make()
    past = PastNetwork(model)
    train(model, X)
    module = tf.Module()
    module.past, module.model = past, model
    module.change = tf.function(
        lambda x: model(x) - past(x), input_signature=[tf.TensorSpec([None, 4])]
    )
    expected = module.change(X)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.change(X), expected, rtol=1e-5, atol=1e-6)
    assert np.abs(expected).max() > 0


def test_a_copy_of_the_model_has_nothing_of_the_past():
    model = make()
    past = PastNetwork(model)
    expected = past(X)
    train(keras.models.clone_model(model), X)
    assert same(past(X), expected)
