"""Weights that are meant to learn and stand still are told from those that move by a hair."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from tests.commands import command

LAYERS = 20


def test_ten_that_the_optimizer_was_never_given_and_ten_that_are_slow(tmp_path: Path) -> None:
    keras.utils.set_random_seed(4)
    inputs = keras.Input((3,))
    parts = [keras.layers.Dense(2, use_bias=False, name=f"part{n}") for n in range(LAYERS)]
    model = keras.Model(inputs, keras.layers.Add()([part(inputs) for part in parts]))
    slow, forgotten = parts[::2], parts[1::2]
    optimizer = keras.optimizers.SGD(1e-6)
    x, y = np.random.default_rng(0).normal(size=(2, 8, 3)).astype("f4")
    with pastnet.Recorder(tmp_path, model, every=2, learning_rate=optimizer) as recorder:
        for step in range(1, 61):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y[:, :2]) ** 2)
            weights = [part.kernel for part in slow]
            optimizer.apply(tape.gradient(loss, weights), weights)
            recorder.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    (stalled,) = (each for each in run.findings() if each.kind == "stalled")
    assert sorted(stalled.layers) == sorted(part.name for part in forgotten)
    # They move by far less than the threshold, so that both look quiet.
    for part in parts:
        variable = run.variables[f"{part.name}/kernel"]
        assert set(variable.states()[-1]) == {"quiet"}
        assert (variable.delta_norm[-20:].max() > 0) == (part in slow)
    assert not run.violations
    done = command("report", str(tmp_path), "--fail-on", "stalled")
    assert done.code == 1
    assert command("report", str(tmp_path), "--fail-on", "violations").code == 0
