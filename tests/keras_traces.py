"""Trains Keras models on the backend of KERAS_BACKEND, with and without a callback.

Prints as JSON what a callback changes on the user's objects: while it is open, and once it is
closed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any

if os.environ.get("KERAS_BACKEND") in {"jax", "torch"}:
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # it would take half the time

import keras
import numpy as np

import tb_pastnet as pastnet

layers = keras.layers
X = np.linspace(-1, 1, 96).reshape(12, 8).astype("float32")
Y = np.arange(12) % 3
TABLE: dict[str, Any] = {
    "mixed": lambda: [
        layers.Dense(8, trainable=False),
        layers.Reshape((4, 2)),
        layers.LSTM(5),
        layers.BatchNormalization(),
        layers.Dense(3),
    ],
    "wide": lambda: [
        layers.Dense(4097),
        layers.Dropout(0.5),
        layers.Dense(7, dtype="mixed_float16"),
        layers.Dense(9, dtype="bfloat16"),
        layers.Dense(3),
    ],
}


def trained(name: str, *callbacks: Any) -> tuple[Any, str]:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), *TABLE[name]()])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(0.01), loss)
    options = {"verbose": 0, "callbacks": list(callbacks)}
    history = model.fit(X, Y, 4, **options).history
    values = hashlib.sha256(json.dumps(history["loss"]).encode())
    for each in (*model.variables, *model.optimizer.variables):
        values.update(keras.ops.convert_to_numpy(each.value).tobytes())
    return model, values.hexdigest()


def traces(model: Any) -> dict[str, list[Any]]:
    found = {"model": sorted(vars(model)), "optimizer": sorted(vars(model.optimizer))}
    found |= {f"layer {number}": sorted(vars(each)) for number, each in enumerate(model.layers)}
    for number, each in enumerate((*model.variables, *model.optimizer.variables)):
        own: list[Any] = [*sorted(vars(each)), str(each.dtype)]
        value = each.value
        if keras.backend.backend() == "torch":
            own += [value._version, value.requires_grad, sorted(vars(value)), str(value.device)]
            own += [value.grad is None]
        if keras.backend.backend() == "jax":
            own.append(value._npy_value is None)
        found[f"variable {number}"] = own
    return found


def resizable(model: Any) -> bool:
    """Whether all storages are; asked before anything else reads them."""
    if keras.backend.backend() != "torch":
        return True
    variables = (*model.variables, *model.optimizer.variables)
    return all(each.value.untyped_storage().resizable() for each in variables)


class Storages(keras.callbacks.Callback):
    """Looks at storages after the recorder, within `fit`."""

    kept = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.kept = self.kept and resizable(self.model)


def changed(here: dict[str, list[Any]], there: dict[str, list[Any]]) -> list[str]:
    assert here.keys() == there.keys()
    return sorted({str(n) for key in here for n in (*here[key], *there[key])
                   if here[key].count(n) != there[key].count(n)})  # fmt: skip


if __name__ == "__main__":
    done = {}
    for name in TABLE:
        plain, expected = trained(name)
        callback = pastnet.PastNetCallback(f"{sys.argv[1]}/{name}", every=1)
        storages = Storages()
        model, got = trained(name, callback, storages)
        before = traces(plain)
        opened = changed(traces(model), before)
        recorder = callback.recorder
        assert recorder is not None
        callback.close()
        done[name] = {
            "same": got == expected,
            "resizable": storages.kept,
            "records": recorder.records,
            "notes": recorder.notes.counts(),
            "open": opened,
            "closed": changed(traces(model), before),
        }
    print(json.dumps(done))  # noqa: T201 - its answer
