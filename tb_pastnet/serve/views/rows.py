"""One layer of the overview: how many channels are in each state, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def total(stacked: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """All layers together, as a reader of the rows would add them up.

    Args:
        stacked: what `stack` made, counts of weights beside it or not.

    Returns:
        Likewise, float64 and without the layers; the mean delta, float32, is that over the moving
        channels of all of them.

    Example:
        >>> row = Row(np.ones((1, 6)), np.ones(1), np.zeros(1), np.array([0.5]))
        >>> total(stack([row, row], 1))["mean_delta"].tolist()
        [0.5]
    """
    sums = {name: rows.sum(axis=0, dtype=np.float64) for name, rows in stacked.items()}
    moving = stacked["counts"][..., states.MOVING]
    deltas = stacked["mean_delta"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = np.nansum(moving * deltas, axis=0) / (moving * ~np.isnan(deltas)).sum(axis=0)
    return {**sums, "mean_delta": mean.astype(np.float32)}
