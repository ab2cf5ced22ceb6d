"""The numbers of a probe against a separately built twin, whose layers are called by hand."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.format.function_change import DECISIONS, DIVERGENCE
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.probe.probe import Probe
from tests import probing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6)).astype("f")
SERIES = RNG.normal(size=(5, 4, 3)).astype("f")


def functional():
    inputs = keras.Input((6,))
    hidden = layers.Dense(7, activation="relu", name="first")(inputs)
    hidden = layers.BatchNormalization(name="norm")(hidden)
    hidden = layers.Dropout(0.5)(hidden)
    return keras.Model(inputs, layers.Dense(4, name="last")(hidden))


def by_hand_functional(model, x):
    first = model.get_layer("first")(x)
    norm = model.get_layer("norm")(first, training=False)
    last = model.get_layer("last")(norm)
    return {"first": first, "norm": norm, "last": last, "-last": last}


def sequential():
    parts = [layers.Dense(7, "relu"), layers.Dense(3, "softmax")]
    return keras.Sequential([keras.Input((6,)), *parts])


def by_hand_sequential(model, x):
    first = model.layers[0](x)
    last = model.layers[1](first)
    return {"dense": first, "dense_1": last, "-dense_1": last}


def nested():
    block = [keras.Input((6,)), layers.Dense(7, "tanh", name="in"), layers.Dense(6, name="out")]
    head = keras.Sequential([keras.Input((6,)), layers.Dense(2, name="last")], name="head")
    return keras.Sequential([keras.Input((6,)), keras.Sequential(block, name="block"), head])


def by_hand_nested(model, x):
    block, head = model.layers
    inside = block.layers[0](x)
    out = block.layers[1](inside)
    last = head.layers[0](out)
    return {"block/in": inside, "block/out": out, "head/last": last, "-head": last}


def recurrent():
    inputs = keras.Input((4, 3))
    hidden = layers.LSTM(5, return_sequences=True, name="lstm")(inputs)
    hidden = layers.Bidirectional(layers.GRU(3, name="gru"), name="both")(hidden)
    return keras.Model(inputs, layers.Dense(2, name="last")(hidden))


def by_hand_recurrent(model, x):
    lstm = model.get_layer("lstm")(x)
    both = model.get_layer("both")
    ahead, back = both.forward_layer(lstm), both.backward_layer(lstm)
    last = model.get_layer("last")(both(lstm))
    names = {"lstm": lstm, "both/forward_gru": ahead, "both/backward_gru": back}
    return {**names, "last": last, "-last": last}


class Subclassed(keras.Model):
    """One layer is called twice, one returns two tensors, one weight is the model's own."""

    def __init__(self):
        super().__init__()
        self.twice = layers.Dense(6, activation="tanh", name="twice")
        self.rnn = layers.GRU(3, return_state=True, name="rnn")
        self.scale = self.add_weight(name="scale", shape=(3,))

    def build(self, shape):
        self.twice.build(shape)
        self.rnn.build((None, 1, 6))

    def call(self, x):
        once = self.twice(x)
        again = self.twice(once)
        output, state = self.rnn(again[:, None])
        return {"sum": output * self.scale, "state": state}


def subclassed():
    model = Subclassed()
    model.build((None, 6))
    return model


def by_hand_subclassed(model, x):
    once = model.twice(x)
    again = model.twice(once)
    output, state = model.rnn(again[:, None])
    outputs = {"-sum": output * model.scale, "-state": state}
    return {"twice": [once, again], "rnn": [output, state], **outputs}


def several_outputs():
    inputs = {"a": keras.Input((6,), name="a"), "b": keras.Input((6,), name="b")}
    hidden = layers.Dense(4, name="shared")
    merged = layers.Add()([hidden(inputs["a"]), hidden(inputs["b"])])
    digit = layers.Dense(3, "softmax", name="digit")(merged)
    return keras.Model(inputs, [digit, layers.Dense(1, "sigmoid", name="odd")(merged)])


def by_hand_several(model, batch):
    shared = model.get_layer("shared")
    parts = [shared(batch["a"]), shared(batch["b"])]
    digit, odd = (model.get_layer(name)(parts[0] + parts[1]) for name in ("digit", "odd"))
    return {"shared": parts, "digit": digit, "odd": odd, "-digit": digit, "-odd": odd}


CASES = {
    "functional": (functional, by_hand_functional, X),
    "sequential": (sequential, by_hand_sequential, X),
    "nested": (nested, by_hand_nested, X),
    "recurrent": (recurrent, by_hand_recurrent, SERIES),
    "subclassed": (subclassed, by_hand_subclassed, X),
    "several": (several_outputs, by_hand_several, {"a": X, "b": X[::-1]}),
}


def moved(model):
    """Changes all weights; returns those from before, those from then, and the past tensors."""
    rng = np.random.default_rng(1)
    before = [np.abs(value) + 0.1 for value in model.get_weights()]
    model.set_weights(before)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    model.set_weights([value + 0.3 * rng.normal(size=value.shape) ** 2 for value in before])
    return before, model.get_weights(), past


def evaluated(build, by_hand, weights, batch):
    twin = build()
    twin.set_weights(weights)
    found = by_hand(twin, tf.nest.map_structure(tf.constant, batch))
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), found)


@pytest.mark.parametrize("case", CASES)
def test_layers_and_outputs_are_compared(case):
    build, by_hand, batch = CASES[case]
    model = build()
    probe = Probe(model, network(model), batch)
    before, now, past = moved(model)
    values = probe.values(past)
    assert values.dtype == np.float32
    y, then = (evaluated(build, by_hand, weights, batch) for weights in (now, before))
    names = [("-" if place.kind == "output" else "") + place.name for place in probe.places]
    assert sorted(names) == sorted(y)
    assert names == sorted(names, key=lambda name: name.startswith("-"))
    for name, column, place in zip(names, values.T, probe.places, strict=True):
        expected = probing.change(y[name], then[name])
        np.testing.assert_allclose(column[:2], expected, rtol=1e-4, err_msg=name)
        assert expected[0] > 0.001
        parts = y[name] if isinstance(y[name], list) else [y[name]]
        assert place.elements == sum(part[0].size for part in parts)
    np.testing.assert_array_equal(model.get_weights()[0], now[0])


def test_an_unchanged_network_has_not_moved_at_all():
    model = functional()
    probe = Probe(model, network(model), X)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    values = probe.values(past)
    assert (values[0] == 0).all()
    assert (values[1] == 1).all()


def test_layers_before_the_first_change_have_not_moved():
    model = functional()
    probe = Probe(model, network(model), X)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    norm = model.get_layer("norm")
    norm.moving_mean.assign(norm.moving_mean + 1.0)
    assert (probe.values(past)[0] > 0).tolist() == [False, True, True, True]


def test_what_is_not_recorded_is_current():
    model = functional()
    probe = Probe(model, network(model, ["last/kernel"]), X)
    assert [place.name for place in probe.places] == ["last", "last"]
    past = [tf.constant(model.get_layer("last").kernel.numpy())]
    _, now, _ = moved(model)
    now_y = evaluated(functional, by_hand_functional, now, X)["last"]
    names = [weight.path for weight in model.weights]
    kernel = next(at for at, name in enumerate(names) if name.endswith("last/kernel"))
    mixed = [*now[:kernel], past[0].numpy(), *now[kernel + 1 :]]
    then_y = evaluated(functional, by_hand_functional, mixed, X)["last"]
    np.testing.assert_allclose(probe.values(past)[:2, 0], probing.change(now_y, then_y), rtol=1e-4)


def test_weights_that_are_not_finite_have_no_measure():
    model = functional()
    probe = Probe(model, network(model), X)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    kernel = model.get_layer("last").kernel
    kernel.assign(kernel * np.nan)
    values = probe.values(past)
    assert np.isnan(values[:2]).tolist() == [[False, False, True, True]] * 2
    kernel.assign(past[-2])
    past[-2] = past[-2] * np.nan
    assert np.isnan(probe.values(past)[:2]).tolist() == [[False, False, True, True]] * 2


def test_outputs_of_zeros():
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3, use_bias=False)])
    probe = Probe(model, network(model), np.ones((4, 2), "f"))
    zero, one = tf.zeros((2, 3)), tf.ones((2, 3))
    expected = [(zero, zero, [0, 1]), (one, zero, [np.inf, 0]), (zero, one, [1, 0])]
    for now, past, measures in expected:
        model.layers[0].kernel.assign(now)
        assert probe.values([past])[:2, 0].tolist() == measures


def classifier(activation, units, loss):
    model = keras.Sequential([keras.Input((6,)), layers.Dense(units, activation, name="last")])
    if loss is not None:
        model.compile("sgd", loss)
    return model


@pytest.mark.parametrize(
    ("activation", "units", "loss"),
    [
        ("softmax", 3, None),
        (None, 3, keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
        ("softmax", 3, "sparse_categorical_crossentropy"),
        ("sigmoid", 1, None),
        (None, 1, keras.losses.BinaryCrossentropy(from_logits=True)),
        ("sigmoid", 2, "binary_crossentropy"),
    ],
)
def test_classifiers_also_have_divergence_and_decisions(activation, units, loss):
    model = classifier(activation, units, loss)
    probe = Probe(model, network(model), X)
    rng = np.random.default_rng(2)
    past, now = (rng.normal(size=(6, units)).astype("f") for _ in range(2))
    model.set_weights([now, np.zeros(units)])
    values = probe.values([tf.constant(past), tf.zeros(units)])
    to_classes = probing.sigmoid if units != 3 else probing.softmax
    expected = probing.decided(to_classes(X @ now), to_classes(X @ past))
    np.testing.assert_allclose(values[DIVERGENCE:, 1], expected, rtol=1e-4)
    assert expected[0] > 0.01
    assert expected[1] > 0
    assert np.isnan(values[DIVERGENCE:, 0]).all()  # a layer doesn't decide


def test_other_networks_do_not_decide():
    model = classifier("relu", 3, "mse")
    values = Probe(model, network(model), X).values([tf.ones((6, 3)), tf.zeros(3)])
    assert np.isnan(values[[DIVERGENCE, DECISIONS]]).all()
    assert np.isfinite(values[:2]).all()


def test_of_several_outputs_each_decides_by_itself():
    model = several_outputs()
    probe = Probe(model, network(model), {"a": X, "b": X[::-1]})
    before, now, past = moved(model)
    values = probe.values(past)
    batch = {"a": X, "b": X[::-1]}
    y, then = (evaluated(several_outputs, by_hand_several, w, batch) for w in (now, before))
    digit = probing.decided(y["digit"], then["digit"])
    pairs = [np.stack([1.0 - side["odd"], side["odd"]], -1) for side in (y, then)]
    np.testing.assert_allclose(values[DIVERGENCE:, -2], digit, rtol=1e-3)
    np.testing.assert_allclose(values[DIVERGENCE:, -1], probing.decided(*pairs), rtol=1e-3)
