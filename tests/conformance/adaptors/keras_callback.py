"""The callback of `fit`, on each backend; where the suite sets weights it is called by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

import tb_pastnet as pastnet
from tests.conformance.adaptors.rates import Rates
from tests.conformance.room import Arrays, Masks, Room, command, layer_of


class Held(keras.layers.Layer):
    """Adds half of the squares of its weights to its inputs: each gradient is the weight."""

    def __init__(self, values: Arrays, **settings: Any) -> None:
        super().__init__(**settings)
        self.own = [
            self.add_weight(
                shape=value.shape, dtype=value.dtype.name, name=name, initializer="zeros"
            )
            for name, value in values.items()
        ]

    def call(self, inputs: Any) -> Any:
        squares = [keras.ops.sum(keras.ops.square(each)) for each in self.own]
        return inputs + sum(keras.ops.cast(each, "float32") for each in squares) / 2


class Values(keras.callbacks.Callback):
    def __init__(self, room: Adaptor) -> None:
        super().__init__()
        self.room = room
        self.seen: list[Arrays] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model  # noqa: B018 - on JAX this puts values back into variables
        self.seen.append(self.room.values())


class Adaptor(Room):
    def build(self, values: Arrays) -> None:
        layers: dict[str, Arrays] = {}
        for name, value in values.items():
            layers.setdefault(layer_of(name), {})[name.rpartition("/")[2]] = value
        x = given = keras.Input((1,))
        self.variables: dict[str, Any] = {}
        for layer, own in layers.items():
            held = Held(own, name=layer)
            names = [f"{layer}/{name}" for name in own]
            self.variables.update(zip(names, held.own, strict=True))
            x = held(x)
        self.model = keras.Model(given, x)
        rate = 1.0 if self.rates is None else Rates(next(iter(self.rates.values())))
        optimizer = keras.optimizers.SGD(rate, weight_decay=self.decay or None)
        self.model.compile(optimizer, lambda _, y: keras.ops.mean(y))
        optimizer.build(self.model.trainable_variables)
        optimizer.iterations.assign(self.start or 0)
        self.put(values)

    def begin(self, masks: Masks, kept: Masks) -> Any:
        if masks or kept:
            self.declare(masks or {}, kept or {})
        self.callback = pastnet.PastNetCallback(self.logdir, **self.settings)
        self.callback.set_model(self.model)
        self.callback.on_epoch_begin(0)
        self.callback.on_train_batch_begin(0)
        return self.callback.recorder

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        for name, value in values.items():
            self.variables[name].assign(value)

    def values(self) -> Arrays:
        return {
            name: np.array(keras.ops.convert_to_numpy(each))
            for name, each in self.variables.items()
        }

    def train(self, steps: int) -> list[Arrays]:
        given, seen = np.zeros((steps, 1), np.float32), Values(self)
        callbacks = [self.callback, seen] if self.recorder is not None else [seen]
        self.model.fit(given, given, batch_size=1, verbose=0, shuffle=False, callbacks=callbacks)
        self.updates += steps
        return seen.seen

    def record(self, step: Any) -> None:
        self.callback.on_train_batch_end(0)
        self.callback.on_train_batch_begin(0)

    def sync(self) -> None:
        self.callback.on_epoch_end(0)

    def declare(self, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        if keras.backend.backend() == "tensorflow":
            command(pastnet.Masks(self.model, enforce=False), masks, kept)
        for name, flag in masks.items() if keras.backend.backend() != "tensorflow" else ():
            self.model.get_layer(layer_of(name)).trainable = flag

    def hold(self, **options: Any) -> Any:
        return pastnet.Masks(self.model, **options)

    def close(self) -> None:
        if self.recorder is not None and not self.closed:
            self.callback.close()
        self.closed = True
