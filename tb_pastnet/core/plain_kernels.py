"""The statistics of float32 values in NumPy, where numba isn't.

Values are reduced block by block: what is computed of a block stays in a processor's cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, NONFINITE, VALUE_ROWS

BLOCK = 1 << 15
"""Elements of a block: in float64 they take 256 KiB."""

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


def columns(
    current: Floats, past: Floats, width: int, inner: int, out: Rows, replace: bool
) -> None:
    """Reduces arrays whose channels come in turn: 0, 1, …, 0, 1, … and so on.

    Both are float32 (members, elements), from the first element of the first channel on; if
    `replace`, `past` becomes `current`. `width` elements are summed side by side, whole turns of
    all channels; `inner` is how many adjacent elements belong to one channel. Overwrites `out`,
    float64 (VALUE_ROWS, members, channels): three sums of squares, the largest |delta|, two counts.
    """
    members, size = current.shape
    channels = out.shape[2]
    period = channels * inner
    # In a single turn each channel is a row; else turns are summed, and then their elements.
    rest = 1 if size == period else inner
    height, step = max(1, BLOCK // size), max(1, BLOCK // width) * width
    out[...] = 0
    for top in range(0, members, height):
        for left in range(0, size, step):
            cut = slice(top, top + height), slice(left, left + step)
            piece = current[cut]
            # The last piece may end within such a width, but not within a turn.
            turn = period if piece.shape[1] % width else width
            shape = (-1, inner, 1) if size == period else (len(piece), -1, turn)
            reduced = _reduced(piece.reshape(shape), past[cut].reshape(shape))
            reduced = reduced.reshape(VALUE_ROWS, len(piece), -1, channels, rest)
            sums, largest = reduced.sum(axis=(2, 4)), reduced[DELTA_MAX].max(axis=(1, 3))
            largest = np.maximum(out[DELTA_MAX, cut[0]], largest)
            out[:, cut[0]] += sums
            out[DELTA_MAX, cut[0]] = largest
            if replace:
                past[cut] = piece


def rows(
    current: Floats, past: Floats, first_row: int, turns: int, out: Rows, replace: bool
) -> None:
    """Reduces arrays each row of which belongs to one channel: 0, 1, …, 0, 1, … and so on.

    Both are float32 (rows, elements), some rows of all members from number `first_row` on; `past`
    becomes `current` where `replace`. In a member the channels come in turn `turns` times. Adds to
    `out`, as in `columns`.
    """
    height = max(1, BLOCK // current.shape[1])
    channels = out.shape[2]
    numbers = first_row + np.arange(len(current))
    numbers = numbers // (turns * channels) * channels + numbers % channels
    for top in range(0, len(current), height):
        for left in range(0, current.shape[1], BLOCK):
            cut = slice(top, top + height), slice(left, left + BLOCK)
            reduced = _reduced(current[cut][:, :, None], past[cut][:, :, None])[:, :, 0]
            for row, total in enumerate(out.reshape(VALUE_ROWS, -1)):
                add = np.maximum if row == DELTA_MAX else np.add
                add.at(total, numbers[cut[0]], reduced[row])
            if replace:
                past[cut] = current[cut]


def _reduced(current: Floats, past: Floats) -> Rows:
    """Reduces (outer, elements, inner) to (VALUE_ROWS, outer, inner): sums, and largest |delta|."""
    with np.errstate(over="ignore", invalid="ignore"):
        delta, changed = current - past, current != past
        result = _summed(current, past, delta, changed)
        # No square of a finite float32 overflows: only what isn't finite makes such a sum.
        if np.isfinite(result).all():
            return result
        finite, was_finite = np.isfinite(current), np.isfinite(past)
        changed &= ~(np.isnan(current) & np.isnan(past))
        delta = np.where(finite & was_finite, current - past, np.float32(0))
        current = np.where(finite, current, np.float32(0))
        result = _summed(current, np.where(was_finite, past, np.float32(0)), delta, changed)
        result[NONFINITE] = np.count_nonzero(~finite, axis=1)
        return result


def _summed(current: Floats, past: Floats, delta: Floats, changed: npt.NDArray[np.bool_]) -> Rows:
    """What `_reduced` gives of finite values; spoils `delta`."""
    result = np.zeros((VALUE_ROWS, current.shape[0], current.shape[2]))
    wide = np.empty(current.shape)
    for row, values in enumerate((current, past, delta)):
        np.copyto(wide, values)
        np.einsum("oei,oei->oi", wide, wide, out=result[row])
    np.maximum.reduce(np.abs(delta, out=delta), axis=1, out=result[DELTA_MAX])
    # To count by channel takes long, and mostly all or none have changed.
    count = np.count_nonzero(changed)
    alike = count in (0, changed.size)
    result[CHANGED] = changed.shape[1] * bool(count) if alike else changed.sum(axis=1)
    return result
