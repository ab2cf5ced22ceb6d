"""A fingerprint of each channel's bits: 64 bits instead of a copy show whether any has changed.

It is the sum of word × A[p mod 4096] × B[p div 4096] over a channel, modulo 2⁶⁴. A word is the
signed integer of an element's 1, 2 or 4 bytes. Larger elements are several words of 4 bytes, the
lowest first. p is a word's position in its channel, in C order of the weight as its framework shows
it, whatever the memory's. A and B are odd numbers from splitmix64 (Steele, Lea, Flood: Fast
splittable pseudorandom number generators, 2014) with the seeds 1 and 2: anybody can compute them.

A change of one word is always seen, since an odd factor has an inverse. Another change is missed by
chance: once in 2⁶⁴ times, or in 2⁶⁴⁻ᵏ if 2ᵏ divides all differences of words (k is at most 31, and
that where only signs flip). A plain sum would miss words that swap, and whole words of 8 bytes
would hide each even number of flipped signs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.numba_switch import numba_kernels

PERIOD = 4096
"""The length of A: it stays in a processor's cache."""

_PIECE = 1 << 20
"""Words that NumPy takes at once: as many factors are 8 MiB."""

_AXES = 2, 3
"""Of channels and of positions that a kernel takes, once those that can be joined are."""

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Prints = npt.NDArray[np.uint64]
Box: TypeAlias = tuple[slice, ...]


def fingerprints(array: Array, axis: ChannelAxis, *, fast: bool = True) -> Prints:
    """The fingerprint of each channel of an array.

    Args:
        array: values of any dtype of 1, 2, 4, 8 or 16 bytes, of the shape of the axis, in any order
            in memory. No array of its size is made.
        axis: how it splits into channels.
        fast: whether numba computes it, if it is installed. To compile that takes as long as NumPy
            needs for a billion words.

    Returns:
        uint64 (channels,): equal for equal bits. NaN counts by its bits, and -0.0 isn't 0.0. 0 for
        channels without elements.

    Example:
        >>> from tb_pastnet.core.axes import explicit_axis
        >>> array = np.float32([[1, 2], [3, 4]])
        >>> before = fingerprints(array, explicit_axis(-1, array.shape, "kernel"))
        >>> array[1, 1] = -4
        >>> before == fingerprints(array, explicit_axis(-1, array.shape, "kernel"))
        array([ True, False])
    """
    view, order, axes = without_ones(axis)
    words = words_of(array.reshape(view))
    words, out = words.transpose(*order, words.ndim - 1), np.zeros(axis.channels, np.int64)
    kernel = numba_kernels("NumPy", "fingerprint_kernel") if fast else None
    layout = None if kernel is None else _layout_of(words, axes)
    if kernel is not None and layout is not None:
        kernel.add_words(*layout, *tables(words.size // len(out)), out)
    else:
        outermost = sorted(range(words.ndim), key=lambda at: -abs(words.strides[at]))
        for box in boxes(words.shape, outermost, _PIECE):
            channels: tuple[Any, ...] = *box[:axes], ...
            own = out.reshape(words.shape[:axes])[channels]
            own += _sums(words[box], factors(words.shape[axes:], box[axes:])).reshape(own.shape)
    return out.view(np.uint64)


@lru_cache(maxsize=256)
def without_ones(axis: ChannelAxis) -> tuple[list[int], list[int], int]:
    """An axis without dimensions of length 1: words have one more, and 64 are the most.

    Returns:
        The view, the order of its dimensions, and how many of these, at first, number channels.
    """
    kept = [at for at, size in enumerate(axis.view) if size != 1]
    order = [kept.index(at) for at in axis.order if at in kept]
    view = [axis.view[at] for at in kept]
    return view, order, sum(at in kept for at in axis.axes)


def words_of(array: Array) -> npt.NDArray[np.signedinteger[Any]]:
    """A view of an array as signed words, with one more axis: those of an element."""
    size = array.dtype.itemsize
    return array.view(np.dtype((f"i{min(size, 4)}", (max(1, size // 4),))))


def factors(shape: Sequence[int], box: Box) -> Integers:
    """A × B of the positions in a box of such a shape, in C order: int64, modulo 2⁶⁴."""
    ranges = tuple((part.start, part.stop) for part in box)
    # Small ones are kept: to compute them takes longer than to use them.
    make = _few_factors if prod(shape) <= PERIOD else _factors
    return make(tuple(shape), ranges)


def _factors(shape: tuple[int, ...], ranges: tuple[tuple[int, int], ...]) -> Integers:
    positions = np.zeros(1, np.int64)
    for size, own in zip(shape, ranges, strict=True):
        positions = (positions[:, None] * size + np.arange(*own)).reshape(-1)
    a, b = tables(prod(shape))
    found: Integers = a[positions % PERIOD] * b[positions // PERIOD]
    return found


_few_factors = lru_cache(maxsize=256)(_factors)


def tables(positions: int) -> tuple[Integers, Integers]:
    """A, and as much of B as so many positions need, both int64."""
    blocks = -(-positions // PERIOD)
    return _table(PERIOD, 1), _table(max(1024, 1 << (blocks - 1).bit_length()), 2)


@cache
def _table(count: int, seed: int) -> Integers:
    table = (splitmix64(count, seed) | np.uint64(1)).view(np.int64)
    table.flags.writeable = False
    return table


def splitmix64(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """The first numbers of splitmix64 from a seed."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state += np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return state ^ (state >> np.uint64(31))


def boxes(shape: Sequence[int], order: Sequence[int], most: int) -> Iterator[Box]:
    """Cuts a shape into boxes of at most so many elements, along axes in this order."""
    steps, size = [max(1, size) for size in shape], prod(shape)
    for axis in order:
        if size <= most:
            break
        size //= shape[axis]
        steps[axis] = max(1, most // size)
    ranges = [range(0, size, step) for size, step in zip(shape, steps, strict=True)]
    for corner in product(*ranges):
        ends = zip(corner, steps, shape, strict=True)
        yield tuple(slice(start, min(start + step, end)) for start, step, end in ends)


def _sums(words: Array, own: Integers) -> Integers:
    """The sums of a box of words by their factors, one for each channel."""
    # It takes buffers of some thousand words, and multiplies what is converted there.
    options: Any = {"dtype": np.int64, "casting": "unsafe"}
    sums: Integers = np.einsum("cp,p->c", words.reshape(-1, own.size), own, **options)
    return sums


class _Layout(NamedTuple):
    """Words as `core.fingerprint_kernel` takes them: steps are in words of one row of memory."""

    memory: Array
    start: int
    shape: tuple[int, ...]  # of channels and of positions, each filled up to `_AXES`
    steps: tuple[int, ...]
    across: bool  # channels are closer to each other than their words


def _layout_of(words: Array, axes: int) -> _Layout | None:
    """None without words, or if their memory is in an order that the kernel doesn't take."""
    groups = slice(axes), slice(axes, None)
    joined = [_joined(words.shape[own], words.strides[own]) for own in groups]
    fits = all(len(own) <= most for own, most in zip(joined, _AXES, strict=True))
    if not (words.size and fits and all(step % words.itemsize == 0 for step in words.strides)):
        return None
    both = [
        axis
        for own, most in zip(joined, _AXES, strict=True)
        for axis in [(1, 0)] * (most - len(own)) + own
    ]
    shape, strides = zip(*both, strict=True)
    steps = tuple(stride // words.itemsize for stride in strides)
    ends = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    lowest = words[tuple(slice(-1, None) if step < 0 else slice(1) for step in words.strides)]
    start, length = -sum(end for end in ends if end < 0), 1 + sum(map(abs, ends))
    memory = as_strided(lowest.reshape(-1), (length,), (words.itemsize,), writeable=False)
    across = 0 < abs(steps[1]) < max(map(abs, steps[_AXES[0] :]))
    return _Layout(memory, start, shape, steps, across)


def _joined(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Lengths and strides of axes, those joined that follow one another in memory."""
    joined: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = joined[-1][0] * size, stride
        else:
            joined.append((size, stride))
    return joined
