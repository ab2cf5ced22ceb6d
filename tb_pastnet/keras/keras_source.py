"""The source of a network whose weights are variables of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_pastnet.keras.measure.channel_pass import ChannelPass
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER, Runner
from tb_pastnet.keras.model.trainable_flags import TrainableFlags
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.keras.workers import writes
from tb_pastnet.record.source import Floats, Source
from tb_pastnet.record.weight import Network


class KerasSource(Source):
    """A network of TensorFlow; past copies lie beside its variables."""

    packages = ("tensorflow", "tensorflow-cpu", "keras")

    def __init__(
        self,
        network: Network[TFWeight],
        rate: Callable[[int], float],
        copies: int = 1,
        runner: Runner = EAGER,
    ) -> None:
        super().__init__(network)
        variables = [weight.variable for weight in network.weights]
        axes = [weight.axis for weight in network.weights]
        beside = rate if isinstance(rate, LearningRate) else None
        self._pass = ChannelPass(variables, axes, copies, runner, beside)
        self._rate = rate
        self._flags = TrainableFlags(network.weights)
        self._writes = writes(weight.variable for weight in network.everything)

    @property
    def writes(self) -> bool:
        """See `Source`: whether this is the chief."""
        return self._writes

    def trainable(self) -> Sequence[bool]:
        """See `Source`."""
        return self._flags.of(self._flags.read())

    def learning_rate(self, step: int) -> float:
        """See `Source`."""
        return self._rate(step)

    def copy(self, number: int) -> None:
        """See `Source`."""
        self._pass.copy(number)

    def past(self, number: int) -> Sequence[Any]:
        """See `Source`: tensors."""
        return self._pass.past(number)

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`."""
        return self._pass.statistics(number, replace=replace)
