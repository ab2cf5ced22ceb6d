"""The learning rate of a Keras model on JAX or PyTorch."""

from __future__ import annotations

from typing import Any

import keras

from tb_pastnet.core.checks import check_rate
from tb_pastnet.keras.arrays.values import Values
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of
from tb_pastnet.keras.types import Model, RateSource

Schedule = keras.optimizers.schedules.LearningRateSchedule

UNKNOWN = float("nan")


class UsedRate:
    """Returns the learning rate of a step; NaN if unknown, or if several optimizers differ."""

    def __init__(self, source: RateSource, model: Model, values: Values) -> None:
        check_rate(source)
        self._source, self._model, self._values = source, model, values

    def __call__(self, step: int) -> float:
        """The rate of a step."""
        source = self._source
        if source is None:
            rates = {self._used(each) for each in optimizers_of(self._model)}
            return rates.pop() if len(rates) == 1 else UNKNOWN
        if isinstance(source, keras.optimizers.Optimizer):
            return self._used(source)
        if isinstance(source, Schedule):
            return self._number(source(step))
        called = source() if callable(source) and not hasattr(source, "dtype") else source
        return self._number(called)

    def _used(self, optimizer: Any) -> float:
        """That of an optimizer's last update; with a schedule, the optimizer holds the next one."""
        inner = innermost(optimizer)
        rate = inner._learning_rate
        if isinstance(rate, Schedule):
            rate = rate(max(int(self._values.read(inner.iterations)) - 1, 0))
        return self._number(rate)

    def _number(self, rate: Any) -> float:
        if isinstance(rate, keras.Variable):
            rate = self._values.read(rate)
        return float(rate)
