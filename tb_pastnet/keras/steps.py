"""The number of batches that a model has been trained on, as Keras's callbacks see it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.keras.types import Model


class BatchCount:
    """Counts batches through `fit`, `compile` and resuming.

    The optimizer counts its updates, which survive a resume; batch numbers don't. Under gradient
    accumulation it counts one update for several batches. A new `compile` gives a new optimizer,
    which counts from 0, but the same weights, so that the count goes on.
    """

    def __init__(self) -> None:
        self.step = 0
        self._optimizer: Any = None
        self._counted = 0  # steps made with the optimizers before the last `compile`

    def begin(self, model: Model, *, going_on: bool) -> bool:
        """Takes up the count. Returns whether the step isn't the one that was reached before."""
        self._follow_compile(model, going_on)
        base = self._updates(model)
        if not going_on:
            self.step = base or 0
            return True
        if base is None or base == self.step - (self.step - self._counted) % _accumulation(model):
            return False
        self.step = base
        return True

    def advance(self, model: Model, batches: int) -> int:
        """Counts on after as many batches as Keras says that an execution had."""
        # It may end early with its epoch. Where the optimizer counts batches, it knows better.
        several = batches > 1 or getattr(model, "steps_per_execution", 1) != 1
        updates = self._updates(model) if several and _accumulation(model) == 1 else None
        counted = 0 if updates is None else updates - self.step
        self.step += counted if counted > 0 else batches
        return self.step

    def _follow_compile(self, model: Model, going_on: bool) -> None:
        optimizer = getattr(model, "optimizer", None)
        same, self._optimizer = optimizer is self._optimizer, optimizer
        if not same:
            self._counted = 0
            if going_on and self._updates(model) == 0:
                self._counted = self.step

    def _updates(self, model: Model) -> int | None:
        """Batches that the optimizers have seen, in whole updates; None where they don't count."""
        iterations = getattr(getattr(model, "optimizer", None), "iterations", None)
        if iterations is None:
            return None
        return self._counted + int(tf.convert_to_tensor(iterations)) * _accumulation(model)


def _accumulation(model: Model) -> int:
    optimizer = getattr(model, "optimizer", None)
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    steps = getattr(inner, "gradient_accumulation_steps", None)
    return int(steps or 1)
