"""The data and the network that all runs of the demo share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

BATCH = 32
STEPS_PER_EPOCH = 42  # of 1,344 training images

Constraint = Callable[[int], keras.constraints.Constraint]  # from a number of channels


@dataclass(frozen=True)
class Digits:
    """Images as float32 [images, 8, 8, 1] from 0 to 1, labels as int64 [images] from 0 to 9."""

    train: tuple[NDArray[np.float32], NDArray[np.int64]]
    test: tuple[NDArray[np.float32], NDArray[np.int64]]


def digits() -> Digits:
    """Loads the digits that scikit-learn ships: three quarters to train, the rest to test."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order].astype(np.int64)
    cut = STEPS_PER_EPOCH * BATCH
    return Digits((images[:cut], labels[:cut]), (images[cut:], labels[cut:]))


def network(constraint: Constraint | None = None) -> Any:
    """Builds the network; its initial values are the same at each call.

    Runs that start from the same values have the same origin, so that channel 3 of one is
    channel 3 of the other.

    Args:
        constraint: Makes what is put on the kernel and the bias of each layer but the last,
            one for both. None puts nothing on them.
    """

    def held(channels: int) -> dict[str, Any]:
        one = constraint(channels) if constraint else None
        return {"kernel_constraint": one, "bias_constraint": one, "activation": "relu"}

    def block(name: str, filters: int) -> Any:
        return keras.Sequential(
            [
                keras.layers.Conv2D(filters, 3, padding="same", name="conv1", **held(filters)),
                keras.layers.Conv2D(filters, 3, padding="same", name="conv2", **held(filters)),
                keras.layers.MaxPooling2D(name="pool"),
            ],
            name=name,
        )

    keras.utils.set_random_seed(0)
    head = [
        keras.layers.Dense(64, name="hidden", **held(64)),
        keras.layers.Dense(10, name="logits"),
    ]
    layers = [
        keras.Input((8, 8, 1)),
        block("block1", 16),
        block("block2", 32),
        keras.layers.Flatten(name="flatten"),
        keras.Sequential(head, name="head"),
    ]
    return keras.Sequential(layers, name="digits")
