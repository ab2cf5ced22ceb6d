from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import InvalidArgument, UnknownName, UnsupportedBackend
from tb_pastnet.train.model.variables import network


def ids(model, **settings):
    return [record.text.id for record in network(model, **settings).variables]


def texts(model, **settings):
    return {record.text.id: record.text for record in network(model, **settings).variables}


def plain():
    return keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.Conv2D(3, 3, name="second"),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(5),
            layers.Dense(2),
        ]
    )


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
    flags = {r.text.id: r.found.trainable for r in network(subclassed).variables}
    assert all(flag() for flag in flags.values())
    subclassed.first.trainable = False
    assert [name for name, flag in flags.items() if not flag()] == ["dense/kernel", "dense/bias"]
    subclassed.trainable = False
    assert [name for name, flag in flags.items() if flag()] == ["seen"]


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
    assert [record.text.id for record in found.variables] == [
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
    assert [record.text.id for record in found.variables] == [
        "a/b/kernel", "scale", "a/moving_mean",
    ]  # fmt: skip
    assert [(row.id, row.group) for row in found.layers][:2] == [("a/b", "a"), ("scale", "")]
    assert dict(found.skipped) == {
        "x": "its dtype bool isn't a floating one",
        "empty": "it has no elements",
    }
    assert all(record.found.trainable() for record in found.variables)


def test_names_that_meet_are_kept_apart():
    model = {"a/w": tf.Variable([1.0]), "/a/w": tf.Variable([2.0])}
    assert ids(model) == ["a/w", "a/w_1"]


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
    with pytest.raises(InvalidArgument, match=r"Could not choose .*: expected a variable of the"):
        network(model, variables=[tf.Variable(1.0)])


def test_axes_can_be_corrected():
    model = plain()
    text = texts(model, channel_axes={"second/kernel": (2, 3), "dense_1/bias": ()})
    assert (text["second/kernel"].channels, text["second/kernel"].axis) == (12, "(2, 3)")
    assert text["dense_1/bias"].channels == 1
    with pytest.raises(InvalidArgument, match=r"Could not take axis 4 of 'second/kernel' as its"):
        network(model, channel_axes={"second/kernel": 4})
    with pytest.raises(UnknownName, match=r"Could not find variable 'third/kernel'"):
        network(model, channel_axes={"third/kernel": 0})


def test_an_unbuilt_model_is_refused():
    with pytest.raises(
        InvalidArgument, match=r"Could not record model 'subclassed.*': expected a built"
    ):
        network(Subclassed())
    with pytest.raises(InvalidArgument, match=r"expected a built model, got one without weights"):
        network(keras.Sequential([layers.Dense(3)]))


def test_nothing_left_to_record_is_refused():
    for model, settings in [
        ({"n": tf.Variable(1)}, {}),
        ({}, {}),
        (plain(), {"variables": []}),
        (plain(), {"variables": "*/nothing"}),
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
        InvalidArgument, match=r"Could not record 'w': expected a keras.Variable or"
    ):
        network({"w": tf.ones(3)})


def test_too_many_channels_are_refused(monkeypatch):
    monkeypatch.setattr("tb_pastnet.core.limits.MAX_CHANNELS", 2)
    with pytest.raises(InvalidArgument, match=r"Could not record 'w': expected at most 2 channels"):
        network({"w": tf.Variable([1.0, 2.0, 3.0])})


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UnsupportedBackend, match=r"expected the TensorFlow backend, got 'jax'"):
        network(plain())
