"""What a probe can look into: modules, nested functions, loops, and what a strategy keeps."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.probe.probe import Probe
from tests import probing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6)).astype("f")


class Own(tf.Module):
    """A module with Keras layers inside, and Python's own `if` on a tensor."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3, name="ignored")
        self.dense.build((None, 6))
        self.weight = tf.Variable(2.0)

    def __call__(self, x, shift):
        hidden = self.dense(x)
        if tf.reduce_sum(hidden) > -1e9:
            hidden = self.weight * hidden
        return hidden + shift


def test_a_module_has_outputs_and_keras_layers_inside():
    model = Own()
    probe = Probe(model, network(model), (X, X[:, :3]))
    assert [(place.kind, place.name) for place in probe.places] == [
        ("layer", "dense"),
        ("output", "output"),
    ]
    names = [one.text.id for one in network(model).weights]
    past = {
        name: tf.constant(one.found.variable.numpy())
        for name, one in zip(names, network(model).weights, strict=True)
    }
    kernel = model.dense.kernel.numpy()
    past["weight"] = tf.constant(5.0)
    past["dense/kernel"] = tf.constant(2 * kernel)
    values = probe.values([past[name] for name in names])
    hidden = X @ kernel
    np.testing.assert_allclose(values[:2, 0], probing.change(hidden, 2 * hidden), rtol=1e-5)
    y, then = (scale * hidden + X[:, :3] for scale in (2, 10))
    np.testing.assert_allclose(values[:2, 1], probing.change(y, then), rtol=1e-5)


def test_a_function_inside_hides_its_layers_only():
    class Hides(keras.Model):
        def __init__(self):
            super().__init__()
            self.seen, self.hidden = layers.Dense(6, name="seen"), layers.Dense(2, name="hidden")

        def build(self, shape):
            self.seen.build(shape)
            self.hidden.build(shape)

        @tf.function
        def inside(self, x):
            return self.hidden(x)

        def call(self, x):
            return self.inside(self.seen(x))

    model = Hides()
    model.build((None, 6))
    probe = Probe(model, network(model), X)
    assert [place.name for place in probe.places] == ["seen", "output"]


def test_numbers_that_all_samples_share_count_once():
    class Places(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = layers.Embedding(3, 4, name="table")

        def build(self, shape):
            self.table.build(None)

        def call(self, x):
            return x[:, :, None] + self.table(keras.ops.arange(3))

    model = Places()
    model.build((None, 3))
    probe = Probe(model, network(model), X[:, :3])
    assert [(place.name, place.elements) for place in probe.places] == [
        ("table", 12),
        ("output", 12),
    ]


def test_a_function_can_not_be_cut_into_layers_but_a_layer_can_be_probed():
    layer = layers.Dense(3)
    layer.build((None, 6))
    probe = Probe(layer, network(layer), X)
    assert [(place.kind, place.name) for place in probe.places] == [("output", "output")]


def test_a_layer_for_each_time_counts_over_all_of_them():
    each = layers.TimeDistributed(layers.Dense(3, name="dense"), name="each")
    model = keras.Sequential([keras.Input((4, 6)), each, layers.Flatten()])
    probe = Probe(model, network(model), RNG.normal(size=(5, 4, 6)).astype("f"))
    places = [(place.name, place.elements) for place in probe.places]
    assert places == [("each/dense", 12), ("flatten", 12)]


def test_layers_inside_of_a_loop_are_left_out():
    cells = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], name="rnn")
    model = keras.Sequential([keras.Input((4, 6)), cells, layers.Dense(2, name="last")])
    assert len(network(model).layers) == 3
    probe = Probe(model, network(model), RNG.normal(size=(5, 4, 6)).astype("f"))
    assert [place.name for place in probe.places] == ["last", "last"]


REPLICAS = """
import keras, numpy as np, tensorflow as tf
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.probe.probe import Probe
with strategy.scope():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
model.layers[0].kernel.assign([[3.0]])
probe = Probe(model, network(model), np.ones((2, 1), np.float32))
print(probe.values([tf.constant([[2.0]])])[:2, 0].tolist())
"""


def test_replicas_of_a_strategy(two_devices):
    assert two_devices.run(REPLICAS).splitlines()[-1] == "[0.5, 1.0]"
