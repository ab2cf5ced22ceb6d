"""The data and the network that all runs of the demo share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

BATCH = 32
STEPS_PER_EPOCH = 42  # of 1,344 training images


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


def network() -> Any:
    """Builds the network; its initial values are the same at each call.

    Runs that start from the same values have the same origin, so that channel 3 of one is
    channel 3 of the other.
    """

    def block(name: str, filters: int) -> Any:
        return keras.Sequential(
            [
                keras.layers.Conv2D(filters, 3, padding="same", name="conv1", activation="relu"),
                keras.layers.Conv2D(filters, 3, padding="same", name="conv2", activation="relu"),
                keras.layers.MaxPooling2D(name="pool"),
            ],
            name=name,
        )

    keras.utils.set_random_seed(0)
    head = [
        keras.layers.Dense(64, name="hidden", activation="relu"),
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


def leaves(model: Any) -> list[Any]:
    """The layers of a model that have weights and hold no other layers, in forward order."""
    found = []
    for layer in model.layers:
        found += leaves(layer) if hasattr(layer, "layers") else [layer]
    return [layer for layer in found if layer.weights]


def accuracy(model: Any, data: Digits) -> float:
    """The share of the test digits that a network gets right."""
    return float(model.evaluate(*data.test, verbose=0, return_dict=True)["accuracy"])
