"""The seam between the recording loop and a framework: subclass `Source` and `Weight` for one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import channel_statistics
from tb_pastnet.record.weight import Network, Weight

Floats = npt.NDArray[np.floating]


class Source(ABC):
    """A network as it is trained: its weights, their past copies, and what else a record needs.

    Copy 0 holds the values that the weights have when a source is made.
    """

    packages: Sequence[str] = ()
    """The distributions of the framework: a log says which versions of them trained."""

    def __init__(self, network: Network[Weight]) -> None:
        self.network = network

    @property
    def writes(self) -> bool:
        """Whether this process writes the log: one of several that train the same network does."""
        return True

    def trainable(self) -> Sequence[bool]:
        """Of each weight, whether the framework's own flags let it change, or it follows."""
        return [weight.text.follows or weight.trainable() for weight in self.network.weights]

    def learning_rate(self, step: int) -> float:
        """That of a step; NaN where it isn't known."""
        return float("nan")

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """Names of the weights of each group that has a learning rate of its own; {}: none has.

        Asked where a lineage begins: until the next one `group_rates` are of these.
        """
        return {}

    def group_rates(self) -> Sequence[float]:
        """The learning rates of the groups, in their order."""
        return ()

    def release(self) -> None:  # noqa: B027
        """Lets go of values that were read for a record: training goes on."""

    @abstractmethod
    def copy(self, number: int) -> None:
        """Takes the current values as a past copy, of as many as the schedule holds."""

    @abstractmethod
    def past(self, number: int) -> Sequence[Any]:
        """The values of a past copy, as the framework's probe takes them."""

    @abstractmethod
    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """Compares the current values with a past copy, whose place they may take.

        Returns:
            Floats (statistics, channels of all weights), rows as in `core.statistics.STATISTICS`;
            kept and trainable are 1, as no masks are known here.
        """


class ArraySource(Source):
    """Past copies and statistics by NumPy, for weights whose `effective` is at hand."""

    def __init__(self, network: Network[Weight]) -> None:
        super().__init__(network)
        self._past: dict[int, list[npt.NDArray[Any]]] = {}
        self.copy(0)

    def copy(self, number: int) -> None:
        """See `Source`."""
        self._past[number] = [np.array(weight.effective()) for weight in self.network.weights]

    def past(self, number: int) -> Sequence[Any]:
        """See `Source`."""
        return self._past[number]

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`."""
        statistics = [
            channel_statistics(weight.effective(), past, weight.axis)
            for weight, past in zip(self.network.weights, self._past[number], strict=True)
        ]
        if replace:
            self.copy(number)
        return np.concatenate(statistics, axis=1)
