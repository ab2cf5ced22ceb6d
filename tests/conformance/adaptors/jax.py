"""A pytree in a compiled step that takes over its buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import tb_pastnet as pastnet
from tests.conformance.room import Arrays, Room, layer_of


@jax.jit
def _step(tree: Any, rates: Any) -> Any:
    def moved(weight: Any, rate: Any) -> Any:
        return (weight - rate * weight).astype(weight.dtype)

    return jax.tree.map(moved, tree, rates)


class Adaptor(Room):
    def build(self, values: Arrays) -> None:
        self.arrays = values
        self.tree = self.nested(values)

    def nested(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        tree: dict[str, dict[str, Any]] = {layer_of(name): {} for name in values}
        for name, value in values.items():
            tree[layer_of(name)][name.rpartition("/")[2]] = (
                jax.numpy.array(value) if isinstance(value, np.ndarray) else value
            )
        return tree

    def masked(self, masks: Mapping[str, Any]) -> Any:
        """A pytree for all leaves: a name that fits none has to be in it, too."""
        if not masks:
            return None
        every = dict.fromkeys(self.arrays, True)
        return self.nested({**every, **masks})

    def recorder_of(self, **settings: Any) -> Any:
        for word in ("trainable", "kept"):
            settings[word] = self.masked(settings[word])
        return pastnet.jax.Recorder(self.logdir, self.tree, **settings)

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        self.tree = self.nested({**self.values(), **values})

    def values(self) -> Arrays:
        return {
            name: np.array(self.tree[layer_of(name)][name.rpartition("/")[2]])
            for name in self.arrays
        }

    def update(self, pull: float = 1.0) -> None:
        self.updates += 1
        rates = {name: self.rate(name) * (pull + self.decay) for name in self.arrays}
        self.tree = _step(self.tree, self.nested(rates))

    def record(self, step: Any) -> None:
        if self.recorder is not None:
            self.recorder.record(step, self.tree, None if self.rates is None else self.used)

    def sync(self) -> None:
        self.recorder.sync(self.tree)

    def restart(self, step: int) -> None:
        self.recorder.restart(step, self.tree)

    def declare(self, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        given = {"trainable": self.masked(masks), "kept": self.masked(kept)}
        self.recorder.declare(self.tree, **given)
