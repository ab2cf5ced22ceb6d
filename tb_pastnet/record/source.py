"""The seam between the recording loop and a framework: subclass `Source` and `Weight` for one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import channel_statistics
from tb_pastnet.record.weight import Network, Weight

Floats = npt.NDArray[np.floating]


class Source:
    """A network as it is trained: its weights, their past copies, and what else a record needs.

    What isn't overridden works by `Weight.effective` and NumPy.

    Args:
        network: what is recorded.

    Attributes:
        network: the same.
    """

    def __init__(self, network: Network[Weight]) -> None:
        self.network = network
        self._past: dict[int, list[npt.NDArray[Any]]] = {}

    @property
    def writes(self) -> bool:
        """Whether this process writes the log: one of several that train the same network does."""
        return True

    def bound(self) -> AbstractContextManager[object]:
        """Where values are read: a session, the scope of a distribution, or nothing."""
        return nullcontext()

    def trainable(self) -> Sequence[bool]:
        """Of each weight, whether the framework's own flags let updates change it."""
        return [weight.trainable() for weight in self.network.weights]

    def learning_rate(self, step: int) -> float:
        """That of a step; NaN where it isn't known."""
        return float("nan")

    def copy(self, number: int) -> None:
        """Takes the current values as a past copy.

        Args:
            number: which of the copies: from 0, as many as the schedule holds.
        """
        self._past[number] = [np.array(weight.effective()) for weight in self.network.weights]

    def past(self, number: int) -> Sequence[Any]:
        """The values of a past copy, as the framework's probe takes them."""
        return self._past[number]

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """Compares the current values with a past copy.

        Args:
            number: which of the copies.
            replace: whether the current values take its place, which may be cheaper than `copy`.

        Returns:
            Floats (8, channels of all weights), rows as in `core.statistics.STATISTICS`; kept and
            trainable are 1, as no masks are known here.
        """
        pairs = zip(self.network.weights, self._past[number], strict=True)
        statistics = [channel_statistics(one.effective(), past, one.axis) for one, past in pairs]
        if replace:
            self.copy(number)
        return np.concatenate(statistics, axis=1)
