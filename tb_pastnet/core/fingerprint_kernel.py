"""The fingerprint of `core.fingerprint`, compiled by numba: it reads each word once, in place.

Importing this module needs numba. A kind of words is compiled, or loaded from what an earlier
process compiled, when it is first met.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from tb_pastnet.core.compiling import compiled
from tb_pastnet.core.fingerprint import PERIOD

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.signedinteger[Any]]

_SIDE_BY_SIDE = 1024
"""So many sums of channels stay in a processor's nearest cache."""


@numba.njit(inline="always")
def _dot(words: Words, factors: Integers) -> Any:  # pragma: no cover  compiled
    total = np.int64(0)
    for place in range(words.size):
        total += np.int64(words[place]) * factors[place]
    return total


@numba.njit(inline="always")
def _along(
    memory: Words, start: int, step: int, first: int, count: int, a: Integers, b: Integers
) -> Any:  # pragma: no cover  compiled
    """The sum of words of one channel, `step` apart in memory, from position `first` on."""
    total, done = np.int64(0), 0
    while done < count:
        block, place = (first + done) // PERIOD, (first + done) % PERIOD
        size = min(PERIOD - place, count - done)
        if step == 1:
            from_ = start + done
            part = _dot(memory[from_ : from_ + size], a[place : place + size])
        else:
            part = np.int64(0)
            for i in range(size):
                part += np.int64(memory[start + (done + i) * step]) * a[place + i]
        total += part * b[block]
        done += size
    return total


@numba.njit(inline="always")
def _across(
    memory: Words,
    start: int,
    apart: int,
    first: int,
    count: int,
    step: int,
    a: Integers,
    b: Integers,
    out: Integers,
) -> None:  # pragma: no cover  compiled
    """Adds the same words of some channels, which are `apart` in memory."""
    done = 0
    while apart == 1 and done + 4 <= count:  # four at once: `out` is read and written less often
        from_ = start + done * step
        f0, f1 = _factor(first + done, a, b), _factor(first + done + 1, a, b)
        f2, f3 = _factor(first + done + 2, a, b), _factor(first + done + 3, a, b)
        w0, w1 = memory[from_ : from_ + out.size], memory[from_ + step : from_ + step + out.size]
        from_ += 2 * step
        w2, w3 = memory[from_ : from_ + out.size], memory[from_ + step : from_ + step + out.size]
        for channel in range(out.size):
            out[channel] += (
                np.int64(w0[channel]) * f0
                + np.int64(w1[channel]) * f1
                + np.int64(w2[channel]) * f2
                + np.int64(w3[channel]) * f3
            )
        done += 4
    for i in range(done, count):
        factor, from_ = _factor(first + i, a, b), start + i * step
        for channel in range(out.size):
            out[channel] += np.int64(memory[from_ + channel * apart]) * factor


@numba.njit(inline="always")
def _factor(position: int, a: Integers, b: Integers) -> Any:  # pragma: no cover  compiled
    return a[position % PERIOD] * b[position // PERIOD]


@compiled
def add_words(
    memory: Words,
    start: int,
    shape: tuple[int, int, int, int, int],
    steps: tuple[int, int, int, int, int],
    across: bool,
    a: Integers,
    b: Integers,
    out: Integers,
) -> None:  # pragma: no cover  compiled
    """Adds words × A × B to the sums of their channels.

    The words are a view of `memory`, which is one-dimensional and contiguous: of a shape, its steps
    and its start in words. Its first two axes number the channels, its others the positions in a
    channel. Channels are taken side by side if `across`, else one after the other. `a` and `b` are
    the tables, `out` is int64 (channels,).
    """
    outer, channels, high, middle, low = shape
    width = _SIDE_BY_SIDE if across else 1
    for row in range(outer):
        for channel in range(0, channels, width):
            own = out[row * channels + channel : row * channels + min(channel + width, channels)]
            position, corner = 0, start + row * steps[0] + channel * steps[1]
            for i in range(high):
                for j in range(middle):
                    place = corner + i * steps[2] + j * steps[3]
                    if across:
                        _across(memory, place, steps[1], position, low, steps[4], a, b, own)
                    else:
                        own[0] += _along(memory, place, steps[4], position, low, a, b)
                    position += low
