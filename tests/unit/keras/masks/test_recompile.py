"""One callback over several fits, with a new optimizer in between."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet

X, Y = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)  # 4 batches of 2


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])


def fit(model, callback, epochs=1):
    model.fit(X, Y, batch_size=2, epochs=epochs, verbose=0, callbacks=[callback])


def lineages(logdir):
    return len(list(logdir.iterdir()))


def test_steps_go_on_after_a_new_compile(model, tmp_path):
    callback = pastnet.PastNetCallback(tmp_path, every=1)
    for expected in (4, 8, 12):
        model.layers[0].trainable = not model.layers[0].trainable
        model.compile(keras.optimizers.Adam(), "mse")
        fit(model, callback)
        assert callback.recorder.last_step == expected
    fit(model, callback)
    assert callback.recorder.last_step == 16
    callback.close()
    assert lineages(tmp_path) == 1


def test_an_optimizer_that_goes_back_still_starts_a_lineage(model, tmp_path):
    callback = pastnet.PastNetCallback(tmp_path, every=1)
    for _ in range(2):
        model.compile(keras.optimizers.SGD(), "mse")
        fit(model, callback)
    model.optimizer.iterations.assign(2)  # as a restored checkpoint would: 4 and 2 steps
    fit(model, callback)
    assert callback.recorder.last_step == 10
    callback.close()
    assert lineages(tmp_path) == 2


def test_a_new_optimizer_from_a_checkpoint_counts_from_there(model, tmp_path):
    callback = pastnet.PastNetCallback(tmp_path, every=1)
    model.compile(keras.optimizers.SGD(), "mse")
    fit(model, callback, epochs=2)
    model.compile(keras.optimizers.SGD(), "mse")
    model.optimizer.iterations.assign(4)
    fit(model, callback)
    assert callback.recorder.last_step == 8
    callback.close()
    assert lineages(tmp_path) == 2
