"""What a probe leaves alone."""

from __future__ import annotations

import gc

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tb_pastnet import MaskedDense
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.probe.probe import Probe
from tests import probing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6)).astype("f")


class Counting(layers.Layer):
    """Writes its statistics, and draws from its seed, whatever `training` says."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.seeds = keras.random.SeedGenerator(3)

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(6,), initializer="ones")
        self.calls = self.add_weight(name="calls", shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        self.calls.assign_add(1.0)
        noise = keras.random.normal(keras.ops.shape(x), seed=self.seeds)
        return self.scale * x + noise + self.calls


def state_of(model):
    return [variable.numpy() for variable in model.variables]


def test_what_a_network_writes_stays_as_it_is():
    model = keras.Sequential([keras.Input((6,)), Counting(name="counting")])
    inside = model.layers[0]
    probe = Probe(model, network(model, ["counting/scale"]), X)
    before = state_of(model)
    values = probe.values([tf.constant(np.full(6, 2, "f"))])
    for one, other in zip(before, state_of(model), strict=True):
        np.testing.assert_array_equal(one, other)
    # Both evaluations draw the same noise and count from the same number.
    twin = Counting()
    twin(tf.constant(X))
    y, then = [], []
    for scale, into in ((1, y), (2, then)):
        twin.calls.assign(inside.calls)
        twin.seeds.state.assign(inside.seeds.state)
        twin.scale.assign(np.full(6, scale))
        into.append(twin(tf.constant(X)).numpy())
    np.testing.assert_allclose(values[:2, 0], probing.change(y, then), rtol=1e-4)


def test_a_stateful_rnn_goes_on_where_it_was():
    inputs = keras.Input(batch_shape=(5, 2, 3))
    outputs = layers.LSTM(4, stateful=True, name="lstm")(inputs)
    model = keras.Model(inputs, outputs)
    series = RNG.normal(size=(5, 2, 3)).astype("f")
    model(series)
    before = state_of(model)
    probe = Probe(model, network(model), series)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    assert (probe.values(past)[0] == 0).all()
    for one, other in zip(before, state_of(model), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(before[-1]).max() > 0


def test_losses_that_layers_add_are_not_those_of_the_step():
    class Adds(layers.Layer):
        def call(self, x):
            self.add_loss(keras.ops.sum(x))
            return x

    model = keras.Sequential([keras.Input((6,)), Adds(), layers.Dense(1)])
    model(X)
    count = len(model.losses)
    Probe(model, network(model), X)
    assert len(model.losses) == count


def test_layers_are_called_as_ever_afterwards():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])
    own = layers.Dense(1)
    kept = own.call
    object.__setattr__(own, "call", kept)
    model.add(own)
    Probe(model, network(model), X)
    assert "call" not in vars(model.layers[0])
    assert vars(own)["call"] is kept


def test_masks_that_changed_since_do_not_count_for_the_past():
    model = keras.Sequential([keras.Input((6,)), MaskedDense(3, name="masked")])
    masked = model.layers[0]
    kept = np.ones((6, 3))
    kept[0] = 0
    masked.prune_kernel(kept)
    probe = Probe(model, network(model), X)
    records = network(model).weights
    past = [tf.convert_to_tensor(one.found.variable) for one in records]
    then = model(X).numpy()
    kept[:3] = 0
    masked.prune_kernel(kept)
    masked.freeze_bias()
    np.testing.assert_allclose(probe.values(past)[:2, 0], probing.change(model(X), then), rtol=1e-4)
    assert [place.name for place in probe.places] == ["masked", "masked"]


def test_a_lookup_table_is_read():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([0, 1], [1.0, 2.0]), default_value=0.0
    )

    class Looks(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(3.0)
            self.table = table

        def __call__(self, keys):
            return self.weight * self.table.lookup(keys)

    model = Looks()
    probe = Probe(model, network(model), np.array([0, 1, 1], np.int32))
    assert probe.values([tf.constant(6.0)])[:2, 0].tolist() == [0.5, 1]


def test_between_records_it_holds_no_copy():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])
    probe = Probe(model, network(model), X)
    past = [tf.constant(one.found.variable.numpy()) for one in network(model).weights]
    probe.values(past)
    variables = [each for each in gc.get_objects() if issubclass(type(each), tf.Variable)]
    stand_ins = [each for each in variables if each.name.startswith("pastnet_stand_in")]
    assert len(stand_ins) >= 2
    assert {each.numpy().size for each in stand_ins} == {0}
