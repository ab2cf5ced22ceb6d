"""A Keras training into a store: `[logdir, exit_timeout, client]` is an order.

They are as those of `tests.fault.training`. It says which steps are acknowledged, and at last its
losses and weights. Without a log directory nothing records it. The client "tensorflow" stands in
for gcsfs.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np

import tb_pastnet as pastnet
from tb_pastnet.record import segments
from tests.fault.training import main, tell

STEPS = 40
X, Y = (np.random.default_rng(seed).normal(size=(32, 6)).astype("f") for seed in (0, 1))


class Acknowledge(keras.callbacks.Callback):
    """Flushes now and then, and says what is acknowledged."""

    def __init__(self, observer: pastnet.PastNetCallback) -> None:
        super().__init__()
        self.observer = observer

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        recorder = self.observer.recorder
        if recorder.last_step % 8 == 0 and recorder.last_step < STEPS and recorder.flush(0.5):
            tell(recorder.last_step)


def train(logdir: str, exit_timeout: float, client: str) -> None:
    """Trains, and leaves the end of the program to close the log."""
    # What takes minutes elsewhere takes a second here.
    segments.PUT_SECONDS = segments.ObjectSegments.retry_seconds = (0.05, 0.4)
    if client == "tensorflow":
        sys.modules["gcsfs"] = None
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.3, seed=1)]
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(6)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    callbacks: list[Any] = []
    if logdir:
        observer = pastnet.PastNetCallback(logdir, every=1, exit_timeout=exit_timeout)
        callbacks = [observer, Acknowledge(observer)]
    history = model.fit(X, Y, batch_size=4, epochs=STEPS // 8, verbose=0, callbacks=callbacks)
    weights = [np.asarray(weight).tobytes().hex() for weight in model.variables]
    tell({"losses": history.history["loss"], "weights": weights})


if __name__ == "__main__":
    # An hour of a training is a second here.
    segments.PUT_SECONDS = (0.05, 0.4)
    segments.ObjectSegments.retry_seconds = (0.05, 0.4)
    main(train)
