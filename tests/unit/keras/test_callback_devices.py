"""The callbacks while Keras's fit trains on two devices."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.statistics import DELTA_NORM, KEPT, NORM
from tests.masked import SHAPES
from tests.recorded import read_one

PROGRAM = """
import keras
import numpy as np
import tensorflow as tf
from tb_pastnet import Masks, PastNetCallback, PolynomialDecay, PruningCallback
from tests import masked

if not mirrored:
    strategy = tf.distribute.get_strategy()
x, y = masked.data(32)

class Weights(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        values.append(self.model.get_weights())
        losses.append(logs["loss"])

def fit(*callbacks):
    model.fit(
        x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[*callbacks, Weights()]
    )

def made():
    with strategy.scope():
        model = masked.network(optimizer=keras.optimizers.Adam(0.01))
    return model, Masks(model)

found = []
for recorded in (False, True):
    model, masks = made()
    values, losses = [model.get_weights()], []
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.5, 2, 6), every=2)
    recording = PastNetCallback(logdir, every=1, probe=x[:4])
    fit(pruning, *[recording] * recorded)
    recording.close()
    found.append((values, losses))

(values, losses), (again, told) = found
assert losses == told
for one, other in zip(values, again):
    assert all(masked.bits(a) == masked.bits(b) for a, b in zip(one, other))
np.savez(weights, *[array for at in values for array in at])
print(round(masks.sparsity(), 6))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, two_devices):
    """By whether two devices trained: the log, the weights that were fetched, and the sparsity."""
    folder, found = tmp_path_factory.mktemp("trained"), {}
    for mirrored in (False, True):
        weights, logdir = folder / f"{mirrored}.npz", folder / str(mirrored)
        said = two_devices.run(PROGRAM, mirrored=mirrored, weights=str(weights), logdir=str(logdir))
        with np.load(weights) as stored:
            arrays = [stored[f"arr_{number}"] for number in range(len(stored.files))]
        values = [arrays[at : at + len(SHAPES)] for at in range(0, len(arrays), len(SHAPES))]
        found[mirrored] = read_one(logdir), values, float(said)
    return found


def test_numbers_are_those_of_the_weights_and_losses_stay_bit_identical(trained):
    log, values, sparsity = trained[True]
    assert log.record_steps() == list(range(1, 9))
    assert (log.last.notes, log.last.closed) == ({}, True)
    for number, name in enumerate(SHAPES):
        now = np.stack([at[number] for at in values]).astype(np.float64)
        now = now.reshape(len(values), -1, SHAPES[name][-1])
        told = log.values(name)
        np.testing.assert_allclose(told[:, NORM], np.linalg.norm(now[1:], axis=1), rtol=0.023)
        moved = np.linalg.norm(np.diff(now, axis=0), axis=1)
        np.testing.assert_allclose(told[:, DELTA_NORM], moved, rtol=0.023)
    assert sparsity == pytest.approx(0.5, abs=0.02)


def test_the_picture_is_that_of_one_device(trained):
    (one, before, sparsity), (two, values, same) = trained[False], trained[True]
    assert sparsity == same
    assert two.record_steps() == one.record_steps()
    for known, now in zip(before, values, strict=True):
        for a, b in zip(known, now, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)
    for name in SHAPES:
        assert (two.values(name)[:, KEPT] == one.values(name)[:, KEPT]).all()
    bits = [
        [(change.variable, change.step, change.mask) for _, change in sorted(log.changes.items())]
        for log in (one, two)
    ]
    assert bits[0] == bits[1] != []
