"""Learning rates, from any source that a user passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.core.checks import check_rate
from tb_pastnet.keras.model.optimizers import innermost, named_optimizers, steps_of, trains
from tb_pastnet.keras.types import Model, RateSource
from tb_pastnet.record.weight import Weight

Schedule = keras.optimizers.schedules.LearningRateSchedule

UNKNOWN = float("nan")


class LearningRate:
    """Returns the learning rate of a step, NaN if unknown.

    If one variable holds it, that is read in the same call as the weights, for free. Without a
    source, it is the rate of the optimizer that the model is compiled with. With several optimizers
    it is that of all that make steps, if they have the same.
    """

    def __init__(self, source: RateSource = UNKNOWN, model: Model = None) -> None:
        check_rate(source)
        self._source, self._model = source, model
        self._groups: list[Any] = []
        self._several = len(self._optimizers()) > 1
        owner = source
        if source is None and not self._several:
            owner = getattr(model, "optimizer", None)
        holder = getattr(owner, "learning_rate", source)
        readable = isinstance(holder, keras.Variable | tf.Variable)
        self._variable = holder if readable else None
        self._heard: float | None = None

    def groups(self, weights: Sequence[Weight]) -> dict[str, list[str]]:
        """Names of the weights that each of several optimizers trains, by the optimizer's name."""
        optimizers = self._stepping() if self._several else {}
        self._groups = list(optimizers.values()) if len(optimizers) > 1 else []
        return {
            name: [weight.name for weight in weights if trains(optimizer, weight.variable)]
            for name, optimizer in optimizers.items()
            if self._groups
        }

    def of_groups(self) -> list[float]:
        """The rate of each of the groups."""
        return [float(tf.convert_to_tensor(_used(optimizer))) for optimizer in self._groups]

    def tensors(self) -> list[Any]:
        """What to read with the weights: one float32 scalar, or none."""
        if self._variable is None:
            return []
        return [tf.reshape(tf.cast(tf.convert_to_tensor(self._variable), tf.float32), ())]

    def hear(self, values: Iterable[Any]) -> None:
        """Stores a read value; it is used once, because it may change."""
        for value in values:
            self._heard = float(value)

    def __call__(self, step: int) -> float:
        """The rate of a step."""
        value = self._value(step)
        if isinstance(value, int | float):
            return float(value)
        if value is self._variable and self._heard is not None:
            heard, self._heard = self._heard, None
            return heard
        return float(tf.convert_to_tensor(value))

    def _value(self, step: int) -> Any:
        source = self._source
        if self._several:
            return _common(self._stepping().values())
        if source is None:
            source = getattr(self._model, "optimizer", None) or UNKNOWN
        if isinstance(source, Schedule):
            return source(step)
        if hasattr(source, "learning_rate"):
            return _used(source)
        return source() if callable(source) and not hasattr(source, "dtype") else source

    def _optimizers(self) -> Mapping[str, Any]:
        """Several optimizers, by name; none for a single one or another source."""
        if self._source is None:
            return named_optimizers(self._model)
        given = self._source if isinstance(self._source, list | tuple) else ()
        # Several may have the same name.
        return {f"{each.name}/{number}": each for number, each in enumerate(given)}

    def _stepping(self) -> dict[str, Any]:
        """Those that have made a step."""
        return {name: each for name, each in self._optimizers().items() if steps_of(each) > 0}


def _used(optimizer: Any) -> Any:
    """The rate of an optimizer's last update; with a schedule, the optimizer holds the next one."""
    inner = innermost(optimizer)
    schedule = getattr(inner, "_learning_rate", None)
    if not isinstance(schedule, Schedule):
        return optimizer.learning_rate
    return schedule(tf.maximum(tf.convert_to_tensor(inner._iterations) - 1, 0))


def _common(optimizers: Iterable[Any]) -> float:
    """The common rate of all; NaN if they differ."""
    rates = {float(tf.convert_to_tensor(_used(each))) for each in optimizers}
    return rates.pop() if len(rates) == 1 else UNKNOWN
