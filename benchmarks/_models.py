"""The networks that benchmarks share, from either Keras: that of TensorFlow, or tf-keras."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH = 64


class Task(NamedTuple):
    """A network and one batch for it.

    Attributes:
        model: not compiled.
        x: float32 (BATCH, …).
        y: int64 (BATCH,), one of ten classes.
    """

    model: Any
    x: NDArray[np.float32]
    y: NDArray[np.int64]


def cnn(keras: Any) -> Task:
    """The small CNN: four convolutions and two Dense layers, 2.8 M weights in 12 variables."""
    layers: list[Any] = []
    for filters in (64, 128, 256, 512):
        layers.append(keras.layers.Conv2D(filters, 3, padding="same", activation="relu"))
        layers.append(keras.layers.MaxPooling2D())
    layers.append(keras.layers.Flatten())
    layers.append(keras.layers.Dense(608, activation="relu"))
    return _task(keras, layers, (32, 32, 3))


def small(keras: Any) -> Task:
    """200 small variables: a hundred Dense layers of 64 units, 0.41 M weights together."""
    layers = [keras.layers.Dense(64, activation="relu") for _ in range(99)]
    return _task(keras, layers, (64,))


TASKS = {"CNN": cnn, "200 small variables": small}


def _task(keras: Any, layers: list[Any], shape: tuple[int, ...]) -> Task:
    model = keras.Sequential([keras.Input(shape), *layers, keras.layers.Dense(10)])
    rng = np.random.default_rng(0)
    x = rng.random((BATCH, *shape), np.float32)
    return Task(model, x, rng.integers(0, 10, BATCH))
