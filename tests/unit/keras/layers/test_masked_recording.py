"""Layers that own their masks are recorded by what they compute with."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetCallback, Recorder
from tb_pastnet.core.statistics import CHANGED, DELTA_NORM, NORM
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.masked import Masked, MaskedDense
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.model.weights import TrainableFlags
from tests.naming import ids, texts
from tests.recorded import read_one

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)).astype("f"), RNG.normal(size=(40, 3)).astype("f")


def small():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((6,)), MaskedDense(4, "relu", name="dense0"), Masked(layers.Dense(3))]
    )
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), "mse")
    return model


def test_names_and_axes_are_those_of_the_layers_inside():
    attention = layers.MultiHeadAttention(2, 3)
    attention.build((None, 5, 4), (None, 5, 4))
    inputs = keras.Input((5, 4))
    value = Masked(attention, name="attend")(inputs, inputs)
    value = Masked(layers.BatchNormalization(), name="norm")(value)
    value = Masked(layers.LSTM(3), name="rnn")(value)
    model = keras.Model(inputs, MaskedDense(2)(value))
    found = texts(model)
    assert {name: text.axis for name, text in found.items()} == {
        "attend/query/kernel": "-2",
        "attend/query/bias": "-2",
        "attend/key/kernel": "-2",
        "attend/key/bias": "-2",
        "attend/value/kernel": "-2",
        "attend/value/bias": "-2",
        "attend/attention_output/kernel": "0",
        "attend/attention_output/bias": "0",
        "norm/gamma": "0",
        "norm/beta": "0",
        "norm/moving_mean": "0",
        "norm/moving_variance": "0",
        "rnn/kernel": "-1 mod 3",
        "rnn/recurrent_kernel": "-1 mod 3",
        "rnn/bias": "-1 mod 3",
        "masked_dense/kernel": "-1",
        "masked_dense/bias": "-1",
    }
    assert all(text.verified for text in found.values())
    assert found["norm/moving_mean"].role == "statistic"
    assert network(model).skipped == ()
    assert [row.main for row in network(model).layers][-1] == "masked_dense/kernel"


def test_a_layer_of_its_own_and_its_variables_as_a_choice():
    model = small()
    assert ids(model) == ["dense0/kernel", "dense0/bias", "masked/kernel", "masked/bias"]
    kernel = model.layers[0].masked_weight("kernel")
    for want in (kernel, kernel.weight, kernel.variable, "dense0/kernel"):
        assert ids(model, variables=[want]) == ["dense0/kernel"]
    assert ids(model.layers[0])[0] == "kernel"
    switches = TrainableFlags([record.found for record in network(model).weights])
    model.layers[1].layer.trainable = False
    assert switches.read() == [True, True, False, False]


def test_what_tensorflow_takes_a_weight_for():
    weight = small().layers[0].masked_weight("kernel")
    kept = RNG.random((6, 4)) > 0.5
    weight.prune(kept)
    weight.weight.assign(np.ones((6, 4)))
    np.testing.assert_array_equal(tf.convert_to_tensor(weight), kept)
    np.testing.assert_array_equal(tf.convert_to_tensor(weight, tf.float32) + 1, kept + 1.0)
    np.testing.assert_array_equal(weight.numpy(), kept)
    assert (weight.dtype, weight.shape.as_list()) == (tf.float32, [6, 4])


def test_held_channels_stand_still_under_weight_decay(tmp_path):
    model = small()
    kernel, other = (layer.masked_weight("kernel") for layer in model.layers)
    kernel.freeze(np.tile([0, 1, 1, 1], (6, 1)))
    other.prune(np.tile([1, 0, 1], (4, 1)))
    start = kernel.variable.numpy()
    callback = PastNetCallback(tmp_path, every=1)
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=[callback])
    callback.close()
    log = read_one(tmp_path)
    assert log.last.notes == {}
    first, second = log.values("dense0/kernel"), log.values("masked/kernel")
    assert (kernel.variable.numpy()[:, 0] != start[:, 0]).all()
    assert len(first) == 20
    assert not first[:, [DELTA_NORM, CHANGED], 0].any()
    assert not second[:, [NORM, DELTA_NORM, CHANGED], 1].any()
    assert (first[:, CHANGED, 1:] > 0).any(axis=0).all()
    norms = np.linalg.norm(kernel.numpy(), axis=0)
    np.testing.assert_allclose(first[-1, NORM], norms, rtol=0.04)


def test_a_change_of_a_mask_is_seen_by_a_recorder_that_runs(tmp_path):
    model = small()
    with Recorder(tmp_path, model, every=1, past="record") as recorder:
        recorder.record(1)
        model.layers[0].prune("kernel", np.tile([1, 1, 0, 1], (6, 1)))
        recorder.record(2)
        recorder.flush()
    values = read_one(tmp_path).values("dense0/kernel")
    assert values[-1, NORM].tolist()[2] == 0
    assert (values[-1, CHANGED] > 0).tolist() == [False, False, True, False]


def test_the_origin_is_that_of_the_effective_values():
    first, second = small(), small()
    assert network(first).origin() == network(second).origin()
    kept = np.tile([1, 1, 0, 1], (6, 1))
    for model, garbage in ((first, 1), (second, 2)):
        model.layers[0].prune_kernel(kept)
        raw = model.layers[0].masked_weight("kernel").weight
        raw.assign(np.where(kept, raw.numpy(), garbage))
    assert network(first).origin() == network(second).origin()
    second.layers[0].regrow("kernel")
    assert network(first).origin() == network(second).origin()
    second.layers[0].prune_kernel(1 - kept)
    assert network(first).origin() != network(second).origin()


def test_masks_beside_a_model_leave_such_layers_to_themselves():
    model = small()
    masks = Masks(model)
    with pytest.raises(InvalidArgument, match="expected a weight without masks"):
        masks.prune("dense0/kernel", channels=[0])
