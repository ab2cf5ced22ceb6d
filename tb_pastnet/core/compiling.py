"""How numba compiles the kernels, and what one element adds to the statistics of its channel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LARGEST = np.finfo(np.float32).max
_ZERO = np.float32(0)

# Sums may be added in any order: several can be added at once. Nothing else is relaxed: NaN and
# infinity stay distinct from numbers.
MATHS = {"reassoc", "contract"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles code for the arguments that it meets, and caches it on disk if possible.

    It releases the interpreter's lock.
    """
    options = {"nogil": True, "fastmath": MATHS, "error_model": "numpy"}
    try:
        fast = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's directory nor the user's can be written
        fast = numba.njit(**options)(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return fast(*arguments)
        except OSError:  # it was compiled, but that can't be kept: a disk is full
            return fast(*arguments)

    return call


@intrinsic
def pointer_to(_context: Any, address: Any, past: Any) -> Any:  # pragma: no cover  compiled
    """The pointer of an address to words as in an array."""

    def cast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(past.dtype)(address, past), cast


@intrinsic
def lowest_bit(_context: Any, _word: Any) -> Any:  # pragma: no cover  compiled
    """The place of the lowest bit that is set in a uint64, which isn't 0."""

    def count(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.uint64), count


@numba.njit(inline="always")
def compared(value: np.float32, past: np.float32) -> tuple[Any, ...]:  # pragma: no cover  compiled
    """What one element adds: current, past, delta, bits of |delta|, changed, non-finite."""
    finite, was_finite = abs(value) <= LARGEST, abs(past) <= LARGEST
    # NaN that stays NaN has not changed.
    changed = (value != past) & ((value == value) | (past == past))
    delta = value - past if finite & was_finite else _ZERO
    # The bits of magnitudes have the same order, and integers are quick to compare.
    bits = np.float32(abs(delta)).view(np.int32)
    counted = np.int32(changed), np.int32(not finite)
    value, past = value if finite else _ZERO, past if was_finite else _ZERO
    return np.float64(value), np.float64(past), np.float64(delta), bits, *counted
