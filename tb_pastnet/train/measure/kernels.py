"""The statistics of float32 values, compiled by numba: one pass over memory does all of it.

It computes what `core.statistics.channel_statistics` defines, with sums in float64, in which the
square of no float32 vanishes or overflows. Importing this module needs numba, and compiles, or
loads what an earlier process compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]

NORM, PAST_NORM, DELTA_NORM, DELTA_MAX, CHANGED, NONFINITE = range(6)
ROWS = 6
"""What a kernel gives for each channel: three sums of squares, the largest |delta|, two counts."""

_LARGEST = np.finfo(np.float32).max
_ZERO = np.float32(0)

# Sums may be added in any order, which is what lets several be added at once. Nothing else is
# relaxed: NaN and infinity are told from numbers.
_MATHS = {"reassoc", "contract"}


def _compiled(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compiles code that lets go of the interpreter's lock, and keeps it on disk if possible."""

    def compile_now(function: Callable[..., Any]) -> Any:
        options = {"nogil": True, "fastmath": _MATHS, "error_model": "numpy"}
        # Numba raises where neither the package's directory nor the user's can be written.
        with contextlib.suppress(RuntimeError):
            return numba.njit(signature, cache=True, **options)(function)
        return numba.njit(signature, **options)(function)

    return compile_now


@numba.njit(inline="always")
def _compared(now: Any, before: Any) -> Any:  # pragma: no cover  compiled
    """What one element adds: current, past, delta, bits of |delta|, changed, non-finite."""
    finite, was_finite = abs(now) <= _LARGEST, abs(before) <= _LARGEST
    # NaN that stays NaN has not changed.
    changed = (now != before) & ((now == now) | (before == before))
    delta = now - before if finite & was_finite else _ZERO
    # The bits of magnitudes are in their order, and the larger of two integers is quick to find.
    bits = np.float32(abs(delta)).view(np.int32)
    counted = np.int32(changed), np.int32(not finite)
    now, before = now if finite else _ZERO, before if was_finite else _ZERO
    return np.float64(now), np.float64(before), np.float64(delta), bits, *counted


@_compiled("(Array(float32, 2, 'C', readonly=True), float32[:, ::1], float64[:, :, ::1], b1)")
def columns(current: Any, past: Any, out: Any, replace: Any) -> None:  # pragma: no cover
    """Reduces arrays whose elements are of the channels 0, 1, …, width − 1, 0, 1, … in turn.

    Args:
        current: float32 (members, elements).
        past: likewise.
        out: float64 (ROWS, members, width), which is overwritten.
        replace: whether `past` becomes `current`.
    """
    width = out.shape[2]
    largest = np.empty(width, np.int32)
    changed = np.empty(width, np.int32)
    nonfinite = np.empty(width, np.int32)
    for member in range(out.shape[1]):
        first, second, third = out[NORM, member], out[PAST_NORM, member], out[DELTA_NORM, member]
        for at in range(width):
            first[at] = second[at] = third[at] = 0
            largest[at] = changed[at] = nonfinite[at] = 0
        for start in range(0, current.shape[1], width):
            now = current[member, start : start + width]
            before = past[member, start : start + width]
            for at in range(now.shape[0]):
                a, b, d, bits, differs, wrong = _compared(now[at], before[at])
                first[at] += a * a
                second[at] += b * b
                third[at] += d * d
                largest[at] = max(largest[at], bits)
                changed[at] += differs
                nonfinite[at] += wrong
            if replace:  # a loop: numba's own copy of a slice takes several times as long
                for at in range(now.shape[0]):
                    before[at] = now[at]
        for at in range(width):
            out[DELTA_MAX, member, at] = np.int32(largest[at]).view(np.float32)
            out[CHANGED, member, at] = changed[at]
            out[NONFINITE, member, at] = nonfinite[at]


@_compiled("(Array(float32, 2, 'C', readonly=True), float32[:, ::1], float64[:, ::1], b1)")
def rows(current: Any, past: Any, out: Any, replace: Any) -> None:  # pragma: no cover
    """Reduces each row of an array.

    Args:
        current: float32 (rows, elements).
        past: likewise.
        out: float64 (ROWS, rows), which is overwritten.
        replace: whether `past` becomes `current`.
    """
    for row in range(current.shape[0]):
        now, before = current[row], past[row]
        first = second = third = 0.0
        largest = changed = nonfinite = np.int32(0)
        for at in range(now.shape[0]):
            a, b, d, bits, differs, wrong = _compared(now[at], before[at])
            first += a * a
            second += b * b
            third += d * d
            largest = max(largest, bits)
            changed += differs
            nonfinite += wrong
        if replace:
            for at in range(now.shape[0]):
                before[at] = now[at]
        out[NORM, row], out[PAST_NORM, row], out[DELTA_NORM, row] = first, second, third
        out[DELTA_MAX, row] = np.int32(largest).view(np.float32)
        out[CHANGED, row], out[NONFINITE, row] = changed, nonfinite
