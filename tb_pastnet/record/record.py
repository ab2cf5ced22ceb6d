"""A record: what was measured at a step, before it is quantised and packed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Record(NamedTuple):
    """One record of all variables, as it leaves the training thread.

    Attributes:
        sequence: its number in the lineage, from 0.
        step: the step that it shows.
        past_step: the step of the past values that it compares with.
        wall_time: seconds since 1970.
        learning_rate: NaN where it isn't known.
        values: floats (statistics, channels of all variables), rows as in
            `core.statistics.STATISTICS`.
        function: float32 (4, places of the probe), rows as in `core.function_change.MEASURES`; None
            where there is no probe, or it couldn't be evaluated.
        thinned: records of the lineage before it that a budget left out.
    """

    sequence: int
    step: int
    past_step: int
    wall_time: float
    learning_rate: float
    values: npt.NDArray[np.floating]
    function: npt.NDArray[np.float32] | None = None
    thinned: int = 0

    @property
    def nbytes(self) -> int:
        """About what it occupies while it waits."""
        return int(self.values.nbytes)
