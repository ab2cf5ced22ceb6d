"""Variables of TensorFlow in the user's own loop, with Keras's optimizers and declared masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from tests.conformance.adaptors.rates import Rates
from tests.conformance.room import Arrays, Masks, Room, command, layer_of


class Adaptor(Room):
    def build(self, values: Arrays) -> None:
        self.variables = {name: tf.Variable(value) for name, value in values.items()}
        self.settings.pop("optimizers", None)  # there are no groups
        self.optimizers = {}
        for layer, rate in (self.rates or {}).items():
            own = [each for name, each in self.variables.items() if self.trains(layer, name)]
            optimizer = keras.optimizers.SGD(Rates(rate), weight_decay=self.decay or None)
            optimizer.build(own)
            optimizer.iterations.assign(self.start or 0)
            self.optimizers[layer] = optimizer, own

    def trains(self, layer: str, name: str) -> bool:
        return len(self.rates or {}) == 1 or layer_of(name) == layer

    def begin(self, masks: Masks, kept: Masks) -> Any:
        self.masks: Any = None
        optimizers = [each for each, _ in self.optimizers.values()]
        rate = optimizers[0] if len(optimizers) == 1 else optimizers or None
        settings = {"learning_rate": rate, "initial_step": self.start, **self.settings}
        if self.settings.get("audit", True):
            self.masks = pastnet.Masks(self.variables, enforce=False)
            command(self.masks, masks or {}, kept or {})
            settings["masks"] = self.masks
        return pastnet.Recorder(self.logdir, self.variables, **settings)

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        for name, value in values.items():
            self.variables[name].assign(value)

    def values(self) -> Arrays:
        return {name: variable.numpy() for name, variable in self.variables.items()}

    def update(self, pull: float = 1.0) -> None:
        self.updates += 1
        for optimizer, own in self.optimizers.values():
            optimizer.apply([pull * each for each in own], own)

    def declare(self, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        command(self.masks, masks, kept)

    def hold(self, **options: Any) -> Any:
        ((optimizer, _),) = self.optimizers.values()
        return pastnet.Masks(self.variables, optimizer, **options)
