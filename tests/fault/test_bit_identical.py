"""Losses and weights are the same bits with and without whatever observes, under every optimizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet

pytestmark = [pytest.mark.promise("failing_internals"), pytest.mark.prove]

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.01),
    "Adam": lambda: keras.optimizers.Adam(0.01, amsgrad=True, clipnorm=0.5),
    "AdamW": lambda: keras.optimizers.AdamW(0.01, use_ema=True, ema_overwrite_frequency=3),
    "Adadelta": lambda: keras.optimizers.Adadelta(0.5),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.05),
    "Adamax": lambda: keras.optimizers.Adamax(0.01),
    "Adafactor": lambda: keras.optimizers.Adafactor(0.01),
    "Nadam": lambda: keras.optimizers.Nadam(0.01),
    "Ftrl": lambda: keras.optimizers.Ftrl(0.05),
    "Lion": lambda: keras.optimizers.Lion(0.01),
    "accumulating": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 6)).astype("f"), RNG.normal(size=(24, 3)).astype("f")


class Recording(keras.callbacks.Callback):
    """A Recorder of the user's own, called from a callback."""

    def __init__(self, logdir: Path) -> None:
        super().__init__()
        self.logdir, self.step = logdir, 0

    def on_train_begin(self, logs: Any = None) -> None:
        self.recorder = pastnet.Recorder(self.logdir, self.model, every=1, past=3, initial_step=0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.step += 1
        self.recorder.record(self.step)

    def on_train_end(self, logs: Any = None) -> None:
        self.recorder.close()


def audited(model: Any, logdir: Path) -> Any:
    """Masks that only watch, one of which is violated at each step."""
    pastnet.Masks(model, enforce=False).freeze("one/kernel", channels=[0, 3])
    return pastnet.PastNetCallback(logdir, every=1)


OBSERVERS: dict[str, Callable[[Any, Path], Any]] = {
    "nobody": lambda model, logdir: keras.callbacks.Callback(),
    "callback": lambda model, logdir: pastnet.PastNetCallback(logdir, every=2),
    "probe": lambda model, logdir: pastnet.PastNetCallback(logdir, every=1, probe=X[:4]),
    "audit": audited,
    "recorder": lambda model, logdir: Recording(logdir),
}


def train(optimizer: str, observer: str, logdir: Path) -> tuple[list[float], list[bytes]]:
    keras.utils.set_random_seed(2)
    keras.utils.clear_session()
    layers = [
        keras.layers.Dense(8, activation="relu", name="one"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.3, seed=1),
    ]
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(3)])
    model.compile(OPTIMIZERS[optimizer](), "mse")
    observing = OBSERVERS[observer](model, logdir)
    settings: dict[str, Any] = {"batch_size": 4, "epochs": 3, "verbose": 0}
    history = model.fit(X, Y, callbacks=[observing], **settings)
    state = [*model.variables, *model.optimizer.variables]
    return history.history["loss"], [np.asarray(variable).tobytes() for variable in state]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_same_bits(tmp_path: Path, optimizer: str, figure: Any) -> None:
    found = {name: train(optimizer, name, tmp_path / name) for name in OBSERVERS}
    for name, result in found.items():
        assert result == found["nobody"], name
    assert {path.name for path in tmp_path.iterdir()} == OBSERVERS.keys() - {"nobody"}
    figure(f"{optimizer}: losses, weights and slots bit-identical under {len(found) - 1} observers")
