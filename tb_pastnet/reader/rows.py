"""One layer of a run: how many channels are in each state, record by record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Row:
    """A layer, a number a record.

    Attributes:
        counts: uint32 (records, 6), channels in each state.
        violated: uint32 (records,), channels that moved though held.
        nonfinite: uint32 (records,), channels with NaN or infinity.
        mean_delta: float32 (records,), mean over moving channels of the relative delta, each
            taken as 1 at most; NaN where none moves.
    """

    counts: npt.NDArray[np.uint32]
    violated: npt.NDArray[np.uint32]
    nonfinite: npt.NDArray[np.uint32]
    mean_delta: npt.NDArray[np.float32]

    def on(self, places: Integers, channels: int) -> Row:
        """The same on another axis of steps.

        Args:
            places: int64 (steps,), the record at each step, -1 where there is none.
            channels: of the layer; without a record all are counted as "no data".

        Returns:
            Without a record nothing else is counted, and the mean is NaN.
        """
        counts = np.zeros((len(places), len(states.NAMES)), np.uint32)
        counts[:, states.NO_DATA] = channels
        violated, nonfinite = np.zeros((2, len(places)), np.uint32)
        mean = np.full(len(places), np.nan, np.float32)
        filled = places >= 0
        counts[filled] = self.counts[places[filled]]
        violated[filled] = self.violated[places[filled]]
        nonfinite[filled] = self.nonfinite[places[filled]]
        mean[filled] = self.mean_delta[places[filled]]
        return Row(counts, violated, nonfinite, mean)
