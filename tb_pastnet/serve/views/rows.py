"""One layer of the overview: how many channels are in each state, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states


@dataclass(frozen=True, eq=False)
class Row:
    """A layer in the overview, a number a column.

    Attributes:
        counts: uint32 (columns, 6), channels in each state.
        violated: uint32 (columns,), channels that moved though held.
        nonfinite: uint32 (columns,), channels with NaN or infinity.
        mean_delta: float32 (columns,), mean over moving channels of the relative delta, each
            taken as 1 at most; NaN where none moves.
    """

    counts: npt.NDArray[np.uint32]
    violated: npt.NDArray[np.uint32]
    nonfinite: npt.NDArray[np.uint32]
    mean_delta: npt.NDArray[np.float32]


def stack(rows: Sequence[Row], columns: int) -> dict[str, npt.NDArray[Any]]:
    """The rows of an overview as arrays with the layers first.

    Args:
        rows: any number of them, 0 included.
        columns: how many columns each has.
    """
    none = np.zeros(columns, np.uint32)
    counts = np.zeros((columns, len(states.NAMES)), np.uint32)
    blank = Row(counts, none, none, np.zeros(columns, np.float32))
    # One row too many, taken off again: numpy can't stack nothing.
    return {
        field.name: np.stack([getattr(one, field.name) for one in (*rows, blank)])[:-1]
        for field in fields(Row)
    }
