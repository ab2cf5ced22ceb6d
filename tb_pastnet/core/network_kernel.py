"""The statistics of a whole network in one compiled call, which reads the weights in place.

It computes what `core.statistics.channel_statistics` defines, with sums in float64, in which the
square of no float32 vanishes or overflows. Importing this module needs numba. A variant is compiled
for each kind of word that occurs, or loaded if an earlier process compiled it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from tb_pastnet.core.compiling import LARGEST, compared, compiled, pointer_to
from tb_pastnet.core.fingerprint import PERIOD
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    NONFINITE,
    NORM,
    PAST_NORM,
)

Rows = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

_FACTORS = 1024
"""So many factors stay in a processor's nearest cache."""

_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


def _value(word: Any) -> Any:  # pragma: no cover  compiled
    """The float32 of a word of `core.float_words`."""
    raise NotImplementedError(word)


@overload(_value, inline="always")
def _value_of(word: Any) -> Callable[[Any], Any]:
    def plain(word: Any) -> Any:  # pragma: no cover  compiled
        return word

    def brain(word: Any) -> Any:  # pragma: no cover  compiled
        return np.int32(np.int32(word) << 16).view(np.float32)

    def half(word: Any) -> Any:  # pragma: no cover  compiled
        bits = np.int32(word)
        # Without branches: a loop of them is slow. Subnormals have the exponent 1, and no bit more.
        exponent = (bits >> 10) & 31
        normal = np.int32(exponent > 0)
        fraction = np.float32((bits & 0x3FF) | (normal << 10))
        value = fraction * np.int32((exponent + 103 - normal) << 23).view(np.float32)
        special = np.int32(exponent == 31) * 0x7F800000
        sign = (bits & 0x8000) << 16
        return np.int32(np.float32(value).view(np.int32) | special | sign).view(np.float32)

    return {types.uint16: brain, types.int16: half}.get(word, plain)


@numba.njit(inline="always")
def _finish(
    out: Rows,
    channel: int,
    elements: int,
    first: float,
    second: float,
    third: float,
    largest: int,
    changed: int,
    nonfinite: int,
) -> Any:  # pragma: no cover  compiled
    """Writes the statistics of a channel; whether its norms fit into float32."""
    norm, past_norm, delta_norm = np.sqrt(first), np.sqrt(second), np.sqrt(third)
    out[NORM, channel], out[PAST_NORM, channel] = norm, past_norm
    out[DELTA_NORM, channel] = delta_norm
    out[DELTA_MAX, channel] = np.int32(largest).view(np.float32)
    share = np.float32(changed / elements)
    # It is 1 only where all have changed.
    out[CHANGED, channel] = min(share, _BELOW_ONE) if changed < elements else share
    out[NONFINITE, channel] = nonfinite
    return max(norm, past_norm, delta_norm) <= LARGEST


@numba.njit(inline="always")
def _sum_places(
    current: Any,
    past: Any,
    length: int,
    stride: int,
    own: slice,
    fresh: int,
    squares: Rows,
    counts: Counts,
) -> None:  # pragma: no cover  compiled
    """Sums words side by side, from each turn to the next, in a part of all sums."""
    first, second, third = squares[0, own], squares[1, own], squares[2, own]
    largest, changed, nonfinite = counts[0, own], counts[1, own], counts[2, own]
    width = first.shape[0]
    for place in range(width if fresh else 0):
        first[place] = second[place] = third[place] = 0
        largest[place] = changed[place] = nonfinite[place] = 0
    for start in range(0, length, max(stride, width)):
        for place in range(min(width, length - start)):
            value, old = _value(current[start + place]), _value(past[start + place])
            a, b, d, bits, differs, wrong = compared(value, old)
            first[place] += a * a
            second[place] += b * b
            third[place] += d * d
            largest[place] = max(largest[place], bits)
            changed[place] += differs
            nonfinite[place] += wrong


@numba.njit(inline="always")
def _collect(
    begin: int, end: int, step: int, inner: int, squares: Rows, counts: Counts
) -> tuple[Any, ...]:  # pragma: no cover  compiled
    """The sums of a channel: `inner` places from `begin` on, and again after each `step`."""
    first = second = third = 0.0
    largest = changed = nonfinite = np.int32(0)
    for start in range(begin, end, step):
        for place in range(start, start + inner):
            first, second = first + squares[0, place], second + squares[1, place]
            third, largest = third + squares[2, place], max(largest, counts[0, place])
            changed, nonfinite = changed + counts[1, place], nonfinite + counts[2, place]
    return first, second, third, largest, changed, nonfinite


@numba.njit(error_model="numpy")
def _add_turns(
    words: Any, turns: int, stride: int, position: int, a: Any, b: Any, prints: Any
) -> None:  # pragma: no cover  compiled
    """Adds words by their factors to the fingerprints of channels that come in turn."""
    for turn in range(turns):
        factor = a[(position + turn) % PERIOD] * b[(position + turn) // PERIOD]
        begin = turn * stride
        for channel in range(prints.size):
            prints[channel] += np.int64(words[begin + channel]) * factor


@numba.njit(error_model="numpy")
def _add_runs(
    words: Any, turns: int, inner: int, stride: int, position: int, a: Any, b: Any, prints: Any
) -> None:  # pragma: no cover  compiled
    """The same where several words of a channel follow one another in each turn."""
    for turn in range(turns):
        first, done = position + turn * inner, 0
        while done < inner:
            block, at = (first + done) // PERIOD, (first + done) % PERIOD
            size = min(PERIOD - at, inner - done, _FACTORS)
            own, begin = a[at : at + size], turn * stride + done
            for channel in range(prints.size):
                place, part = begin + channel * inner, np.int64(0)
                for number in range(size):
                    part += np.int64(words[place + number]) * own[number]
                prints[channel] += part * b[block]
            done += size


@compiled
def network(
    addresses: Integers,
    pieces: Integers,
    copy: Any,
    words: Any,
    squares: Rows,
    counts: Counts,
    table_a: Integers,
    table_b: Integers,
    prints: Integers,
    out: Rows,
    measures: bool,
    replaces: bool,
) -> bool:  # pragma: no cover
    """Reduces pieces of weights where they lie, in one call.

    `addresses` are of C-contiguous words in this process's memory, which must be valid. `pieces`,
    `squares` and `counts` are those of a `core.pieces.PiecePlan`, `copy` has the past words of all
    weights, and `words` is the same memory as signed integers. If it `measures`, it overwrites the
    channels of `out`, (VALUE_ROWS, channels of all), that the pieces complete, and adds to
    `prints` what `core.fingerprint` defines, by its tables. If it `replaces`, `copy`
    becomes the current words. Returns whether all norms fit into float32.
    """
    fits = True
    for number in range(pieces.shape[0]):
        weight, offset, begin, channel, turns, channels, inner, stride = pieces[number, :8]
        width, sums, ends, fresh, elements, position, own_place = pieces[number, 8:]
        address = addresses[weight] + offset * copy.itemsize
        current = pointer_to(address, copy)
        past = pointer_to(copy.ctypes.data + begin * copy.itemsize, copy)
        length = (turns - 1) * stride + channels * inner if turns else 0
        if measures and turns and width:
            own = slice(sums, sums + width)
            _sum_places(current, past, length, stride, own, fresh, squares, counts)
        for row in range(channels if measures and elements else 0):
            first, second, third, largest, changed, nonfinite = _collect(
                sums + row * inner, ends, channels * inner, inner, squares, counts
            )
            for start in range(row * inner, 0 if width else length, stride):
                for place in range(start, start + inner):
                    value, old = _value(current[place]), _value(past[place])
                    a, b, d, bits, differs, wrong = compared(value, old)
                    first, second, third = first + a * a, second + b * b, third + d * d
                    largest, changed = max(largest, bits), changed + differs
                    nonfinite += wrong
            fits &= _finish(
                out, channel + row, elements, first, second, third, largest, changed, nonfinite
            )
        if measures and turns:  # while the processor's cache has these words
            own_prints = prints[own_place : own_place + channels]
            word = pointer_to(address, words)
            if inner == 1:
                _add_turns(word, turns, stride, position, table_a, table_b, own_prints)
            else:
                _add_runs(word, turns, inner, stride, position, table_a, table_b, own_prints)
        for start in range(0, length if replaces else 0, stride):
            for place in range(start, start + channels * inner):
                past[place] = current[place]
    return fits


@compiled
def sketches(
    addresses: Integers,
    sizes: Integers,
    copy: Any,
    signs: Any,
    rotations: Integers,
    blocks: Any,
    out: Rows,
) -> None:  # pragma: no cover
    """The sketches of `core.sketch` of arrays where they lie, in words as those of `copy`.

    `signs`, `rotations` and `blocks` are its tables. It overwrites `out`, (arrays, buckets).
    """
    rows, width = signs.shape
    # Four sums in turn, each twice as long for the rotations: no store is loaded again at once.
    sums = np.empty((4, 2 * width))
    for number in range(addresses.size):
        words, size = pointer_to(addresses[number], copy), sizes[number]
        out[number] = 0
        for begin in range(0, size, rows * width):
            sums[:] = 0
            for row in range(min(rows, (size - begin + width - 1) // width)):
                place = begin + row * width
                own = sums[row & 3, rotations[row] : rotations[row] + width]
                for lane in range(min(width, size - place)):
                    own[lane] += np.float64(_value(words[place + lane]) * signs[row, lane])
            sign = blocks[begin // (rows * width) % blocks.size]
            for part in range(4):
                for lane in range(width):
                    out[number, lane] += sign * (sums[part, lane] + sums[part, width + lane])
