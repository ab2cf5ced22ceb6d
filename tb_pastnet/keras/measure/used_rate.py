"""Learning rates, from any source that a user passes, on any backend of Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras

from tb_pastnet.core.checks import check_rate
from tb_pastnet.keras.model.optimizers import innermost, named_optimizers
from tb_pastnet.keras.types import Model, RateSource

Schedule = keras.optimizers.schedules.LearningRateSchedule

UNKNOWN = float("nan")


class UsedRate:
    """Returns the learning rate of a step, NaN if unknown.

    Without a source, it is the rate of the optimizer that the model holds. With several optimizers
    it is that of all that make steps, if they have the same. `number` reads a variable or tensor.
    """

    def __init__(self, source: RateSource, model: Model, number: Callable[[Any], float]) -> None:
        check_rate(source)
        self._source, self._model, self.number = source, model, number

    def __call__(self, step: int) -> float:
        """The rate of a step."""
        optimizers = self.optimizers()
        if optimizers:
            rates = set(map(self.used, self._stepping(optimizers).values()))
            return rates.pop() if len(rates) == 1 else UNKNOWN
        source = self._source
        if source is None:
            source = getattr(self._model, "optimizer", None) or UNKNOWN
        if isinstance(source, Schedule):
            return self.number(source(step))
        if hasattr(source, "learning_rate"):
            return self.used(source)
        called = source() if callable(source) and not hasattr(source, "dtype") else source
        return self.number(called)

    def updates(self, optimizer: Any) -> int:
        """How many updates an optimizer has made."""
        inner = innermost(optimizer)
        # `iterations` may be computed, and on JAX from a variable without its current value.
        count = int(self.number(inner._iterations))
        return count // (getattr(inner, "gradient_accumulation_steps", None) or 1)

    def used(self, optimizer: Any) -> float:
        """That of an optimizer's last update; with a schedule, the optimizer holds the next one."""
        inner = innermost(optimizer)
        schedule = getattr(inner, "_learning_rate", None)
        if not isinstance(schedule, Schedule):
            return self.number(optimizer.learning_rate)
        return self.number(schedule(max(int(self.number(inner._iterations)) - 1, 0)))

    def optimizers(self) -> Mapping[str, Any]:
        """Those of the model, or that are given, by name; none for another source."""
        source = self._source
        if source is None:
            return named_optimizers(self._model)
        if isinstance(source, keras.optimizers.Optimizer):
            return {source.name: source}
        given = source if isinstance(source, list | tuple) else ()
        # Several may have the same name.
        return {f"{each.name}/{number}": each for number, each in enumerate(given)}

    def _stepping(self, optimizers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those that have made a step; a single one also before."""
        if len(optimizers) == 1:
            return optimizers
        return {name: each for name, each in optimizers.items() if self.updates(each) > 0}
