"""What is recorded of each channel, in NumPy.

This is the definition; `train` computes the same on the device. The names and their order are part
of the record format.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.quantize import Codes, keep_one, quantize
from tb_pastnet.errors import InvalidArgument

STATISTICS = (
    "norm",
    "past_norm",
    "delta_norm",
    "delta_max",
    "changed",
    "nonfinite",
    "kept",
    "trainable",
)
"""The statistics of a record, in stored order."""

NORM, PAST_NORM, DELTA_NORM, DELTA_MAX, CHANGED, NONFINITE, KEPT, TRAINABLE = range(8)
SHARES = (CHANGED, KEPT, TRAINABLE)

Floats = npt.NDArray[np.float64]


def channel_statistics(
    current: npt.ArrayLike,
    past: npt.ArrayLike,
    axis: ChannelAxis,
    kept: npt.ArrayLike | None = None,
    trainable: npt.ArrayLike | None = None,
) -> Floats:
    """Reduces a variable and its past value to eight numbers a channel.

    Args:
        current: the values now, shape `axis.view`'s, any real dtype.
        past: the values at the last sync, the same shape.
        axis: which elements make a channel.
        kept: kept mask of that shape, 1 lets the weight through, 0 = pruned. None: all kept.
        trainable: trainable mask of that shape, 1 lets the update through, 0 = frozen.
            None: all trainable.

    Returns:
        float64 of shape (8, channels), rows as in `STATISTICS`:

        * norm, past_norm: the 2-norm over the finite elements.
        * delta_norm, delta_max: 2-norm and largest magnitude of current - past, over elements
          that are finite in both.
        * changed: share of elements whose bits changed, from 0 to 1. NaN that stays the same
          NaN has not changed, nor has 0 that became -0.
        * nonfinite: number of elements of `current` that are NaN or infinite.
        * kept: share kept.
        * trainable: share of the elements that an update may change, kept and trainable.

    Raises:
        InvalidArgument: the shapes differ.

    Example:
        >>> from tb_pastnet.core.axes import explicit_axis
        >>> axis = explicit_axis(-1, (2, 2), "w")
        >>> now, past = [[3.0, 0.0], [4.0, 1.0]], [[3.0, 0.0], [4.0, 0.0]]
        >>> channel_statistics(now, past, axis)[:5].tolist()
        [[5.0, 1.0], [5.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.5]]
    """
    now = axis.split(np.asarray(current))
    before = axis.split(np.asarray(past))
    free = np.ones(now.shape, bool) if kept is None else axis.split(np.asarray(kept)) != 0
    kept_share = _mean(free)
    if trainable is not None:
        free = free & (axis.split(np.asarray(trainable)) != 0)
    changed = (now != before) & ~((now != now) & (before != before))
    now, before = now.astype(np.float64), before.astype(np.float64)
    finite_now, finite_before = np.isfinite(now), np.isfinite(before)
    with np.errstate(invalid="ignore"):
        delta = np.where(finite_now & finite_before, now - before, 0.0)
    return np.stack(
        [
            _norm(np.where(finite_now, now, 0.0)),
            _norm(np.where(finite_before, before, 0.0)),
            _norm(delta),
            np.max(np.abs(delta), axis=1, initial=0.0),
            _mean(changed),
            np.sum(~finite_now, axis=1, dtype=np.float64),
            kept_share,
            _mean(free),
        ]
    )


def quantize_statistics(statistics: npt.ArrayLike) -> Codes:
    """Rounds statistics to the codes that a record stores.

    Args:
        statistics: shape (8, …), rows as in `STATISTICS`.

    Returns:
        int16 codes of the same shape. Shares keep 0 and 1 exact.

    Raises:
        InvalidArgument: the first dimension isn't 8.
    """
    array = np.asarray(statistics)
    if array.ndim == 0 or array.shape[0] != len(STATISTICS):
        raise InvalidArgument(
            f"Could not quantise statistics: expected {len(STATISTICS)} rows, got shape "
            f"{array.shape}. Pass the array that channel_statistics returns."
        )
    codes = quantize(array)
    for row in SHARES:
        keep_one(codes[row], array[row])
    return codes


def _norm(values: Floats) -> Floats:
    # Scaled, so that squares of tiny or huge values neither vanish nor overflow.
    scale = np.max(np.abs(values), axis=1, initial=0.0)
    safe = np.where(scale > 0, scale, 1.0)
    norm: Floats = scale * np.sqrt(np.sum((values / safe[:, None]) ** 2, axis=1))
    return norm


def _mean(flags: npt.NDArray[np.bool_]) -> Floats:
    if flags.shape[1] == 0:
        return np.ones(flags.shape[0])
    mean: Floats = np.mean(flags, axis=1, dtype=np.float64)
    return mean
