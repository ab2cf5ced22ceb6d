"""A source of Keras over bare variables, each split into channels as one says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.keras.keras_source import KerasSource
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER, Runner
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.record.weight import Network


def source_of(
    variables: Sequence[Any],
    axes: Sequence[ChannelAxis],
    copies: int = 1,
    runner: Runner = EAGER,
    rate: LearningRate | None = None,
) -> KerasSource:
    weights = [
        TFWeight(f"w{number}", Found("w", f"w{number}", variable, "Variable"), axis)
        for number, (variable, axis) in enumerate(zip(variables, axes, strict=True))
    ]
    return KerasSource(Network.of(weights), rate or LearningRate(), copies, runner)
