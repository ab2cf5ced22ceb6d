from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.model.weights import TrainableFlags
from tests.naming import ids, plain, texts

PLAIN = [
    "conv2d/kernel",
    "conv2d/bias",
    "batch_normalization/gamma",
    "batch_normalization/beta",
    "batch_normalization/moving_mean",
    "batch_normalization/moving_variance",
    "second/kernel",
    "second/bias",
    "dense/kernel",
    "dense/bias",
    "dense_1/kernel",
    "dense_1/bias",
]


def test_unnamed_layers_have_the_same_names_in_every_model():
    assert ids(plain()) == PLAIN
    assert ids(plain()) == PLAIN


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in Keras
def test_a_loaded_model_has_the_same_names(tmp_path):
    plain().save(tmp_path / "model.keras")
    assert ids(keras.models.load_model(tmp_path / "model.keras")) == PLAIN


def test_rows_and_groups_of_nested_models():
    inputs = keras.Input((4, 6))
    attended = layers.MultiHeadAttention(2, 3)(inputs, inputs)
    block = keras.Sequential([layers.Dense(6), layers.Dense(6)])
    model = keras.Model(inputs, layers.LayerNormalization()(block(attended)))
    rows = network(model).layers
    assert [(row.id, row.group, row.main) for row in rows] == [
        (
            f"multi_head_attention/{part}",
            "multi_head_attention",
            f"multi_head_attention/{part}/kernel",
        )
        for part in ("query", "key", "value", "attention_output")
    ] + [
        ("sequential/dense", "sequential", "sequential/dense/kernel"),
        ("sequential/dense_1", "sequential", "sequential/dense_1/kernel"),
        ("layer_normalization", "", "layer_normalization/gamma"),
    ]
    assert [row.type for row in rows][-1] == "LayerNormalization"


def test_cells_and_wrappers():
    layers.LSTM(1), layers.Dense(1)  # numbers that must not show
    model = keras.Sequential(
        [
            keras.Input((5, 4)),
            layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(2)),
            layers.RNN(layers.StackedRNNCells([layers.LSTMCell(2), layers.GRUCell(3)])),
        ]
    )
    assert [row.id for row in network(model).layers] == [
        "bidirectional/forward_lstm",
        "bidirectional/backward_lstm",
        "time_distributed/dense",
        "rnn/stacked_rnn_cells/lstm_cell",
        "rnn/stacked_rnn_cells/gru_cell",
    ]
    found = texts(model)
    assert found["bidirectional/forward_lstm/recurrent_kernel"].axis == "-1 mod 3"
    assert all(text.verified for text in found.values())


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.gain = self.add_weight(shape=(3,), name="gain")
        self.first = layers.Dense(3)
        self.blocks = [layers.Dense(3), self.first]
        self.seen = self.add_weight(shape=(3,), name="seen", trainable=False)

    def call(self, inputs):
        for block in self.blocks:
            inputs = block(inputs)
        return inputs * self.gain


@pytest.fixture
def subclassed():
    model = Subclassed()
    model(tf.ones((1, 3)))
    return model


def test_a_subclassed_model_with_weights_of_its_own_and_a_shared_layer(subclassed):
    found = texts(subclassed)
    assert list(found) == [
        "gain", "seen", "dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
    ]  # fmt: skip
    assert [row.id for row in network(subclassed).layers] == ["gain", "seen", "dense", "dense_1"]
    assert found["gain"].role == "other"
    assert found["seen"].role == "statistic"
    assert not found["gain"].verified


def test_trainable_flags_are_those_of_now(subclassed):
    records = network(subclassed).weights
    switches = TrainableFlags([record.found for record in records])

    def held():
        flags = switches.read()
        return [one.text.id for one, free in zip(records, flags, strict=True) if not free]

    assert held() == []
    subclassed.first.trainable = False
    assert held() == ["dense/kernel", "dense/bias"]
    subclassed.trainable = False
    assert held() == [record.text.id for record in records if record.text.id != "seen"]


def test_statistics_of_a_frozen_layer_are_still_statistics():
    model = plain()
    model.trainable = False
    roles = {text.id: text.role for text in texts(model).values()}
    assert roles["batch_normalization/moving_mean"] == "statistic"
    assert roles["batch_normalization/gamma"] == "scale"
    assert roles["conv2d/kernel"] == "kernel"


def test_a_users_class_of_a_known_name_is_unverified():
    class Dense(layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], 4), name="kernel")

        def call(self, inputs):
            return inputs @ self.kernel

    class Wider(layers.Dense):
        pass

    model = keras.Sequential([keras.Input((3,)), Dense(), Wider(2)])
    found = texts(model)
    assert not found["dense/kernel"].verified
    assert not found["wider/kernel"].verified
    assert found["wider/kernel"].axis == "-1"


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.ones((2, 3)))
        self.parts = [tf.Variable([1.0]), {"k": tf.Variable(2.0)}]
        self.count = tf.Variable(0)
        self.frozen = tf.Variable([1.0], trainable=False)
        self.again = self.w
        self.inner = Inner()


class Inner(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.ones((3, 3)))
        self.dense = layers.Dense(2)
        self.dense.build((None, 3))


def test_a_module_by_its_attributes():
    found = network(Module())
    assert [record.text.id for record in found.weights] == [
        "w", "parts/0", "parts/1/k", "frozen", "inner/kernel", "inner/dense/kernel",
        "inner/dense/bias",
    ]  # fmt: skip
    assert found.skipped == (("count", "its dtype int32 isn't a floating one"),)
    assert [(row.id, row.group, row.type) for row in found.layers][-2:] == [
        ("inner", "", "Inner"),
        ("inner/dense", "inner", "Dense"),
    ]
    assert texts(Module())["frozen"].role == "statistic"


def test_a_mapping_by_its_names():
    kernel, flags = tf.Variable(tf.ones((2, 3))), tf.Variable([True])
    statistic = keras.Variable([1.0], trainable=False)
    model = {
        "a/b/kernel": kernel, "scale": keras.Variable([1.0, 2.0]), "x": flags,
        "empty": tf.Variable(tf.ones((0, 3))), "again": kernel, "a/moving_mean": statistic,
    }  # fmt: skip
    found = network(model)
    assert [record.text.id for record in found.weights] == [
        "a/b/kernel", "scale", "a/moving_mean",
    ]  # fmt: skip
    assert [(row.id, row.group) for row in found.layers][:2] == [("a/b", "a"), ("scale", "")]
    assert dict(found.skipped) == {
        "x": "its dtype bool isn't a floating one",
        "empty": "it has no elements",
    }
    switches = TrainableFlags([record.found for record in found.weights])
    assert all(switches.read())


def test_names_that_meet_are_kept_apart():
    model = {"a/w": tf.Variable([1.0]), "/a/w": tf.Variable([2.0])}
    assert ids(model) == ["a/w", "a/w_1"]
    model = {name: tf.Variable([1.0]) for name in ("a/w", "a/w_1", "/a/w")}
    assert ids(model) == ["a/w", "a/w_1", "a/w_2"]
