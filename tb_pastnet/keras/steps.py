"""The number of batches that a model has been trained on, as Keras's callbacks see it."""

from __future__ import annotations

from typing import Any

import keras

from tb_pastnet.keras.model.optimizers import innermost, optimizers_of, steps_of
from tb_pastnet.keras.types import Model


class BatchCount:
    """Counts batches through `fit`, `compile` and resuming.

    The optimizer counts its updates, which survive a resume; batch numbers don't. Under gradient
    accumulation it counts one update for several batches. A new `compile` gives a new optimizer,
    which counts from 0, but the same weights, so that the count goes on.
    """

    def __init__(self) -> None:
        self.step = 0
        self.steps_of = steps_of  # how many updates an optimizer has made
        self._optimizers: list[Any] = []
        self._rested: int | None = None  # what the optimizers counted when a `fit` ended
        self._counted = 0  # steps made with the optimizers before the last `compile`

    def begin(self, model: Model, *, going_on: bool) -> bool:
        """Takes up the count. Returns whether the step isn't the one that was reached before."""
        self._follow_compile(model, going_on)
        base = self._updates(model)
        if not going_on:
            self.step = base or 0
            return True
        same = base == self.step - (self.step - self._counted) % _accumulation(model)
        # Where scaling a loss has skipped updates the optimizer is behind, and stays so.
        if base is None or same or base == self._rested:
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

    def rest(self, model: Model) -> None:
        """Takes note that a `fit` ends: what changes before the next one isn't training."""
        self._rested = self._updates(model)

    def _follow_compile(self, model: Model, going_on: bool) -> None:
        optimizers = optimizers_of(model)
        same = list(map(id, optimizers)) == list(map(id, self._optimizers))
        # Kept alive, as the next one could be taken for it otherwise.
        self._optimizers = optimizers
        if not same:
            self._counted, self._rested = 0, None
            if going_on and self._updates(model) == 0:
                self._counted = self.step

    def _updates(self, model: Model) -> int | None:
        """Batches that the optimizers have seen, in whole updates; None if none counts.

        Of several that step the slowest counts: a WGAN's critic steps more often than once a batch.
        """
        optimizers = optimizers_of(model)
        if not optimizers:
            return None
        counts = [self.steps_of(each) * _accumulated(each) for each in optimizers]
        return self._counted + min((count for count in counts if count > 0), default=0)


def _accumulated(optimizer: keras.optimizers.Optimizer) -> int:
    return int(getattr(innermost(optimizer), "gradient_accumulation_steps", None) or 1)


def _accumulation(model: Model) -> int:
    return max(map(_accumulated, optimizers_of(model)), default=1)
