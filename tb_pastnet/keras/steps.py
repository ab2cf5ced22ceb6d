"""Callbacks that count the batches that a model has been trained on."""

from __future__ import annotations

from typing import Any

import keras

from tb_pastnet.keras.model.optimizers import innermost, optimizers_of, steps_of
from tb_pastnet.keras.types import Model
from tb_pastnet.keras.versions import check_model


class BatchCount:
    """Counts batches through `fit`, `compile` and resuming.

    The optimizer's count of updates is kept when training resumes; batch numbers aren't. Under
    gradient accumulation it counts one update for several batches. After a new `compile` the
    optimizer counts from 0, but the weights are the same, so the count continues.
    """

    def __init__(self) -> None:
        self.step = 0
        self.steps_of = steps_of  # how many updates an optimizer has made
        self._optimizers: list[Any] = []
        self._rested: int | None = None  # the optimizers' count at the end of a `fit`
        self._counted = 0  # steps made with the optimizers before the last `compile`

    def begin(self, model: Model, *, going_on: bool) -> bool:
        """Resumes the count. Returns whether the step differs from the last one reached."""
        self._follow_compile(model, going_on)
        base = self._updates(model)
        if not going_on:
            self.step = base or 0
            return True
        same = base == self.step - (self.step - self._counted) % _accumulation(model)
        # If loss scaling has skipped updates, the optimizer stays behind.
        if base is None or same or base == self._rested:
            return False
        self.step = base
        return True

    def advance(self, model: Model, batches: int) -> int:
        """Counts the batches of an execution, as reported by Keras."""
        # It may end early with its epoch. If the optimizer counts batches, its count is exact.
        several = batches > 1 or getattr(model, "steps_per_execution", 1) != 1
        updates = self._updates(model) if several and _accumulation(model) == 1 else None
        counted = 0 if updates is None else updates - self.step
        self.step += counted if counted > 0 else batches
        return self.step

    def rest(self, model: Model) -> None:
        """Notes the end of a `fit`: changes before the next one aren't training."""
        self._rested = self._updates(model)

    def _follow_compile(self, model: Model, going_on: bool) -> None:
        optimizers = optimizers_of(model)
        same = list(map(id, optimizers)) == list(map(id, self._optimizers))
        # A reference, because otherwise the next one could have its id.
        self._optimizers = optimizers
        if not same:
            self._counted, self._rested = 0, None
            if going_on and self._updates(model) == 0:
                self._counted = self.step

    def _updates(self, model: Model) -> int | None:
        """Batches by the optimizers' counts, in whole updates; None if none counts.

        With several, the slowest counts: a WGAN's critic makes several steps per batch.
        """
        optimizers = optimizers_of(model)
        if not optimizers:
            return None
        counts = [self.steps_of(each) * _accumulated(each) for each in optimizers]
        return self._counted + min((count for count in counts if count > 0), default=0)


class CountingCallback(keras.callbacks.Callback):
    """A callback with a count of batches, which begins with the first one of a `fit`."""

    def __init__(self) -> None:
        super().__init__()
        self._count = BatchCount()
        self._first = 0  # batch of an execution
        self._begun = False

    def set_model(self, model: Model) -> None:
        """See Keras. Raises InvalidArgument for what Keras can't train, as a module of PyTorch."""
        check_model(model)
        super().set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        """Waits for the first batch: a callback after this one may still restore a backup."""
        self._begun = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Remembers where an execution begins; before the first, does what is due already."""
        self._first = batch
        if not self._begun:
            self._begun = True
            self._begin_fit()
        self._begin_execution()

    def _begin_fit(self) -> None:
        """Before the first batch."""
        raise NotImplementedError

    def _begin_execution(self) -> None:
        """Before each execution of one or more batches."""


def _accumulated(optimizer: keras.optimizers.Optimizer) -> int:
    return int(getattr(innermost(optimizer), "gradient_accumulation_steps", None) or 1)


def _accumulation(model: Model) -> int:
    return max(map(_accumulated, optimizers_of(model)), default=1)
