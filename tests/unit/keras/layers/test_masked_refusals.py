from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet.errors import InvalidArgument, UnsupportedBackend
from tb_pastnet.keras.layers.masked import Masked, MaskedDense

X = np.ones((2, 3), "f")


def quantized():
    layer = layers.Dense(2, name="inner")
    layer.build((None, 3))
    layer.quantize("int8")
    return layer


class Nested(layers.Dense):
    @tf.function
    def call(self, inputs):
        return tf.matmul(inputs, self.kernel)


REFUSED = {
    "SpectralNormalization": (
        lambda: layers.SpectralNormalization(layers.Dense(2), name="inner"),
        "one that writes them. Mask the layers around it, or remove it.",
    ),
    "stateful": (
        lambda: layers.LSTM(2, stateful=True, name="inner"),
        "one with stateful=True. Pass its states from call to call yourself.",
    ),
    "LoRA": (
        lambda: layers.Dense(2, lora_rank=1, name="inner"),
        "one with LoRA matrices. Merge these first, by saving and loading the model.",
    ),
    "quantized": (quantized, "one quantized to int8. Mask it before you quantize."),
    "tf.function": (
        lambda: Nested(2, name="inner"),
        (
            "one whose call is a tf.function, which reads them by itself. Take @tf.function from "
            "its call; fit compiles the whole step anyway."
        ),
    ),
    "masked": (lambda: MaskedDense(2, name="inner"), "one that owns masks. Wrap the layer only once."),
    "inside": (
        lambda: keras.Sequential([layers.GRU(2, stateful=True, name="inner")]),
        "one with stateful=True. Pass its states from call to call yourself.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_layers_whose_weights_are_not_what_they_compute_with(kind):
    make, text = REFUSED[kind]
    with pytest.raises(InvalidArgument) as error:
        Masked(make())
    assert str(error.value) == (
        f"Could not mask 'inner': expected a layer that computes with its weights as they are, got "
        f"{text}"
    )


def test_what_is_no_layer():
    with pytest.raises(InvalidArgument) as error:
        Masked("dense")
    assert str(error.value) == (
        "Could not mask 'dense': expected a Keras layer, got str. Pass a layer, such as "
        "keras.layers.Dense(8)."
    )


def test_lora_of_a_masked_dense():
    with pytest.raises(InvalidArgument, match="got one with LoRA matrices"):
        MaskedDense(2, lora_rank=1)


def test_what_becomes_of_a_layer_after_it_was_wrapped():
    layer = Masked(layers.Dense(2))
    layer(X)
    layer.layer.quantize("int8")
    with pytest.raises(InvalidArgument, match="got one quantized to int8"):
        layer(X)
    layer = MaskedDense(2)
    layer(X)
    layer.layer.enable_lora(1)
    with pytest.raises(InvalidArgument, match="got one with LoRA matrices"):
        layer(X)


class Writing(layers.Dense):
    def call(self, inputs):
        self.kernel.assign(self.kernel / 2)
        return super().call(inputs)


def test_a_layer_that_writes_its_weights():
    with pytest.raises(InvalidArgument) as error:
        Masked(Writing(2), name="outer")(X)
    # Keras says around it which call it was.
    assert (
        "Could not hold the weights of 'outer': expected a layer that leaves them to the optimizer,"
        " got one that writes 'kernel' in call. Mask the layers around it."
    ) in str(error.value)


def test_several_inputs_that_nothing_is_known_of():
    with pytest.raises(InvalidArgument) as error:
        Masked(layers.MultiHeadAttention(2, 3, name="inner"), name="outer")(X[None], X[None])
    assert str(error.value) == (
        "Could not build 'outer': expected a layer with one input, or one that is built, got "
        "'inner' with several. Call its build() first."
    )


def test_masks_before_the_weights():
    with pytest.raises(InvalidArgument) as error:
        MaskedDense(2, name="outer").prune_kernel([[1, 0]])
    assert str(error.value) == (
        "Could not find 'kernel' of 'outer': expected a built layer, got one without weights. Call "
        "it, or its build(input_shape), first."
    )


def test_all_of_a_kernel():
    layer = MaskedDense(2, name="outer")
    layer.build((None, 3))
    with pytest.raises(InvalidArgument) as error:
        layer.prune_kernel(np.zeros((3, 2)))
    assert str(error.value) == (
        "Could not prune 'outer/kernel': expected some of its 6 weights to stay, got none, which "
        "cuts the network there. Remove the layer, or leave at least one weight."
    )
    with pytest.raises(InvalidArgument, match="got none"):
        layer.prune_kernel_below_threshold(1e9)
    layer.prune_bias([0, 0])
    with pytest.raises(InvalidArgument) as error:
        layer.freeze_bias([0, 1])
    assert str(error.value) == (
        "Could not freeze 'outer/bias': expected weights that aren't pruned, got 1 that are all "
        "pruned and held at zero. Regrow them first."
    )


@pytest.mark.parametrize("method", ["prune_kernel", "freeze_kernel"])
def test_masks_of_another_shape_or_value(method):
    layer = MaskedDense(2, name="outer")
    layer.build((None, 3))
    word = "kept" if method == "prune_kernel" else "trainable"
    with pytest.raises(InvalidArgument) as error:
        getattr(layer, method)([1, 0])
    assert str(error.value).startswith(
        f"Could not use the {word} mask of 'outer/kernel': expected shape (3, 2), got (2,). "
    )
    with pytest.raises(InvalidArgument, match="expected only 0 and 1, got 6 other values"):
        getattr(layer, method)(np.full((3, 2), 0.5))
    with pytest.raises(InvalidArgument, match="expected a magnitude from 0 on, got -1"):
        layer.prune_kernel_below_threshold(-1)


def test_another_backend(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UnsupportedBackend) as error:
        MaskedDense(2)
    assert str(error.value) == (
        "Could not make a masked layer: expected the TensorFlow backend, got 'jax'. Set "
        "KERAS_BACKEND=tensorflow before Keras is imported; PastNetCallback records on every "
        "backend."
    )
