from __future__ import annotations

import keras
import numpy as np
import pytest

from demo.digits import digits
from demo.keras_network import leaves, network
from demo.leak import GradientMasks, MaskedGradients


@pytest.fixture(scope="module")
def images():
    data = digits()
    return data.train[0][:64], data.train[1][:64]


def compiled(model, optimizer):
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def leaking(optimizer):
    plain = network()
    model = MaskedGradients(plain.inputs[0], plain.outputs[0], name="digits")
    model.masks = GradientMasks([leaves(model)[0]])
    model.masks.freeze(slice(0, 8))
    return compiled(model, optimizer)


def test_masked_gradients_alone_hold_a_channel_under_plain_sgd(images):
    model = leaking(keras.optimizers.SGD(0.1))
    before = leaves(model)[0].kernel.numpy()
    model.fit(*images, epochs=1, verbose=0)
    moved = (leaves(model)[0].kernel.numpy() != before).any((0, 1, 2))
    assert moved.tolist() == [False] * 8 + [True] * 8


def test_masked_gradients_leak_by_rate_times_decay_under_adamw(images):
    model = leaking(keras.optimizers.AdamW(learning_rate=2e-3, weight_decay=0.1))
    before = leaves(model)[0].kernel.numpy()
    model.fit(*images, batch_size=64, epochs=1, verbose=0)
    after = leaves(model)[0].kernel.numpy()
    np.testing.assert_allclose(after[..., :8], before[..., :8] * (1 - 2e-4), rtol=1e-6)
