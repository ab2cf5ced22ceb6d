"""Past copies as arrays, compared by the definition: of weights that no kernel can measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import VALUE_ROWS, channel_statistics
from tb_pastnet.record.weight import Array, Weight


class PlainCopies:
    """Past values of weights, with the interface of `ArrayCopies`."""

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._weights = weights
        self._past: list[Array] = []
        self.take()

    def take(self) -> None:
        """Makes the current values the past ones."""
        self._past = [np.array(weight.effective()) for weight in self._weights]

    def compare(self, *, replace: bool) -> npt.NDArray[np.floating]:
        """See `ArrayCopies`."""
        parts = []
        # Weight by weight: each read may copy from an accelerator.
        for number, weight in enumerate(self._weights):
            value = weight.effective()
            parts.append(channel_statistics(value, self._past[number], weight.axis))
            if replace:
                self._past[number] = np.array(value)
        return np.concatenate(parts, axis=1)[:VALUE_ROWS]

    def past(self) -> list[Array]:
        """The past values. Later copies leave them as they are."""
        return list(self._past)
