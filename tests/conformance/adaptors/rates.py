"""A learning rate of Keras, on any backend."""

from __future__ import annotations

from typing import Any

import keras

from tests.conformance.room import STEPS, Rate


class Rates(keras.optimizers.schedules.LearningRateSchedule):
    """By the number of the update."""

    def __init__(self, rate: Rate) -> None:
        self.table = [rate(step + 1) for step in range(STEPS)]

    def __call__(self, step: Any) -> Any:
        return keras.ops.take(keras.ops.convert_to_tensor(self.table, "float32"), step)
