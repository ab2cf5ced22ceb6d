"""A frozen base of Keras without copies of its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet


def network(dtype: str) -> Any:
    keras.utils.set_random_seed(2)
    base = keras.layers.Dense(65, name="base", dtype=keras.DTypePolicy(dtype))
    norm = keras.layers.BatchNormalization(name="norm")
    model = keras.Sequential([keras.Input((3,)), base, norm, keras.layers.Dense(2, name="head")])
    base.trainable = norm.trainable = False
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_a_frozen_layer_is_compared_by_fingerprints(dtype: str, tmp_path: Path) -> None:
    model, x = network(dtype), np.random.default_rng(0).normal(size=(8, 3)).astype("f4")
    callback = pastnet.PastNetCallback(tmp_path, every=1, audit="fingerprints")

    class Leak(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                kernel = model.get_layer("base").kernel
                value = np.array(kernel.value)
                value[2, 64] = -value[2, 64]
                kernel.assign(value)

    model.fit(x, x[:, :2], batch_size=2, epochs=1, verbose=0, callbacks=[Leak(), callback])
    (run,) = pastnet.read(tmp_path).runs.values()
    (violation,) = run.violations
    assert (violation.variable, violation.channel, violation.cause) == ("base/kernel", 64, "loaded")
    assert violation.elements is None
    assert run.verified.by == "64-bit fingerprint"
    delta = run.variables["base/kernel"].delta_norm
    assert np.isnan(delta[violation.first_step - 1, 64])
    assert np.nansum(delta) == 0
    assert (run.variables["head/kernel"].delta_norm > 0).all()
