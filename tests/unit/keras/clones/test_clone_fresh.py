"""Fresh weights: what the initializers draw."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import initializers, layers

from tb_pastnet import MaskedDense, clone_network
from tb_pastnet.errors import InvalidArgument
from tests.clones import NETWORKS, Scaled, batch, equal, move, values
from tests.sampled import sampled


def wide(**settings):
    x = keras.Input((40,))
    return x, layers.Dense(60, name="wide", **settings)(x)


def kernel(model):
    return model.get_layer("wide").kernel.numpy()


def test_unseeded_ones_are_drawn_anew_from_the_same_distribution():
    x, y = wide(kernel_initializer=initializers.RandomNormal(2.0, 0.5))
    original = kernel(keras.Model(x, y))
    one, two = (kernel(clone_network(x, y, weights="fresh")) for _ in range(2))
    for a, b in ((original, one), (original, two), (one, two)):
        assert not (a == b).any()
    # 2,400 numbers: the mean is within 6 standard errors, 6 * 0.5 / 49.
    assert abs(one.mean() - 2.0) < 0.062
    assert abs(one.std() - 0.5) < 0.045


def test_seeded_ones_are_the_same_again():
    x, y = wide(kernel_initializer=initializers.GlorotUniform(seed=4), bias_initializer="ones")
    model = keras.Model(x, y)
    start = values(model)
    move(model)
    copy = clone_network(x, y, weights="fresh")
    assert equal(values(copy), start)
    assert not equal(values(model), start)


def test_statistics_states_and_raw_variables_begin_anew():
    x = keras.Input((3,))
    scaled = Scaled(2.0)
    y = layers.BatchNormalization()(scaled(x))
    model = keras.Model(x, y)
    move(model)
    scaled.raw.assign([7.0, 8.0, 9.0])
    copy = clone_network(x, y, weights="fresh")
    names = {v.path.partition("/")[2]: v.numpy().tolist() for v in copy.layers[2].variables}
    assert names == {
        "gamma": [1.0] * 3,
        "beta": [0.0] * 3,
        "moving_mean": [0.0] * 3,
        "moving_variance": [1.0] * 3,
    }
    assert copy.layers[1].raw.numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", sampled(NETWORKS, every=2))
def test_every_network_can_be_drawn_anew(name):
    inputs, outputs, x = NETWORKS[name]()
    model = keras.Model(inputs, outputs)
    move(model)
    before = values(model)
    copy = clone_network(inputs, outputs, weights="fresh")
    assert [v.shape for v in copy.variables] == [v.shape for v in model.variables]
    assert not equal(values(copy), before)
    copy(x)
    move(copy)
    assert equal(values(model), before)


def test_what_is_pruned_and_frozen_stays_so():
    x = keras.Input((3,))
    layer = MaskedDense(2, use_bias=False)
    y = layer(x)
    layer.prune_kernel([[1, 0], [1, 1], [1, 1]])
    layer.freeze_kernel([[0, 1], [1, 1], [1, 1]])
    old = layer.masked_weight("kernel").numpy()
    fresh = clone_network(x, y, weights="fresh").layers[1].masked_weight("kernel")
    assert fresh.numpy()[0].tolist() == [old[0, 0], 0.0]
    assert not (fresh.numpy()[1:] == old[1:]).any()


def test_an_initializer_draws_what_is_trained():
    x, y = wide()
    y = layers.BatchNormalization()(y)
    asked = []

    def counted(shape, dtype):
        asked.append((shape, dtype))
        return tf.fill(shape, tf.cast(len(asked), dtype))

    copy = clone_network(x, y, weights="fresh", initializer=counted)
    assert asked == [((40, 60), "float32"), *[((60,), "float32")] * 3]
    assert [v.numpy().ravel()[0] for v in copy.variables] == [1.0, 2.0, 3.0, 4.0, 0.0, 1.0]


def test_an_initializer_may_be_named():
    copy = clone_network(*wide(), weights="fresh", initializer="ones")
    assert all((variable.numpy() == 1).all() for variable in copy.variables)
    with pytest.raises(ValueError, match="thick"):
        clone_network(*wide(), weights="fresh", initializer="thick")


def test_an_initializer_of_another_shape_is_refused():
    with pytest.raises(
        InvalidArgument,
        match=r"Could not initialize 'wide/kernel(:0)?' in a clone of the network: expected shape \(40, 60\), got \(2,\)\. "
        r"Return values of the shape passed to the initializer\.",
    ):
        clone_network(*wide(), weights="fresh", initializer=lambda shape, dtype: tf.zeros(2))


def test_fresh_functions():
    weight, counter = tf.Variable(np.ones((30, 20), "f")), tf.Variable(7, trainable=False)
    scale = tf.Variable(3.0, trainable=False)

    @tf.function
    def call(x):
        counter.assign_add(1)
        return x @ weight * scale

    call(batch(30))
    copy = clone_network(call, weights="fresh", initializer=initializers.RandomUniform(2.0, 3.0))
    drawn = copy.trainable_variables[0].numpy()
    assert drawn.min() >= 2.0
    assert drawn.max() <= 3.0
    assert len(np.unique(drawn)) > 500
    assert sorted(v.numpy() for v in copy.variables if not v.trainable) == [3.0, 8]
    assert (weight.numpy() == 1).all()


def test_fresh_functions_need_an_initializer():
    with pytest.raises(
        InvalidArgument,
        match=r"Could not clone a function with fresh weights: expected an initializer, got none\. A function has no "
        r"layers with initializers: pass initializer=, such as keras\.initializers\.GlorotUniform\(\)\.",
    ):
        clone_network(tf.function(lambda x: x), weights="fresh", example=1.0)


def test_other_words_are_refused():
    with pytest.raises(
        InvalidArgument,
        match=r"expected weights 'copy' or 'fresh', got 'new'\. Choose one of them\.",
    ):
        clone_network(*wide(), weights="new")
    with pytest.raises(
        InvalidArgument,
        match=r"expected an initializer with weights='fresh' only, got one with 'copy'\. Pass weights='fresh' as well\.",
    ):
        clone_network(*wide(), initializer="zeros")
