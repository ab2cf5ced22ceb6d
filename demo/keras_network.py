"""The network of the demo in Keras."""

from __future__ import annotations

from typing import Any

import keras

from demo.digits import Digits


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
