"""The statistics of a whole network in one compiled call, which reads the weights in place.

It computes what `core.statistics.channel_statistics` defines, as `core.kernels` does. Importing
this module needs numba, and compiles, or loads what an earlier process compiled.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import carray, types
from numba.extending import intrinsic

from tb_pastnet.core.compiling import LARGEST, MATHS, compared, compiled
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    NONFINITE,
    NORM,
    PAST_NORM,
)

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))

_part = numba.njit(fastmath=MATHS, error_model="numpy", nogil=True)
"""Compiles a part of the functions below."""


@_part
def _sum_row(piece: Floats, old: Floats) -> tuple[Any, ...]:  # pragma: no cover  compiled
    """What the elements of one channel add."""
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
    return first, second, third, largest, changed, nonfinite


@_part
def _sum_places(
    current: Floats, past: Floats, squares: Rows, counts: Counts
) -> None:  # pragma: no cover  compiled
    """Sums elements that are a number of places apart, as many as there are sums."""
    first, second, third = squares[0], squares[1], squares[2]
    largest, changed, nonfinite = counts[0], counts[1], counts[2]
    width = counts.shape[1]
    for place in range(width):
        first[place] = second[place] = third[place] = 0
        largest[place] = changed[place] = nonfinite[place] = 0
    for start in range(0, current.shape[0], width):
        piece, old = current[start : start + width], past[start : start + width]
        for place in range(piece.shape[0]):
            a, b, d, bits, differs, wrong = compared(piece[place], old[place])
            first[place] += a * a
            second[place] += b * b
            third[place] += d * d
            largest[place] = max(largest[place], bits)
            changed[place] += differs
            nonfinite[place] += wrong


@numba.njit(inline="always")
def _replace(old: Floats, piece: Floats) -> None:  # pragma: no cover  compiled
    for place in range(piece.shape[0]):  # numba's own copy of a slice takes several times as long
        old[place] = piece[place]


@_part
def _compare_singles(
    current: Floats, past: Floats, first: int, out: Floats
) -> None:  # pragma: no cover  compiled
    """Channels of one element each, from number `first` on: without sums, and without roots."""
    channels = slice(first, first + current.shape[0])
    norm, past_norm = out[NORM, channels], out[PAST_NORM, channels]
    delta_norm, delta_max = out[DELTA_NORM, channels], out[DELTA_MAX, channels]
    changed, nonfinite = out[CHANGED, channels], out[NONFINITE, channels]
    for place in range(current.shape[0]):
        a, b, d, _, differs, wrong = compared(current[place], past[place])
        norm[place], past_norm[place] = abs(a), abs(b)
        delta_norm[place] = delta_max[place] = abs(d)
        changed[place], nonfinite[place] = differs, wrong


@intrinsic
def _at(_context: Any, address: Any) -> Any:  # pragma: no cover  compiled
    """The pointer to float32 of an address."""

    def cast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(address), cast


@_part
def _finish(
    out: Floats,
    channel: int,
    elements: int,
    first: float,
    second: float,
    third: float,
    largest: int,
    changed: int,
    nonfinite: int,
) -> Any:  # pragma: no cover  compiled
    """Writes the statistics of a channel; whether a norm doesn't fit into float32."""
    norm, past_norm, delta_norm = np.sqrt(first), np.sqrt(second), np.sqrt(third)
    out[NORM, channel], out[PAST_NORM, channel] = norm, past_norm
    out[DELTA_NORM, channel] = delta_norm
    out[DELTA_MAX, channel] = np.int32(largest).view(np.float32)
    share = np.float32(changed / elements)
    # It is 1 only where all have changed.
    out[CHANGED, channel] = min(share, _BELOW_ONE) if changed < elements else share
    out[NONFINITE, channel] = nonfinite
    return max(norm, past_norm, delta_norm) > LARGEST


@compiled("i8(i8[::1], i8[:, ::1], float32[::1], float32[:, ::1], b1)")
def network(
    addresses: Integers, sizes: Integers, past: Floats, out: Floats, replace: bool
) -> int:  # pragma: no cover
    """Reduces all weights of a network where they lie, in one call.

    `addresses` are of C-contiguous float32 in this process's memory, which must be valid. A row of
    `sizes` for each weight: its first place in `past`, its first channel, then how it splits:
    (outer, channels, inner), and how many elements are summed side by side. Overwrites `out`,
    (VALUE_ROWS, channels of all); `past` becomes the current values where `replace`. Returns how
    many weights have a norm that doesn't fit into float32: it is infinite, and `past` stays.
    """
    widest = 1
    for number in range(sizes.shape[0]):
        widest = max(widest, sizes[number, 5])
    squares, counts = np.empty(3 * widest), np.empty(3 * widest, np.int32)
    missed = 0
    for number in range(addresses.shape[0]):
        begin, channel, outer, channels, inner, width = sizes[number]
        length = outer * channels * inner
        current = carray(_at(addresses[number]), length)
        old = past[begin : begin + length]
        wide = False
        if outer * inner == 1:
            _compare_singles(current, old, channel, out)
        elif outer == 1:
            for row in range(channels):
                piece, own = slice(row * inner, (row + 1) * inner), channel + row
                a, b, d, bits, differs, nonfinite = _sum_row(current[piece], old[piece])
                wide |= _finish(out, own, inner, a, b, d, bits, differs, nonfinite)
        else:
            places = squares[: 3 * width].reshape(3, width)
            numbers = counts[: 3 * width].reshape(3, width)
            _sum_places(current, old, places, numbers)
            # A channel's are side by side, and come again with each turn.
            for row in range(channels):
                a = b = d = 0.0
                bits = differs = nonfinite = np.int32(0)
                for turn in range(row * inner, width, channels * inner):
                    for place in range(turn, turn + inner):
                        a, b, d = a + places[0, place], b + places[1, place], d + places[2, place]
                        bits = max(bits, numbers[0, place])
                        differs += numbers[1, place]
                        nonfinite += numbers[2, place]
                elements = outer * inner
                wide |= _finish(out, channel + row, elements, a, b, d, bits, differs, nonfinite)
        missed += wide
        if replace and not wide:
            _replace(old, current)
    return missed


@compiled("(i8[::1], i8[:, ::1], float32[::1])")
def copy_network(addresses: Integers, sizes: Integers, past: Floats) -> None:  # pragma: no cover
    """Makes the current values of all weights the past ones: see `network`."""
    for number in range(addresses.shape[0]):
        begin, _, outer, channels, inner, _ = sizes[number]
        length = outer * channels * inner
        _replace(past[begin : begin + length], carray(_at(addresses[number]), length))
