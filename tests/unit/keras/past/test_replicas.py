"""The past of variables that a strategy keeps on two devices, or in two workers."""

from __future__ import annotations

import pytest

PROGRAM = """
import numpy as np
import keras
import tensorflow as tf
import tb_pastnet as pastnet

keras.utils.set_random_seed(0)
with strategy.scope():
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(100), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(1e-3)
    optimizer.build(model.trainable_variables)
past = pastnet.PastNetwork(model, past=getattr(pastnet, kind)(model.variables))
x = tf.ones((4, 64))


def update(x, before):
    with tf.GradientTape() as tape:
        value = tf.reduce_mean((model(x) - before - 1) ** 2)
    gradients = tape.gradient(value, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)


@tf.function
def train(x):
    before = strategy.run(past, (x,))
    with past.step():
        strategy.run(update, (x, before))
    return before


outputs = [model(x).numpy()]
for _ in range(3):
    given = strategy.experimental_local_results(train(x))
    assert len(given) == local
    for replica in given:
        np.testing.assert_allclose(replica, outputs[-2:][0], atol=1e-3)
    outputs.append(model(x).numpy())
    assert np.abs(outputs[-1] - outputs[-2]).min() > 0.05
    np.testing.assert_allclose(past(x), outputs[-2], atol=1e-3)
print("one step ago in", len(given))
"""


@pytest.mark.parametrize("kind", ["PastVariables", "PastDeltas"])
def test_each_replica_sees_the_network_of_one_step_ago(two_devices, kind):
    assert "one step ago in 2" in two_devices.run(PROGRAM, kind=kind, local=2)


@pytest.mark.parametrize("kind", ["PastVariables", "PastDeltas"])
def test_each_worker_sees_the_network_of_one_step_ago(two_workers, kind):
    assert two_workers.run(PROGRAM, kind=kind, local=1) == ["one step ago in 1\n"] * 2
