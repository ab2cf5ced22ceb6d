from __future__ import annotations

import keras
import numpy as np
import pytest

from demo.digits import digits, network
from demo.masks import GradientMasks, MaskedGradients, PruneSmallest, ZeroChannels, leaves

LAYERS = ["conv1", "conv2", "conv1", "conv2", "hidden", "logits"]


@pytest.fixture(scope="module")
def images():
    data = digits()
    return data.train[0][:64], data.train[1][:64]


def compiled(model, optimizer):
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def norms(layer):
    kernel = layer.kernel.numpy()
    return np.sqrt((kernel**2).reshape(-1, kernel.shape[-1]).sum(0))


def test_leaves_are_the_layers_in_forward_order():
    assert [layer.name for layer in leaves(network())] == LAYERS


def test_pruning_takes_the_smallest_channels_and_holds_them_at_zero(images):
    model = compiled(network(ZeroChannels), keras.optimizers.Adam())
    layer = leaves(model)[0]
    smallest = np.argsort(norms(layer))[:4]
    prune = PruneSmallest((0, 9), share=0.5)  # a quarter now, a quarter never reached
    model.fit(*images, epochs=2, verbose=0, callbacks=[prune])
    assert sorted(np.flatnonzero(norms(layer) == 0)) == sorted(smallest)
    assert np.flatnonzero(layer.bias.numpy() == 0).tolist() == sorted(smallest)
    assert (norms(leaves(model)[-1]) > 0).all()


def test_a_second_step_of_pruning_keeps_the_first(images):
    model = compiled(network(ZeroChannels), keras.optimizers.Adam())
    layer = leaves(model)[0]
    steps = []
    zeros = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: steps.append(set(np.flatnonzero(norms(layer) == 0)))
    )
    model.fit(*images, epochs=2, verbose=0, callbacks=[PruneSmallest((0, 1), 0.5), zeros])
    assert [len(step) for step in steps] == [4, 8]
    assert steps[0] < steps[1]


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
