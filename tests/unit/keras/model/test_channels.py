"""The table of channel axes against real layers.

Each element of each variable is changed, one at a time: the layer's output must change in the
channel that the table names for it, and in no other.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.keras.model.tf_weights import network

RNG = np.random.default_rng(0)


def positive(*shape):
    return tf.constant(RNG.uniform(0.5, 1.5, (2, *shape)), tf.float32)


def one_token_each(rows):
    return tf.reshape(tf.range(rows), (rows, 1))


# The layer, and an input for which every element matters. Channels are the output's last axis.
CASES = {
    "Dense": (lambda: layers.Dense(3), positive(4)),
    "EinsumDense": (lambda: layers.EinsumDense("ab,bc->ac", 3, bias_axes="c"), positive(4)),
    "Conv1D": (lambda: layers.Conv1D(3, 2), positive(3, 2)),
    "Conv2D": (lambda: layers.Conv2D(3, 2), positive(3, 3, 2)),
    "Conv2D grouped": (lambda: layers.Conv2D(4, 2, groups=2), positive(3, 3, 4)),
    "Conv3D": (lambda: layers.Conv3D(2, 2), positive(2, 2, 2, 2)),
    "Conv1DTranspose": (lambda: layers.Conv1DTranspose(3, 2), positive(3, 2)),
    "Conv2DTranspose": (lambda: layers.Conv2DTranspose(3, 2), positive(3, 3, 2)),
    "Conv3DTranspose": (lambda: layers.Conv3DTranspose(3, 2), positive(2, 2, 2, 2)),
    "DepthwiseConv1D": (lambda: layers.DepthwiseConv1D(2, depth_multiplier=2), positive(3, 3)),
    "DepthwiseConv2D": (lambda: layers.DepthwiseConv2D(2, depth_multiplier=2), positive(3, 3, 3)),
    "BatchNormalization": (layers.BatchNormalization, positive(3)),
    "LayerNormalization": (layers.LayerNormalization, positive(3)),
    "GroupNormalization": (lambda: layers.GroupNormalization(3), positive(2, 2, 3)),
}
if hasattr(layers, "RMSNormalization"):  # since Keras 3.9
    CASES["RMSNormalization"] = (layers.RMSNormalization, positive(3))
RECURRENT = {
    "SimpleRNN": (lambda: layers.SimpleRNN(2), (3,)),
    "LSTM": (lambda: layers.LSTM(2), (3,)),
    "GRU": (lambda: layers.GRU(2), (3,)),
    "GRU before": (lambda: layers.GRU(2, reset_after=False), (3,)),
    "ConvLSTM2D": (lambda: layers.ConvLSTM2D(2, 2, padding="same"), (2, 2, 2)),
}


def check(model, call, name=None):
    """Changes each element of the variables, or of one of them."""
    for record in network(model).weights:
        if name is not None and record.text.id != name:
            continue
        assert record.text.verified, record.text.id
        variable = record.found.variable
        value = variable.numpy()
        members = record.axis.split(np.arange(value.size).reshape(value.shape))
        before = call().numpy()
        for at in range(value.size):
            changed = value.copy()
            changed.flat[at] += 0.25
            variable.assign(changed)
            moved = np.abs(call().numpy() - before) > 1e-6
            found = np.flatnonzero(moved.reshape(-1, moved.shape[-1]).any(axis=0))
            (channel,) = np.flatnonzero((members == at).any(axis=1))
            assert found.tolist() == [channel], (record.text.id, at)
        variable.assign(value)


def built(layer, inputs):
    """The layer in a model, its weights well away from zero."""
    model = keras.Sequential([keras.Input(inputs.shape[1:], dtype=inputs.dtype.name), layer])
    for weight in model.weights:
        weight.assign(RNG.uniform(0.3, 0.9, weight.shape))
    return model, tf.function(lambda: model(inputs))


@pytest.mark.parametrize("case", CASES)
def test_layers(case):
    make, inputs = CASES[case]
    check(*built(make(), inputs))


def unmixed(layer):
    """Lets each unit's state reach that unit alone, so that the steps don't mix units."""
    cell = layer.cell
    *others, units, columns = cell.recurrent_kernel.shape
    diagonal = np.tile(np.eye(units), columns // units) * RNG.uniform(0.3, 0.9, columns)
    cell.recurrent_kernel.assign(np.broadcast_to(diagonal, (*others, units, columns)))


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_layers(case):
    make, shape = RECURRENT[case]
    layer = make()
    model, call = built(layer, positive(3, *shape) * 0.1)
    unmixed(layer)
    check(model, call)


def test_a_bidirectional_layer():
    layer = layers.Bidirectional(layers.LSTM(2), merge_mode="concat")
    model, call = built(layer, positive(3, 3) * 0.1)
    halves = {"forward_layer": slice(0, 2), "backward_layer": slice(2, 4)}
    for side, half in halves.items():
        unmixed(getattr(layer, side))
        row = f"bidirectional/{side.replace('layer', 'lstm')}"
        for name in ("kernel", "recurrent_kernel", "bias"):
            check(model, lambda half=half: call()[..., half], f"{row}/{name}")


def test_an_embedding_by_its_rows():
    model, _ = built(layers.Embedding(4, 3), one_token_each(4))
    call = tf.function(lambda: tf.transpose(model(one_token_each(4)), (1, 2, 0)))
    check(model, call)


@pytest.mark.parametrize("kind", ["SeparableConv1D", "SeparableConv2D"])
def test_a_separable_convolution(kind):
    inputs = positive(3, 2) if kind.endswith("1D") else positive(3, 3, 2)
    layer = getattr(layers, kind)(4, 2, depth_multiplier=2)
    model, call = built(layer, inputs)
    row = network(model).layers[0].id
    check(model, call, f"{row}/pointwise_kernel")
    check(model, call, f"{row}/bias")
    # The depthwise channels come out unmixed.
    layer.pointwise_kernel.assign(np.eye(4).reshape(layer.pointwise_kernel.shape))
    check(model, call, f"{row}/depthwise_kernel")


@pytest.mark.parametrize("kind", ["MultiHeadAttention", "GroupedQueryAttention"])
def test_attention_by_its_heads(kind):
    heads, size = 2, 3
    inputs = keras.Input((4, 5))
    layer = {
        "MultiHeadAttention": lambda: layers.MultiHeadAttention(heads, size, output_shape=(heads,)),
        "GroupedQueryAttention": lambda: layers.GroupQueryAttention(size, heads, heads),
    }[kind]()
    model = keras.Model(inputs, layer(inputs, inputs))
    for weight in model.weights:
        weight.assign(RNG.uniform(0.3, 0.9, weight.shape))
    given = positive(4, 5)
    output = layer.output_dense if hasattr(layer, "output_dense") else layer._output_dense
    wide = int(output.kernel.shape[-1])
    row = network(model).layers[0].group
    call = tf.function(lambda: model(given))
    check(model, call, f"{row}/attention_output/bias") if wide == heads else None
    # Each head comes out as a channel of its own.
    apart = np.zeros((heads, size, wide), "f")
    for head in range(heads):
        apart[head, :, head] = RNG.uniform(0.3, 0.9, size)
    output.kernel.assign(apart)
    by_head = tf.function(lambda: model(given)[..., :heads])
    for part in ("query", "key", "value"):
        for name in ("kernel", "bias"):
            if (part, name) == ("key", "bias"):
                continue  # softmax takes no notice of what all keys share
            check(model, by_head, f"{row}/{part}/{name}")


def test_the_output_of_attention_belongs_to_the_head_it_takes_from():
    inputs = keras.Input((4, 5))
    layer = layers.MultiHeadAttention(2, 3)
    model = keras.Model(inputs, layer(inputs, inputs))
    given = positive(4, 5)
    (record,) = [r for r in network(model).weights if r.text.id.endswith("attention_output/kernel")]
    assert record.axis.channels == 2
    value = next(r for r in network(model).weights if r.text.id.endswith("value/kernel"))
    for silent in range(2):
        kernel = RNG.uniform(0.3, 0.9, value.text.shape).astype("f")
        kernel[:, silent] = 0
        value.found.variable.assign(kernel)
        before = model(given).numpy()
        members = record.axis.split(np.arange(30).reshape(2, 3, 5))
        weights = record.found.variable.numpy()
        for at in range(30):
            changed = weights.copy()
            changed.flat[at] += 0.25
            record.found.variable.assign(changed)
            moved = np.abs(model(given).numpy() - before).max() > 1e-6
            (head,) = np.flatnonzero((members == at).any(axis=1))
            assert moved == (head != silent)
        record.found.variable.assign(weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.LayerNormalization(axis=(-2, -1)),
        lambda: layers.EinsumDense("abc,cde->abde", (None, 2, 3)),
        layers.PReLU,
    ],
    ids=["LayerNormalization over two axes", "EinsumDense with two axes", "PReLU"],
)
def test_what_is_not_one_to_one_is_unverified(make):
    model = keras.Sequential([keras.Input((4, 5)), make()])
    main = next(r for r in network(model).weights if len(r.text.shape) > 1)
    assert not main.text.verified
    assert main.text.axis == "-1"
