"""A training whose weights the suite sets: what an adaptor makes of it in its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import tb_pastnet as pastnet

Arrays = dict[str, np.ndarray]
Masks = Mapping[str, Any] | None
Rate = Callable[[int], float]
STEPS = 64
"""Learning rates are asked for up to here."""


def layer_of(name: str) -> str:
    return name.rpartition("/")[0]


class Room:
    """NumPy's. Another adaptor overrides `build`, `recorder_of`, `put`, `values` and `update`.

    Attributes:
        rates: by layer the learning rate of each step. Several layers have groups of their own.
        used: the rate of the latest update.
        recorder: None in a training that isn't recorded.
    """

    def __init__(
        self,
        logdir: Any,
        values: Mapping[str, np.ndarray],
        *,
        rates: Mapping[str, Rate] | None = None,
        recorded: bool = True,
        start: int | None = 0,
        trainable: Masks = None,
        kept: Masks = None,
        decay: float = 0.0,
        **settings: Any,
    ) -> None:
        self.logdir, self.rates, self.start, self.decay = str(logdir), rates, start, decay
        self.used, self.updates, self.closed = float("nan"), start or 0, False
        axes = {name: -1 for name, value in values.items() if value.ndim}
        self.settings = {"every": 1, "channel_axis": axes, **settings}
        self.build({name: value.copy() for name, value in values.items()})
        self.recorder: Any = self.begin(trainable, kept) if recorded else None

    def begin(self, trainable: Masks, kept: Masks) -> Any:
        """The recorder, with masks from the beginning; both None: none will be declared."""
        masks = {"trainable": trainable, "kept": kept}
        return self.recorder_of(**masks, initial_step=self.start, **self.settings)

    def build(self, values: Arrays) -> None:
        self.arrays = values

    def recorder_of(self, **settings: Any) -> Any:
        weights = {name: partial(self.arrays.__getitem__, name) for name in self.arrays}
        rate = None if self.rates is None else lambda step: self.used
        return pastnet.numpy.Recorder(self.logdir, weights, learning_rate=rate, **settings)

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        """Sets weights, as a user's own code does."""
        for name, value in values.items():
            self.arrays[name][...] = value

    def values(self) -> Arrays:
        return {name: value.copy() for name, value in self.arrays.items()}

    def update(self, pull: float = 1.0) -> None:
        """One step of the framework's own SGD, where gradients are `pull` times the weight."""
        self.updates += 1
        for name, value in self.arrays.items():
            step = self.rate(name) * (pull + self.decay) * value
            np.subtract(value, step.astype(value.dtype), out=value)

    def rate(self, name: str) -> float:
        """The learning rate of a weight in this update."""
        assert self.rates is not None
        rate = self.rates.get(layer_of(name)) or next(iter(self.rates.values()))
        self.used = rate(self.updates)
        return self.used

    def train(self, steps: int) -> list[Arrays]:
        """Trains and records; gives the values after each step."""
        seen = []
        for _ in range(steps):
            self.update()
            self.record(self.updates)
            seen.append(self.values())
        return seen

    def record(self, step: Any) -> None:
        if self.recorder is not None:
            self.recorder.record(step)

    def sync(self) -> None:
        self.recorder.sync()

    def restart(self, step: int) -> None:
        self.recorder.restart(step)

    def declare(self, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        """Holds and prunes from now on; True lets all of a weight change again."""
        self.recorder.declare(trainable=masks, kept=kept)

    def hold(self, **options: Any) -> Any:
        """Masks that hold weights, without any yet; only of rooms that have such."""
        raise NotImplementedError

    def block(self) -> Any:
        """What a user's `with` has."""
        return self.recorder

    def close(self) -> None:
        if self.recorder is not None and not self.closed:
            self.recorder.close()
        self.closed = True

    def log(self) -> Any:
        """What is read back, after a flush that has to succeed."""
        assert self.recorder.flush(30)
        self.close()
        return pastnet.read(self.logdir)

    def run(self) -> Any:
        (run,) = self.log().runs.values()
        return run


def command(table: Any, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """The same by the commands of `Masks`."""
    for name, mask in masks.items():
        if mask is True:
            table.thaw(name)
        else:
            table.freeze(name, *[mask] * (mask is not False))
    for name, mask in kept.items():
        table.prune(name, mask)
