"""Clones that are saved and loaded."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import clone_network
from tests.clones import NETWORKS, arrays, batch, equal, move

PLAIN = [
    "dense",
    "shared",
    "tied",
    "masked",
    "numbers",
    "text",
    pytest.param("recurrent", marks=pytest.mark.prove),
]
"""Those that Keras can save: also the originals."""


@pytest.fixture(scope="module", params=PLAIN)
def copied(request):
    """Its values are the same after each test."""
    inputs, outputs, x = NETWORKS[request.param]()
    copy = clone_network(inputs, outputs)
    move(copy)
    return copy, x


def test_as_a_keras_file(copied, tmp_path):
    copy, x = copied
    copy.save(tmp_path / "copy.keras")
    loaded = keras.models.load_model(tmp_path / "copy.keras")
    assert equal(loaded(x), copy(x))
    assert equal(loaded.get_weights(), copy.get_weights())


def test_weights_go_from_the_copy_to_the_original_and_back(tmp_path):
    inputs, outputs, x = NETWORKS["nested"]()
    model, copy = keras.Model(inputs, outputs), clone_network(inputs, outputs)
    move(copy)
    assert not equal(model(x), copy(x))
    copy.save_weights(tmp_path / "copy.weights.h5")
    model.load_weights(tmp_path / "copy.weights.h5")
    assert equal(model(x), copy(x))


def test_as_a_checkpoint(copied, tmp_path):
    copy, x = copied
    expected = arrays(copy(x))
    path = tf.train.Checkpoint(copy=copy).save(tmp_path / "copy")
    move(copy)
    tf.train.Checkpoint(copy=copy).restore(path).assert_existing_objects_matched()
    assert equal(copy(x), expected)


def test_as_a_saved_model(copied, tmp_path):
    copy, x = copied
    copy.export(tmp_path / "copy", verbose=False)
    assert equal(tf.saved_model.load(tmp_path / "copy").serve(x), copy(x))


@pytest.fixture
def function():
    weight, steps = tf.Variable([[2.0], [3.0]]), tf.Variable(0, trainable=False)

    @tf.function
    def call(x):
        steps.assign_add(1)
        return {"y": x @ weight}

    call(tf.constant(batch(2)))
    # Without it the variables would be gone.
    call.state = weight, steps
    return call


def test_a_function_as_a_saved_model(function, tmp_path):
    copy, x = clone_network(function), tf.constant(batch(2))
    copy.trainable_variables[0].assign([[4.0], [5.0]])
    tf.saved_model.save(copy, tmp_path / "copy")
    loaded = tf.saved_model.load(tmp_path / "copy")
    assert equal(loaded(x), {"y": x @ [[4.0], [5.0]]})
    assert equal(loaded.function(x), copy(x))
    again = clone_network(loaded)
    assert equal(again(x), copy(x))


def test_a_function_as_a_checkpoint(function, tmp_path):
    copy, x = clone_network(function), tf.constant(batch(2))
    path = tf.train.Checkpoint(copy=copy).save(tmp_path / "copy")
    other = clone_network(function)
    move(other)
    tf.train.Checkpoint(copy=other).restore(path).assert_consumed()
    assert equal(other(x), copy(x))


def test_a_saved_layer_of_a_clone_is_found_by_name(tmp_path):
    x = keras.Input((2,))
    y = layers.Dense(3, name="out")(layers.Dense(2, name="hidden")(x))
    copy = clone_network(x, y, name="copy")
    copy.save(tmp_path / "copy.keras")
    loaded = keras.models.load_model(tmp_path / "copy.keras")
    assert loaded.name == "copy"
    assert equal(loaded.get_layer("hidden").kernel.numpy(), copy.get_layer("hidden").kernel.numpy())
