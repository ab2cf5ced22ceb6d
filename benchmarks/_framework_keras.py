"""Trains a small CNN with Keras on the backend of KERAS_BACKEND, with nothing due to record.

What its hooks take is timed within `fit`, and what an epoch takes with it and without.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import keras
import numpy as np

import tb_pastnet as pastnet

NEVER = 10**9


class Timed(pastnet.PastNetCallback):
    """The callback, which knows what its hooks have taken."""

    spent = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Times it."""
        start = time.perf_counter()
        super().on_train_batch_begin(batch, logs)
        self.spent += time.perf_counter() - start

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Times it."""
        start = time.perf_counter()
        super().on_train_batch_end(batch, logs)
        self.spent += time.perf_counter() - start


def main(pairs: str, size: str) -> None:
    """Prints seconds of epochs and of their hooks; and of others, and what they take less."""
    batches = 100 if size == "whole" else 3
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64 * batches, 28, 28, 1)).astype("float32")
    y = rng.integers(0, 10, len(x))
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = Timed(tempfile.mkdtemp(), every=NEVER)

    def epoch(*callbacks: Any) -> float:
        start = time.perf_counter()
        model.fit(x, y, 64, shuffle=False, verbose=0, callbacks=[*callbacks])
        return time.perf_counter() - start

    epoch(callback)
    epoch()
    within: list[float] = []
    without: list[float] = []
    spent: list[float] = []
    for pair in range(int(pairs)):
        for hooked in (True, False) if pair % 2 else (False, True):
            callback.spent = 0.0
            taken = epoch(callback) if hooked else epoch()
            (within if hooked else without).append(taken)
            spent += [callback.spent] if hooked else []
    more = np.subtract(within, without).tolist()
    callback.close()
    sys.stdout.write(json.dumps([(within, spent), (without, more)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
