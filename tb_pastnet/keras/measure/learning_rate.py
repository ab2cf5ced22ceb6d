"""Learning rates on TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.measure.used_rate import UNKNOWN, UsedRate
from tb_pastnet.keras.model.optimizers import trains
from tb_pastnet.keras.types import Model, RateSource
from tb_pastnet.record.weight import Weight


class LearningRate(UsedRate):
    """A `UsedRate`, and that of each of several optimizers.

    If one variable holds it, that is read in the same call as the weights, for free.
    """

    def __init__(self, source: RateSource = UNKNOWN, model: Model = None) -> None:
        super().__init__(source, model, self._read)
        self._groups: list[Any] = []
        optimizers = [*self.optimizers().values()]
        owner = optimizers[0] if len(optimizers) == 1 else source
        holder = None if len(optimizers) > 1 else getattr(owner, "learning_rate", source)
        readable = isinstance(holder, keras.Variable | tf.Variable)
        self._variable = holder if readable else None
        self._heard: float | None = None

    def groups(self, weights: Sequence[Weight]) -> dict[str, list[str]]:
        """Names of the weights that each of several optimizers trains, by the optimizer's name."""
        optimizers = self._stepping(self.optimizers())
        self._groups = list(optimizers.values()) if len(optimizers) > 1 else []
        return {
            name: [weight.name for weight in weights if trains(optimizer, weight.variable)]
            for name, optimizer in optimizers.items()
            if self._groups
        }

    def of_groups(self) -> list[float]:
        """The rate of each of the groups."""
        return list(map(self.used, self._groups))

    def tensors(self) -> list[Any]:
        """What to read with the weights: one float32 scalar, or none."""
        if self._variable is None:
            return []
        return [tf.reshape(tf.cast(tf.convert_to_tensor(self._variable), tf.float32), ())]

    def hear(self, values: Iterable[Any]) -> None:
        """Stores a read value; it is used once, because it may change."""
        for value in values:
            self._heard = float(value)

    def _read(self, value: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        if value is self._variable and self._heard is not None:
            heard, self._heard = self._heard, None
            return heard
        return float(tf.convert_to_tensor(value))
