"""The statistics recorded for each channel, in NumPy.

This is the definition; each framework's room computes the same on the weights' device. The names
are part of the record format.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.quantize import (
    NAN,
    ONE,
    ZERO,
    Codes,
    dequantize,
    dequantize_counts,
    quantize,
    quantize_counts,
    quantize_shares,
)
from tb_pastnet.errors import InvalidArgument


class Statistic(NamedTuple):
    """One number that is recorded for each channel."""

    name: str  # in records, answers and tables
    meaning: str  # what it is, as docs/reference/record_format.md has it
    share: bool = False  # it is in [0, 1], and 0 and 1 are exact
    whole: bool = False  # it is a count, see `quantize_counts`
    # the statistic whose codes are nearly the same: a record stores the difference
    near: str | None = None


TABLE = (
    Statistic("norm", "‖w‖₂ over its finite elements"),
    Statistic("past_norm", "‖w_past‖₂ over its finite elements", near="norm"),
    Statistic("delta_norm", "‖w − w_past‖₂ over elements finite in both"),
    Statistic("delta_max", "largest |w − w_past| of these", near="delta_norm"),
    Statistic("changed", "share of elements whose value changed", True),
    Statistic("nonfinite", "number of elements that are NaN or infinite", whole=True),
    Statistic("kept", "share of elements that the kept mask lets through", True),
    Statistic("trainable", "share of elements that are kept and that an update may change", True),
    Statistic("moved", "1 if any bit has changed since the record before, 0 if none has", True),
)
"""All statistics. A record stores them by name; a new one is appended here."""

STATISTICS = tuple(statistic.name for statistic in TABLE)
"""Their names, as the rows of an array of statistics."""

NORM, PAST_NORM, DELTA_NORM, DELTA_MAX, CHANGED, NONFINITE, KEPT, TRAINABLE, MOVED = range(
    len(STATISTICS)
)
OF_PAST = [PAST_NORM, DELTA_NORM, DELTA_MAX, CHANGED]
"""Rows that need past values: NaN in a record that has none."""

VALUE_ROWS = NONFINITE + 1
"""The first rows, computed from values and past values; the others come from masks and records."""

MASK_ROWS = KEPT, TRAINABLE
"""The rows that come from masks."""

SHARES = tuple(row for row, statistic in enumerate(TABLE) if statistic.share)
COUNTS = tuple(row for row, statistic in enumerate(TABLE) if statistic.whole)

Floats = npt.NDArray[np.float64]


def channel_statistics(
    current: npt.ArrayLike,
    past: npt.ArrayLike,
    axis: ChannelAxis,
    kept: npt.ArrayLike | None = None,
    trainable: npt.ArrayLike | None = None,
) -> Floats:
    """Reduces a variable and its past value to the numbers in `TABLE`, for each channel.

    All arrays have the variable's shape, values any real dtype. In the masks 0 is pruned, or
    frozen; None: all ones. NaN that stays the same NaN has not changed, nor has 0 that became -0.

    Returns float64 (statistics, channels), rows as in `STATISTICS`. Whether it has moved since the
    record before isn't known here: NaN.
    """
    values = axis.split(np.asarray(current))
    olds = axis.split(np.asarray(past))
    kept_flags = np.ones(values.shape, bool) if kept is None else axis.split(np.asarray(kept)) != 0
    free = kept_flags
    if trainable is not None:
        free = free & (axis.split(np.asarray(trainable)) != 0)
    changed = (values != olds) & ~((values != values) & (olds != olds))
    # A cast of a signalling NaN is invalid, as is a difference of infinities.
    with np.errstate(invalid="ignore"):
        values, olds = values.astype(np.float64), olds.astype(np.float64)
        finite, finite_olds = np.isfinite(values), np.isfinite(olds)
        delta = np.where(finite & finite_olds, values - olds, 0.0)
    rows = {
        "norm": _norm(np.where(finite, values, 0.0)),
        "past_norm": _norm(np.where(finite_olds, olds, 0.0)),
        "delta_norm": _norm(delta),
        "delta_max": np.max(np.abs(delta), axis=1, initial=0.0),
        "changed": _mean(changed),
        "nonfinite": np.sum(~finite, axis=1, dtype=np.float64),
        "kept": _mean(kept_flags),
        "trainable": _mean(free),
        "moved": np.full(len(values), np.nan),
    }
    return np.stack([rows[name] for name in STATISTICS])


def quantize_statistics(statistics: npt.ArrayLike) -> Codes:
    """Rounds rows of statistics to the codes that a record stores.

    Shares keep 0 and 1 exact; counts are exact up to `quantize.EXACT`.
    """
    array = np.asarray(statistics)
    if array.ndim == 0 or array.shape[0] != len(STATISTICS):
        raise InvalidArgument(
            f"Could not quantise statistics: expected {len(STATISTICS)} rows, got shape "
            f"{array.shape}. Pass the array that channel_statistics returns."
        )
    codes = np.empty(array.shape, np.int16)
    for row, statistic in enumerate(TABLE):
        if statistic.whole:
            codes[row] = quantize_counts(array[row])
        elif statistic.share:
            codes[row] = quantize_shares(array[row])
        else:
            codes[row] = quantize(array[row])
    return codes


def dequantize_statistic(row: int, codes: Codes) -> Floats:
    """Returns the float64 values of a statistic, by its row, from the codes of all, (rows, …).

    Norms are those of finite elements. Without any but zeros, in a channel with NaN or
    infinity, the norm is NaN: it doesn't exist.
    """
    values: Floats = (dequantize_counts if row in COUNTS else dequantize)(codes[row])
    missing = np.zeros(values.shape, bool)
    if row in (NORM, DELTA_NORM, DELTA_MAX):
        missing |= without_norm(codes)
    if row in (PAST_NORM, DELTA_NORM, DELTA_MAX):
        missing |= without_past(codes)
    values[missing] = np.nan
    return values


def without_norm(codes: Codes) -> npt.NDArray[np.bool_]:
    """Whether a channel has NaN or infinity, and no finite element but zeros."""
    nonfinite = (codes[NONFINITE] != ZERO) & (codes[NONFINITE] != NAN)
    empty: npt.NDArray[np.bool_] = nonfinite & (codes[NORM] == ZERO)
    return empty


def without_past(codes: Codes) -> npt.NDArray[np.bool_]:
    """Whether the past had NaN or infinity, and no finite element but zeros, as records show it.

    Such a past has a norm of 0. If it had been all zeros, a norm now would be a delta.
    """
    empty: npt.NDArray[np.bool_] = codes[PAST_NORM] == ZERO
    if empty.any():
        empty &= (codes[DELTA_NORM] == ZERO) & ((codes[NORM] != ZERO) | without_norm(codes))
    return empty


def either_moved(first: Codes, second: Codes) -> Codes:
    """Whether a channel has moved in one of two periods, from the codes of `MOVED` of both."""
    codes = np.where((first == NAN) | (second == NAN), np.int16(NAN), np.int16(ZERO))
    codes[(first == ONE) | (second == ONE)] = ONE
    return codes


def _norm(values: Floats) -> Floats:
    # Scaled: squares of tiny or huge values neither vanish nor overflow.
    scale = np.max(np.abs(values), axis=1, initial=0.0)
    safe = np.where(scale > 0, scale, 1.0)
    norm: Floats = scale * np.sqrt(np.sum((values / safe[:, None]) ** 2, axis=1))
    return norm


def _mean(flags: npt.NDArray[np.bool_]) -> Floats:
    if flags.shape[1] == 0:
        return np.ones(flags.shape[0])
    mean: Floats = np.mean(flags, axis=1, dtype=np.float64)
    return mean
