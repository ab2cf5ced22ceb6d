"""Masks and held values go wherever a model goes."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.masked import Masked, MaskedDense

# Keras before 3.10 says so of its own variables.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(16, 6)).astype("f"), RNG.normal(size=(16, 3)).astype("f")


def network():
    model = keras.Sequential(
        [
            keras.Input((6,)),
            MaskedDense(5, "relu", kernel_regularizer="l2", name="first"),
            Masked(layers.BatchNormalization(), name="norm"),
            Masked(keras.Sequential([layers.Dense(4), layers.Dense(3)]), name="block"),
        ]
    )
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), "mse")
    return model


def weights(model):
    return [weight for layer in model.layers for weight in layer.masked_weights()]


@pytest.fixture(scope="module")
def held():
    """Nothing prunes it further; what is saved is compared with what it is then."""
    model = network()
    model.fit(X, Y, verbose=0)
    for weight in weights(model)[:-2]:
        weight.prune(RNG.random(weight.shape) > 0.2)
        weight.freeze((RNG.random(weight.shape) > 0.4) | ~weight.kept)
    # The trained variables are now other than the effective weights.
    model.fit(X, Y, verbose=0)
    return model


def check(model, held, *, held_only=False):
    for one, other in zip(weights(model), weights(held), strict=True):
        np.testing.assert_array_equal(one.kept, other.kept)
        np.testing.assert_array_equal(one.trainable, other.trainable)
        where = ~(other.kept & other.trainable) | (not held_only)
        assert one.numpy()[where].tobytes() == other.numpy()[where].tobytes()
    if not held_only:
        np.testing.assert_array_equal(model.predict(X, verbose=0), held.predict(X, verbose=0))


def still_holds(model):
    before = [weight.numpy() for weight in weights(model)]
    model.fit(X, Y, epochs=3, verbose=0)
    for weight, value in zip(weights(model), before, strict=True):
        where = ~(weight.kept & weight.trainable)
        assert weight.numpy()[where].tobytes() == value[where].tobytes()


def test_the_keras_file(held, tmp_path):
    held.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    check(loaded, held)
    still_holds(loaded)


def test_a_file_of_weights_into_a_model_that_is_compiled_already(held, tmp_path):
    held.save_weights(tmp_path / "model.weights.h5")
    model = network()
    model.fit(X, Y, verbose=0)
    model.predict(X, verbose=0)
    model.load_weights(tmp_path / "model.weights.h5")
    check(model, held)
    still_holds(model)


def test_a_checkpoint(held, tmp_path):
    path = tf.train.Checkpoint(model=held).save(tmp_path / "checkpoint")
    model = network()
    tf.train.Checkpoint(model=model).restore(path).expect_partial()
    check(model, held)


def test_lists_of_weights(held):
    model = network()
    model.set_weights(held.get_weights())
    check(model, held)


def test_a_backup(held, tmp_path):
    class Killed(Exception):
        pass

    class Kill(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise Killed

    backup = keras.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(Killed):
        held.fit(X, Y, epochs=3, verbose=0, callbacks=[backup, Kill()])
    model = network()
    backup = keras.callbacks.BackupAndRestore(tmp_path)
    model.fit(X, Y, epochs=1, initial_epoch=1, verbose=0, callbacks=[backup])
    check(model, held, held_only=True)


def test_an_export(held, tmp_path):
    held.export(tmp_path / "export", verbose=False)
    served = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(served.serve(X), held.predict(X, verbose=0), rtol=1e-6)


def test_a_clone_draws_new_values_for_what_is_not_held(held):
    clone = keras.models.clone_model(held)
    check(clone, held, held_only=True)
    kernel, other = weights(clone)[0], weights(held)[0]
    free = other.kept & other.trainable
    assert (kernel.numpy()[free] != other.numpy()[free]).all()
    clone.compile("sgd", "mse")
    still_holds(clone)
    clone.set_weights(held.get_weights())
    check(clone, held)
    # The clone's masks are its own.
    clone.layers[0].regrow("kernel")
    assert not weights(held)[0].kept.all()


def test_a_clone_of_a_model_without_masks():
    model = network()
    assert [layer.get_config()["masks"] for layer in model.layers] == [None] * 3
    assert all(weight.kept.all() for weight in weights(keras.models.clone_model(model)))


def test_a_config_as_text_of_a_layer_that_is_not_built_yet(held):
    config = json.loads(json.dumps(held.layers[0].get_config()))
    assert set(config["masks"]) == {"kernel", "bias"}
    layer = MaskedDense.from_config(config)
    assert layer.get_config()["masks"] == config["masks"]
    assert layer.name == "first"
    layer.build((None, 6))
    np.testing.assert_array_equal(layer.masked_weight("kernel").kept, weights(held)[0].kept)
    assert layer.layer.kernel_regularizer is not None


def test_a_file_of_a_layer_with_a_policy(tmp_path):
    model = keras.Sequential([keras.Input((3,)), MaskedDense(2, dtype="mixed_bfloat16")])
    model.layers[0].freeze_kernel()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].compute_dtype == loaded.layers[0].layer.compute_dtype == "bfloat16"
    check_config = loaded.layers[0].get_config()
    assert check_config["masks"] == model.layers[0].get_config()["masks"]


def test_masks_of_another_layer(held):
    config = held.layers[0].get_config()
    layer = MaskedDense.from_config({**config, "name": "other", "use_bias": False})
    with pytest.raises(InvalidArgument) as error:
        layer.build((None, 6))
    assert str(error.value) == (
        "Could not build 'other': expected masks of ['kernel'], got masks of ['bias']. Pass masks= "
        "of a layer of the same kind."
    )
    layer = MaskedDense.from_config({**config, "units": 50})
    with pytest.raises(InvalidArgument) as error:
        layer.build((None, 6))
    assert str(error.value) == (
        "Could not read the masks of 'first/kernel' from its config: expected 38 bytes, got 4. "
        "Build the layer with the shape and dtype that the masks were made for, or pass "
        "masks=None."
    )
