"""A record: the measurements of a step, before they are quantised and packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.function_change import Input, Place


class Record(NamedTuple):
    """One record of all variables, as it leaves the training thread.

    Values are floats (statistics, channels of all variables), rows as in `statistics.STATISTICS`,
    or their `Codes` once it is quantised. The learning rate is NaN if unknown. `function` is
    float32 (4, places of the probe), rows as in `function_change.MEASURES`, None
    without a probe, or if it couldn't be evaluated. `thinned`
    counts earlier records of the lineage that a budget left out; `group_rates` are of the source's
    groups.
    """

    sequence: int
    step: int
    past_step: int
    wall_time: float
    learning_rate: float
    values: npt.NDArray[Any]
    function: npt.NDArray[np.float32] | None = None
    thinned: int = 0
    group_rates: tuple[float, ...] = ()

    @property
    def nbytes(self) -> int:
        """Approximate memory while it waits."""
        return int(self.values.nbytes)


class Probing(Protocol):
    """Compares the outputs of a network with its outputs at past values."""

    inputs: tuple[Input, ...]
    places: tuple[Place, ...]

    def values(self, past: Sequence[Any]) -> npt.NDArray[np.float32]:
        """float32 (4, places), rows as in `function_change.MEASURES`."""
