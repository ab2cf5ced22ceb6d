"""The wrapper over the layers of Keras: it computes what they compute, with the effective weights."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import UnknownName
from tb_pastnet.keras.layers.masked import Masked, MaskedDense

RNG = np.random.default_rng(0)


def attention():
    layer = layers.MultiHeadAttention(2, 3)
    layer.build((None, 5, 4), (None, 5, 4))
    return layer


LAYERS = {
    "Dense": (lambda: layers.Dense(4, "relu"), (6,)),
    "Conv2D": (lambda: layers.Conv2D(4, 3), (5, 5, 2)),
    "Conv1DTranspose": (lambda: layers.Conv1DTranspose(4, 3), (5, 2)),
    "DepthwiseConv2D": (lambda: layers.DepthwiseConv2D(3, depth_multiplier=2), (5, 5, 2)),
    "SeparableConv1D": (lambda: layers.SeparableConv1D(4, 3), (5, 2)),
    "EinsumDense": (lambda: layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"), (5, 3)),
    "LSTM": (lambda: layers.LSTM(3), (5, 4)),
    "GRU": (lambda: layers.GRU(3, return_sequences=True), (5, 4)),
    "ConvLSTM1D": (lambda: layers.ConvLSTM1D(3, 2), (4, 5, 2)),
    "Bidirectional": (lambda: layers.Bidirectional(layers.LSTM(3)), (5, 4)),
    "StackedRNN": (lambda: layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)]), (5, 4)),
    "TimeDistributed": (lambda: layers.TimeDistributed(layers.Dense(3)), (5, 4)),
    "BatchNormalization": (layers.BatchNormalization, (6,)),
    "LayerNormalization": (layers.LayerNormalization, (6,)),
    "Sequential": (lambda: keras.Sequential([layers.Dense(3, "relu"), layers.Dense(2)]), (6,)),
    "MultiHeadAttention": (attention, (5, 4)),
}


def hold(layer):
    for weight in layer.masked_weights():
        weight.prune(RNG.random(weight.shape) > 0.3)
        weight.freeze((RNG.random(weight.shape) > 0.3) | ~weight.kept)


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_computes_with_its_effective_weights(name):
    make, shape = LAYERS[name]
    keras.utils.set_random_seed(1)
    layer = Masked(make())
    x = RNG.normal(size=(2, *shape)).astype("f")
    inputs = (x, x) if name == "MultiHeadAttention" else (x,)
    stock = layer.layer
    np.testing.assert_array_equal(layer(*inputs).numpy(), stock(*inputs).numpy())
    hold(layer)
    effective = [weight.numpy() for weight in layer.masked_weights()]
    for weight in layer.masked_weights():  # as an optimizer would drift
        weight.weight.assign(weight.weight.numpy() + np.where(weight.trainable & weight.kept, 0, 9))
    with tf.GradientTape() as tape:
        output = layer(*inputs)
        loss = tf.reduce_sum(output**2)
    trained = [weight.weight for weight in layer.masked_weights()]
    gradients = tape.gradient(loss, [variable.value for variable in trained])
    for weight, gradient in zip(layer.masked_weights(), gradients, strict=True):
        if gradient is not None:  # of the keys' bias in attention there is none
            held = ~(weight.kept & weight.trainable)
            assert (tf.convert_to_tensor(gradient).numpy()[held] == 0).all()
    for variable, value in zip(trained, effective, strict=True):
        variable.assign(value)
    np.testing.assert_allclose(output, stock(*inputs), rtol=1e-5, atol=1e-6)


def test_statistics_and_seeds_go_on():
    def outputs(layer):
        made = [layer(x, training=True).numpy() for _ in range(3)]
        return made, [variable.numpy() for variable in layer.non_trainable_variables]

    x = RNG.normal(size=(8, 4)).astype("f")
    for make in (layers.BatchNormalization, lambda: layers.Dropout(0.5, seed=3)):
        ours, ours_state = outputs(Masked(make()))
        stock, stock_state = outputs(make())
        np.testing.assert_allclose(ours, stock, rtol=1e-6)
        for ours_one, stock_one in zip(ours_state[-len(stock_state) :], stock_state, strict=True):
            np.testing.assert_allclose(ours_one, stock_one, rtol=1e-6)
    assert (ours[0] != ours[1]).any()


class Noisy(layers.Layer):
    """A cell that draws a random number in each turn of the loop over time."""

    def __init__(self):
        super().__init__()
        self.state_size = self.output_size = 2
        self.dense, self.dropout = layers.Dense(2), layers.Dropout(0.5, seed=1)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, inputs, states, training=None):
        made = self.dropout(self.dense(inputs) + states[0], training=training)
        return made, [made]


def test_seeds_in_a_loop_go_on():
    def fitted(wrap):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((5, 3)), wrap(layers.RNN(Noisy()))])
        model.compile("sgd", "mse")
        x = np.random.default_rng(1).normal(size=(4, 5, 3))
        history = model.fit(x, np.ones((4, 2)), epochs=3, verbose=0)
        return history.history["loss"]

    np.testing.assert_allclose(fitted(Masked), fitted(lambda layer: layer), rtol=1e-5)


def test_a_training_step_without_side_effects():
    layer = Masked(layers.BatchNormalization(), name="norm")
    x = RNG.normal(size=(8, 4)).astype("f")
    layer.build(x.shape)
    before = [variable.numpy() for variable in layer.non_trainable_variables]
    trainable = [variable.value + 1 for variable in layer.trainable_variables]
    fixed = [variable.value for variable in layer.non_trainable_variables]
    output, after = layer.stateless_call(trainable, fixed, x, training=True)
    np.testing.assert_allclose(output.numpy().mean(axis=0), np.ones(4), atol=1e-5)
    changed = [(a != b).any() for a, b in zip(before, map(np.asarray, after), strict=True)]
    assert sum(changed) == 2
    for one, variable in zip(before, layer.non_trainable_variables, strict=True):
        np.testing.assert_array_equal(one, variable.numpy())


def test_losses_and_constraints_see_the_effective_weights():
    inner = layers.Dense(
        3,
        kernel_regularizer=keras.regularizers.L2(0.5),
        activity_regularizer=keras.regularizers.L1(1.0),
        kernel_constraint=keras.constraints.MaxNorm(1.0),
        kernel_initializer="ones",
    )
    x = np.ones((2, 4), "f")
    inner(x)
    # Four weights of 1 to each of three activities, in two rows.
    per_batch = 24 / (sum(float(loss) for loss in inner.losses) - 6)
    layer = Masked(inner)
    layer(x)
    layer.prune_kernel([[0, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
    raw = inner.kernel.numpy()
    raw[0, 0] = 100
    inner.kernel.assign(raw)
    layer._clear_losses()
    layer(x)
    # 11 weights of 1; activities of 3, 4 and 4 in both rows, over the batch or not as Keras does it.
    penalty, activity = sorted(float(loss) for loss in layer.losses)
    assert penalty == pytest.approx(5.5)
    assert activity == pytest.approx(22 / per_batch)
    constrained = np.asarray(inner.kernel.constraint(inner.kernel))
    np.testing.assert_allclose(constrained[:, 0], [100, *[3**-0.5] * 3], rtol=1e-5)


def test_masks_over_time_go_through():
    model = keras.Sequential(
        [keras.Input((4,)), Masked(layers.Embedding(5, 3, mask_zero=True)), Masked(layers.LSTM(2))]
    )
    stock = keras.Sequential([layer.layer for layer in model.layers])
    x = np.array([[1, 2, 0, 0], [1, 0, 3, 4]])
    np.testing.assert_allclose(model(x), stock(x), rtol=1e-6)
    assert not np.allclose(model(x)[0], model(np.where(x == 0, 1, x))[0])


def test_a_masked_layer_at_every_time_step():
    masked, inputs = MaskedDense(4), keras.Input((5, 3))
    model = keras.Model(inputs, layers.TimeDistributed(masked)(inputs))
    masked.prune_kernel(np.arange(12).reshape(3, 4) % 2)
    x = RNG.normal(size=(2, 5, 3)).astype("f")
    expected = x @ masked.masked_weight("kernel").numpy()
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)


def test_layers_that_their_model_builds_in_its_call():
    class Late(keras.Model):
        def __init__(self):
            super().__init__(dtype="mixed_float16")
            self.first = MaskedDense(4, dtype="mixed_float16")
            self.second = Masked(layers.Dense(2, dtype="float32"))

        def call(self, inputs):
            return self.second(self.first(inputs))

    model = Late()
    model.compile("adam", "mse")
    x = np.ones((4, 3), "f")
    model.fit(x, np.ones((4, 2)), verbose=0)
    model.first.freeze_kernel()
    before = model.first.masked_weight("kernel").numpy()
    model.fit(x, np.ones((4, 2)), verbose=0)
    np.testing.assert_array_equal(model.first.masked_weight("kernel").numpy(), before)
    assert (model.first.compute_dtype, model.second.compute_dtype) == ("float16", "float32")
    assert before.dtype == np.float32


def test_what_the_methods_do():
    layer = MaskedDense(2, kernel_initializer="ones", bias_initializer="ones")
    layer.build((None, 2))
    kernel, bias = layer.masked_weights()
    layer.prune_bias([0, 1])
    layer.prune_bias_below_threshold(2.0)
    assert bias.kept.tolist() == [False, False]
    layer.regrow("bias", [1, 0])
    assert (bias.kept.tolist(), bias.numpy().tolist()) == ([True, False], [0, 0])
    layer.freeze_bias()
    assert bias.trainable.tolist() == [False, True]
    layer.freeze("kernel", [[0, 0], [1, 1]])
    layer.thaw("kernel", [[1, 0], [0, 0]])
    assert kernel.trainable.tolist() == [[True, False], [True, True]]
    layer.prune("kernel", [[1, 0], [1, 1]])
    layer.regrow("kernel")
    # Pruning ends freezing, as both can't hold at different values.
    assert kernel.trainable.all()
    assert kernel.numpy().tolist() == [[1, 0], [1, 1]]
    assert layer.units == 2


def test_names_below_a_layer_of_layers():
    layer = Masked(attention())
    x = np.ones((1, 5, 4), "f")
    layer(x, x)
    layer.prune("query/kernel", np.arange(24).reshape(4, 2, 3) % 2)
    assert layer.masked_weight("query/kernel").kept.sum() == 12
    with pytest.raises(UnknownName):
        layer.prune_kernel(np.ones(3))
    with pytest.raises(UnknownName):
        layer.freeze("queri/kernel")


def test_a_layer_without_weights_and_one_without_a_bias():
    assert Masked(layers.ReLU())(np.array([-1.0, 2.0])).numpy().tolist() == [0, 2]
    layer = MaskedDense(2, use_bias=False)
    layer.build((None, 2))
    with pytest.raises(UnknownName, match="bias"):
        layer.prune_bias([1, 1])
