"""What a clone keeps of single layers, and what is its own."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tb_pastnet import MaskedDense, clone_network
from tests.clones import Attending, Scaled, arrays, batch, equal, move, values


def one(layer, *shape, **settings):
    x = keras.Input(shape, **settings)
    return x, layer(x)


def test_question_3_a_network_of_which_only_the_tensors_are_left():
    def build():
        x = keras.Input((2,), name="x")
        hidden = layers.Dense(2, use_bias=False, kernel_initializer="ones")(x)
        return x, layers.Dense(1, use_bias=False, kernel_initializer="ones")(hidden)

    inputs, outputs = build()
    del build
    network, copy = keras.Model(inputs, outputs), clone_network(inputs, outputs)
    x = np.array([[1.0, 2.0]], "f")
    # Each hidden unit is 1 + 2, and their sum 6.
    assert (network(x).numpy().item(), copy(x).numpy().item()) == (6.0, 6.0)
    assert {id(v.value) for v in network.variables}.isdisjoint(id(v.value) for v in copy.variables)
    copy.compile(keras.optimizers.SGD(0.01), "mse")
    copy.fit(x, np.array([[16.0]]), verbose=0)
    # The error's gradient is 2 * (6 - 16) = -20, times the hidden units 3 and times the inputs:
    # the kernels move by 0.01 * 60, 0.01 * 20 and 0.01 * 40.
    kernels = np.array([[1.2, 1.2], [1.4, 1.4]]), np.array([[1.6], [1.6]])
    np.testing.assert_allclose(copy(x), x @ kernels[0] @ kernels[1], rtol=1e-6)
    assert network(x).numpy().item() == 6.0
    inputs, outputs = one(layers.Dense(4), 3)
    fresh = clone_network(inputs, outputs, weights="fresh")
    assert not np.isclose(fresh.weights[0], keras.Model(inputs, outputs).weights[0]).any()


def test_a_shared_layer_is_copied_once():
    x, y = keras.Input((3,)), keras.Input((3,))
    shared = layers.Dense(3, name="shared")
    inner = keras.Sequential([keras.Input((3,)), shared])
    copy = clone_network([x, y], [shared(x), inner(y), shared(shared(y))])
    assert len(copy.trainable_variables) == 2
    x = tf.constant(batch(3))
    first, second, third = copy([x, x])
    assert equal(first, second)
    assert equal(copy.get_layer("shared")(first), third)


def test_flags_of_layers_and_variables_are_kept():
    x = keras.Input((3,))
    block = keras.Sequential(
        [keras.Input((3,)), layers.Dense(3, name="a"), layers.Dense(3, name="b")]
    )
    frozen, single, outer = layers.BatchNormalization(), layers.Dense(3), Attending(2)
    tensor = outer(ops.reshape(single(frozen(block(x))), (-1, 1, 3)))
    frozen.trainable = False
    block.get_layer("a").trainable = False
    single.bias.trainable = False
    outer.out.trainable = False
    model = keras.Model(x, tensor)
    copy = clone_network(x, tensor)

    def flags(network):
        every = network._flatten_layers()
        return [(layer.trainable, [v.trainable for v in layer.variables]) for layer in every]

    assert flags(copy) == flags(model)
    assert len(copy.trainable_variables) == len(model.trainable_variables)
    assert len(copy.trainable_variables) < len(copy.variables)
    whole = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    whole.trainable = False
    assert clone_network(whole).trainable_variables == []


def test_statistics_and_seeds_go_on_as_in_the_original():
    x, y = one(layers.BatchNormalization(momentum=0.5), 2)
    y = layers.Dropout(0.5, seed=3)(y)
    model = keras.Model(x, y)
    data = np.array([[0.0, 4.0], [2.0, 8.0]], "f")
    model(data, training=True)
    copy = clone_network(x, y)
    # 0.5 * 0 + 0.5 * mean, and 0.5 * 1 + 0.5 * variance.
    np.testing.assert_allclose(copy.layers[1].moving_mean, [0.5, 3.0])
    np.testing.assert_allclose(copy.layers[1].moving_variance, [1.0, 2.5])
    for _ in range(2):
        assert equal(model(data, training=True), copy(data, training=True))
    copy(data, training=True)
    np.testing.assert_allclose(model.layers[1].moving_mean, [0.875, 5.25])


def test_the_states_of_a_stateful_layer_are_its_own():
    x = keras.Input(batch_shape=(2, 3, 1))
    y = layers.SimpleRNN(1, stateful=True, kernel_initializer="ones", activation=None)(x)
    model = keras.Model(x, y)
    data = np.ones((2, 3, 1), "f")
    model(data)
    copy = clone_network(x, y)
    kept = values(model)
    later = arrays(copy(data))
    assert equal(values(model), kept)
    assert equal(model(data), later)


def test_masks_are_copied_and_then_their_own():
    x = keras.Input((3,))
    layer = MaskedDense(2, use_bias=False, kernel_initializer="ones")
    y = layer(x)
    layer.prune_kernel([[1, 0], [1, 1], [1, 1]])
    layer.freeze_kernel([[0, 1], [1, 1], [1, 1]])
    copy = clone_network(x, y)
    copied = copy.layers[1].masked_weight("kernel")
    assert copied.kept.tolist() == [[True, False], [True, True], [True, True]]
    assert copied.trainable.tolist() == [[False, True], [True, True], [True, True]]
    copy.compile(keras.optimizers.SGD(0.5), "mse")
    copy.fit(np.ones((4, 3)), np.zeros((4, 2)), verbose=0)
    assert copied.numpy()[0].tolist() == [1.0, 0.0]
    assert (copied.numpy()[1:] != 1).all()
    copy.layers[1].prune_kernel([[1, 0], [0, 1], [1, 1]])
    assert layer.masked_weight("kernel").kept.sum() == 5


def test_a_wrapped_class_of_the_user_needs_no_name_that_keras_knows():
    class Cell(layers.Layer):
        def __init__(self, units, **settings):
            super().__init__(**settings)
            self.state_size = self.output_size = units

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], self.output_size), name="kernel")

        def call(self, x, states):
            return tf.matmul(x, self.kernel) + states[0], [states[0] + 1.0]

        def get_config(self):
            return {**super().get_config(), "units": self.output_size}

    def twice(x):
        return 2.0 * x

    with keras.saving.custom_object_scope({"Cell": Cell, "twice": twice}):
        x = keras.Input((4, 3))
        y = layers.Bidirectional(layers.RNN(Cell(2), return_sequences=True))(x)
        y = layers.TimeDistributed(layers.Dense(2, activation=twice))(y)
    copy, data = clone_network(x, y), batch(4, 3)
    assert equal(copy(data), keras.Model(x, y)(data))


def test_a_lambda_keeps_the_names_that_it_uses():
    # Keras would look `helper` up in a module of its own.
    def helper(x):
        return x + 5.0

    x, y = one(layers.Lambda(lambda z: helper(z + 0.0)), 2)
    copy = clone_network(x, y)
    np.testing.assert_array_equal(copy(np.zeros((1, 2), "f")), [[5.0, 5.0]])
    assert copy.layers[1].function.__name__ == "<lambda>"


def test_settings_that_were_changed_after_construction_are_kept():
    x = keras.Input((3,))
    dense, drop = layers.Dense(3), layers.Dropout(0.1)
    y = drop(dense(x))
    dense.activation, drop.rate = keras.activations.relu, 0.9
    copy = clone_network(x, y)
    assert copy.layers[2].rate == 0.9
    assert float(tf.reduce_min(copy(batch(3)))) == 0.0


def test_a_call_that_always_trains():
    x = keras.Input((50,))
    y = layers.Dropout(0.5)(x, training=True)
    copy = clone_network(x, y)
    found = copy(np.ones((1, 50), "f")).numpy()
    assert set(found.ravel().tolist()) == {0.0, 2.0}
    assert equal(keras.Model(x, y)(np.ones((1, 50), "f")), found)


def test_losses_of_layers_are_the_same():
    class Penalty(layers.Layer):
        def call(self, x):
            self.add_loss(3.0 * tf.reduce_sum(x))
            return x

    x = keras.Input((2,))
    dense = layers.Dense(
        2, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L1(0.5)
    )
    model = keras.Model(x, Penalty()(dense(x)))
    model(np.ones((1, 2), "f"))
    kept = [float(loss) for loss in model.losses]
    copy = clone_network(model)
    assert [float(loss) for loss in model.losses] == kept
    copy(np.ones((1, 2), "f"))
    # 3 * (2 + 2), and 0.5 for each of four ones.
    assert [float(loss) for loss in copy.losses] == [12.0, 2.0]


def test_policies_are_those_of_the_original():
    x = keras.Input((3,))
    y = layers.Dense(2, dtype="mixed_float16")(Scaled()(x))
    z = layers.Dense(2, dtype="float64")(y)
    copy = clone_network(x, z)
    assert [layer.dtype_policy.name for layer in copy.layers[1:]] == [
        "float32",
        "mixed_float16",
        "float64",
    ]


def test_a_variable_that_no_layer_owns_is_copied():
    weight = keras.Variable(np.ones((3, 2), "f"), name="weight")
    x = keras.Input((3,))
    copy = clone_network(x, ops.matmul(x, weight))
    weight.assign(np.zeros((3, 2)))
    np.testing.assert_array_equal(copy(np.ones((1, 3), "f")), [[3.0, 3.0]])


def test_operations_of_the_original_stay_as_they_were():
    x = keras.Input((3,))
    dense = layers.Dense(3)
    hidden = dense(x)
    y = ops.relu(hidden)
    operation = y._keras_history.operation
    before = len(operation._inbound_nodes), len(dense._inbound_nodes), len(dense._outbound_nodes)
    clone_network(hidden, y)
    clone_network(x, y)
    after = len(operation._inbound_nodes), len(dense._inbound_nodes), len(dense._outbound_nodes)
    assert before == after == (1, 1, 1)


def test_several_classes_of_models_and_layers():
    class Trained(keras.Model):
        def train_step(self, data):
            return {}

    x = keras.Input((2,))
    model = Trained(x, layers.Dense(2)(x))
    copy = clone_network(model, name="other")
    assert (type(copy), copy.name) == (Trained, "other")
    layer = layers.Dense(2)
    layer.build((None, 3))
    alone = clone_network(layer)
    assert equal(values(layer), values(alone))
    move(alone)
    assert not equal(values(layer), values(alone))


def test_a_model_with_several_arguments_needs_an_example():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, a, b):
            return self.dense(a) + b

    model, data = Two(), (batch(2), batch(3))
    model(*data)
    copy = clone_network(model, example=data)
    assert equal(copy(*data), model(*data))
    assert [v.path for v in copy.variables] == [v.path for v in model.variables]
