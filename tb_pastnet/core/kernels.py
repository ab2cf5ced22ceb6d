"""The statistics of float32 values, compiled by numba: one pass over memory computes all of them.

It computes what `core.statistics.channel_statistics` defines, with sums in float64, in which the
square of no float32 vanishes or overflows. Importing this module needs numba, and compiles, or
loads what an earlier process compiled.

What a kernel gives for each channel: three sums of squares, the largest |delta|, two counts.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tb_pastnet.core.compiling import compared, compiled
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    NONFINITE,
    NORM,
    PAST_NORM,
    VALUE_ROWS,
)

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]


@numba.njit(inline="always")
def _add(
    out: Rows, member: int, channel: int, first: float, second: float, third: float, bits: int
) -> None:  # pragma: no cover  compiled
    """Adds sums of squares, and the largest |delta| by its bits."""
    out[NORM, member, channel] += first
    out[PAST_NORM, member, channel] += second
    out[DELTA_NORM, member, channel] += third
    largest = np.float64(np.int32(bits).view(np.float32))
    out[DELTA_MAX, member, channel] = max(out[DELTA_MAX, member, channel], largest)


@numba.njit(inline="always")
def _collect(
    out: Rows,
    member: int,
    inner: int,
    squares: Rows,
    largest: Counts,
    changed: Counts,
    nonfinite: Counts,
) -> None:  # pragma: no cover  compiled
    """Adds what was summed place by place to the channels, which come in turn."""
    place = 0
    while place < largest.shape[0]:  # counted: dividing for each place is slow
        for channel in range(out.shape[2]):
            for _ in range(inner):
                first, second, third = squares[0, place], squares[1, place], squares[2, place]
                _add(out, member, channel, first, second, third, largest[place])
                out[CHANGED, member, channel] += changed[place]
                out[NONFINITE, member, channel] += nonfinite[place]
                place += 1


_SIGNATURE = (
    "(Array(float32, 2, 'C', readonly=True), float32[:, ::1], i8, i8, float64[:, :, ::1], b1)"
)


@compiled(_SIGNATURE)
def columns(
    current: Floats, past: Floats, width: int, inner: int, out: Rows, replace: bool
) -> None:  # pragma: no cover
    """Reduces arrays whose channels come in turn: 0, 1, …, 0, 1, … and so on.

    Both are float32 (members, elements), from the first element of the first channel on; if
    `replace`, `past` becomes `current`. `width` elements are summed side by side, whole turns of
    all channels; `inner` is how many adjacent elements belong to one channel. Overwrites `out`,
    float64 (VALUE_ROWS, members, channels).
    """
    squares = np.empty((3, width), np.float64)
    first, second, third = squares[0], squares[1], squares[2]
    largest = np.empty(width, np.int32)
    changed = np.empty(width, np.int32)
    nonfinite = np.empty(width, np.int32)
    for member in range(current.shape[0]):
        for place in range(width):
            first[place] = second[place] = third[place] = 0
            largest[place] = changed[place] = nonfinite[place] = 0
        for start in range(0, current.shape[1], width):
            piece = current[member, start : start + width]
            old = past[member, start : start + width]
            for place in range(piece.shape[0]):
                a, b, d, bits, differs, wrong = compared(piece[place], old[place])
                first[place] += a * a
                second[place] += b * b
                third[place] += d * d
                largest[place] = max(largest[place], bits)
                changed[place] += differs
                nonfinite[place] += wrong
            if replace:  # a loop: numba's own copy of a slice takes several times as long
                for place in range(piece.shape[0]):
                    old[place] = piece[place]
        for row in range(VALUE_ROWS):
            for channel in range(out.shape[2]):
                out[row, member, channel] = 0
        _collect(out, member, inner, squares, largest, changed, nonfinite)


@compiled(_SIGNATURE)
def rows(
    current: Floats, past: Floats, first_row: int, turns: int, out: Rows, replace: bool
) -> None:  # pragma: no cover
    """Reduces arrays each row of which belongs to one channel: 0, 1, …, 0, 1, … and so on.

    Both are float32 (rows, elements), some rows of all members from number `first_row` on; `past`
    becomes `current` where `replace`. In a member the channels come in turn `turns` times. Adds to
    `out`, float64 (VALUE_ROWS, members, channels).
    """
    for row in range(current.shape[0]):
        piece, old = current[row], past[row]
        first = second = third = 0.0
        largest = changed = nonfinite = np.int32(0)
        for place in range(piece.shape[0]):
            a, b, d, bits, differs, wrong = compared(piece[place], old[place])
            first += a * a
            second += b * b
            third += d * d
            largest = max(largest, bits)
            changed += differs
            nonfinite += wrong
        if replace:
            for place in range(piece.shape[0]):
                old[place] = piece[place]
        turn, channel = divmod(first_row + row, out.shape[2])
        member = turn // turns
        _add(out, member, channel, first, second, third, largest)
        out[CHANGED, member, channel] += changed
        out[NONFINITE, member, channel] += nonfinite
