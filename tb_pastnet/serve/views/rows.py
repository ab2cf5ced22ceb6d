"""One layer of the overview: how many channels are in each state, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import pooling, states
from tb_pastnet.core.quantize import Codes, dequantize

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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


def _shares() -> npt.NDArray[np.float32]:
    """The relative delta of each code, 1 at most, by the code's bits."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    return np.minimum(dequantize(codes), 1.0).astype(np.float32)


_SHARE_OF_CODE = _shares()


def make_row(told: states.States, delta: Codes, steps: Integers, edges: Integers) -> Row:
    """Counts the channels in each state, column by column.

    Args:
        told: uint8 (records, channels), their states.
        delta: int16 (records, channels), codes of their relative delta.
        steps: int64 (records,), increasing.
        edges: int64 (columns,), the first step of each column; earlier records go to the first.
    """
    columns, channels = len(edges), told.shape[1]
    first = np.searchsorted(steps, edges)
    first[:1] = 0
    filled = first < np.append(first[1:], len(steps))
    counts = np.zeros((columns, len(states.NAMES)), np.uint32)
    counts[:, states.NO_DATA] = channels
    violated, nonfinite = np.zeros((2, columns), np.uint32)
    mean_delta = np.full(columns, np.nan, np.float32)
    if filled.any() and channels:
        pooled = pooling.pool_states(told, first[filled])
        largest = pooling.pool_delta(delta, first[filled])
        plain = pooled & np.uint8(states.STATE)
        for code in range(len(states.NAMES)):
            counts[filled, code] = np.count_nonzero(plain == code, axis=1)
        violated[filled] = np.count_nonzero(pooled & states.VIOLATED, axis=1)
        nonfinite[filled] = np.count_nonzero(pooled & states.NONFINITE, axis=1)
        mean_delta[filled] = _mean_of_moving(plain, largest)
    return Row(counts, violated, nonfinite, mean_delta)


def _mean_of_moving(plain: states.States, delta: Codes) -> npt.NDArray[np.float32]:
    shares = _SHARE_OF_CODE[delta.view(np.uint16)]
    counted = (plain == states.MOVING) & ~np.isnan(shares)
    number = np.count_nonzero(counted, axis=1).astype(np.float64)
    number[number == 0] = np.nan
    total: Floats = np.where(counted, shares, 0).sum(axis=1, dtype=np.float64)
    mean: npt.NDArray[np.float32] = (total / number).astype(np.float32)
    return mean


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
