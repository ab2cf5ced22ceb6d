"""Runs a program with and without the callback, and computes from saved weights what it records."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tb_pastnet import PastNetCallback
from tb_pastnet.core import statistics
from tb_pastnet.keras.model.tf_weights import find_variables
from tests.recorded import Recorded, read_lineages

EVERY = 2


@dataclass
class Program:
    """What a program trains, and how.

    Attributes:
        model: what is recorded.
        train: trains it, with some callbacks.
        follows: patterns of names that something else than gradients moves.
        frozen: names that aren't trained, as the author means it.
    """

    model: keras.Model
    train: Callable[[list[keras.callbacks.Callback]], Any]
    frozen: set[str] = field(default_factory=set)
    follows: tuple[str, ...] = ()


class Watch(keras.callbacks.Callback):
    """Keeps all weights after each step, and those from before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[dict[int, np.ndarray]] = []
        self.steps = [0]
        self._begin = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin = batch
        if not self.weights:
            self._keep()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps.append(self.steps[-1] + batch - self._begin + 1)
        self._keep()

    def end(self) -> None:
        """The weights after the training, which may have a record of their own."""
        self.steps.append(self.steps[-1] + 1)
        self._keep()

    def _keep(self) -> None:
        self.weights.append({id(w): keras.ops.convert_to_numpy(w) for w in self.model.weights})


@dataclass
class Watched:
    """A recorded run of a program.

    `names` are those of the log, by which `of` gives the weights of a step.
    """

    program: Program
    lineages: list[Recorded]
    watch: Watch
    names: dict[str, int]

    def of(self, name: str, step: int) -> np.ndarray:
        if name in self.names:
            return self.watch.weights[self.watch.steps.index(step)][self.names[name]]
        layer, _, own = name.rpartition("/lora_")
        base, a, b = (
            self.of(f"{layer}/{part}", step) for part in (own, f"lora_{own}_a", f"lora_{own}_b")
        )
        return base + a @ b


def run(make: Callable[[], Program], logdir: Path) -> Watched:
    """Runs a program as it is, then with the callback: it must end with the same bits."""
    plain = make()
    plain.train([])
    recorded, watch = make(), Watch()
    callback = PastNetCallback(logdir, every=EVERY, follows=recorded.follows)
    recorded.train([watch, callback])
    callback.close()
    watch.end()
    ends = zip(plain.model.weights, recorded.model.weights, strict=True)
    for before, after in ends:
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after), before.path)
    names = {entry.id: id(entry.given) for entry in find_variables(recorded.model)}
    return Watched(recorded, read_lineages(logdir), watch, names)


def check_numbers(watched: Watched) -> int:
    """Compares the norms of each record with NumPy's; gives how many numbers were compared."""
    compared = 0
    for lineage in watched.lineages:
        for entry in lineage.description.variables if lineage.descriptions else ():
            values = lineage.values(entry.id)
            pairs = zip(lineage.record_steps(), lineage.record_past_steps(), values, strict=True)
            for step, past_step, recorded in pairs:
                now, past = watched.of(entry.id, step), watched.of(entry.id, past_step)
                axes = _others(entry, now)
                for number, value in (
                    (statistics.NORM, now),
                    (statistics.PAST_NORM, past),
                    (statistics.DELTA_NORM, now.astype("f8") - past),
                ):
                    own = np.sqrt((value.astype("f8") ** 2).sum(axes)).reshape(-1)
                    # The codec rounds to 1/16 of an octave.
                    np.testing.assert_allclose(recorded[number], own, rtol=0.023, atol=1e-30)
                    compared += own.size
    return compared


def _others(entry: Any, value: np.ndarray) -> tuple[int, ...]:
    """The axes that are summed over: all but those of channels, which the log tells."""
    kept = np.ravel(ast.literal_eval(entry.axis)) % value.ndim
    return tuple(axis for axis in range(value.ndim) if axis not in kept)
