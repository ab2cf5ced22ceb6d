"""Masks as the user passes them: an array, or numbers of channels.

A mask is a bool array of its variable's shape, True = through. `pruning_rules` choose what to
prune.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import MOST_DIMENSIONS, ChannelAxis
from tb_pastnet.errors import InvalidArgument

_AT_ONCE = 1 << 20
"""Elements of a mask that are compared at once."""

Mask = npt.NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


def as_mask(
    value: npt.ArrayLike, shape: Sequence[int], name: str, word: str, otherwise: str = ""
) -> Mask:
    """Reads a user's mask: bool, int or float of exactly `shape`, each element 0 or 1.

    Nothing is broadcast; everything else, even NaN, raises InvalidArgument. `name` and `word` are
    for errors: the variable, "kept" or "trainable"; `otherwise` is what a caller can do, too.
    """
    failed = f"Could not use the {word} mask of {name!r}"
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):
        given = np.empty((), object)
    if given.dtype.kind in "OUSMmc":
        raise InvalidArgument(
            f"{failed}: expected an array of bool, int or float, got {type(value).__name__} of "
            f"{value!r:.60}. Give 1 for each weight that goes through and 0 for each that is held."
        )
    size = tuple(int(n) for n in shape)
    if given.shape != size:
        raise InvalidArgument(
            f"{failed}: expected shape {size}, got {given.shape}. Give one 0 or 1 for each "
            f"weight{otherwise}."
        )
    wrong = (given != 0) & (given != 1)
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), size)
        raise InvalidArgument(
            f"{failed}: expected only 0 and 1, got {np.count_nonzero(wrong)} other values, the "
            f"first {given[first]} at {[int(i) for i in first]}. Compare first, as in w > 0."
        )
    return np.asarray(given != 0)


def channel_mask(channels: npt.ArrayLike, axis: ChannelAxis, name: str) -> Mask:
    """The mask that holds whole channels, by their numbers, in any order; repeated ones count once.

    Raises InvalidArgument if one isn't a whole number or is out of range, as negative ones are.
    """
    failed = f"Could not choose channels of {name!r}"
    given = np.asarray(channels)
    if given.dtype == bool:
        raise InvalidArgument(
            f"{failed}: expected their numbers, got {given.size} of bool. Give "
            f"numpy.flatnonzero(...) of them."
        )
    if given.size and given.dtype.kind not in "iu":
        raise InvalidArgument(
            f"{failed}: expected whole numbers, got {channels!r:.60}. Give a list such as [3, 5]."
        )
    numbers = given.reshape(-1)
    wrong = numbers[(numbers < 0) | (numbers >= axis.channels)]
    if wrong.size:
        raise InvalidArgument(
            f"{failed}: expected numbers from 0 to {axis.channels - 1}, got {int(wrong[0])}. "
            f"Channels are counted from 0 along axis {axis.text}, never from the end."
        )
    through = np.ones(axis.channels, bool)
    through[numbers.astype(np.intp)] = False
    return spread(through, axis)


def reduction_axes(axis: ChannelAxis) -> tuple[int, ...]:
    """The axes of a variable that don't number its channels: those that an output sums over."""
    numbering = set(map(axis.own_axis, axis.axes))
    return tuple(a for a in range(len(axis.shape)) if a not in numbering)


def spread(channels: npt.NDArray[T], axis: ChannelAxis) -> npt.NDArray[T]:
    """Spreads a value per channel over its weights: (channels,) to the variable's shape."""
    return axis.joined_up(np.repeat(channels, axis.elements))


def by_channel(mask: Mask, axis: ChannelAxis) -> Mask | None:
    """A mask as one flag for each channel, (channels,); None if any channel is masked in part."""
    if len(axis.view) > MOST_DIMENSIONS:
        rows = axis.split(mask)
        flags: Mask = np.asarray(rows.all(axis=1))
        return flags if (flags == rows.any(axis=1)).all() else None
    turned, count = mask.reshape(axis.view).transpose(axis.order), len(axis.axes)
    first: Mask = turned[(slice(None),) * count + (0,) * (turned.ndim - count)].reshape(-1)
    most = max(1, _AT_ONCE // max(1, axis.elements))
    for start in range(0, len(first) if any(turned.strides[count:]) else 0, most):
        own = np.arange(start, min(start + most, len(first)))
        rows = turned[axis.places(own)].reshape(len(own), -1)
        if (rows != first[own, None]).any():
            return None
    return np.array(first)


def slim(mask: Mask, axis: ChannelAxis) -> Mask:
    """The same mask, in a byte for each channel if these are masked as a whole."""
    flags = by_channel(mask, axis) if mask.size and any(mask.strides) else None
    if flags is None or axis.view != mask.shape:
        return mask
    if flags.all() or not flags.any():
        return np.broadcast_to(flags[0], mask.shape)
    shape = [size if at in axis.axes else 1 for at, size in enumerate(axis.view)]
    own = flags.reshape([axis.view[at] for at in axis.axes]).transpose(np.argsort(axis.axes))
    return np.broadcast_to(own.reshape(shape), mask.shape)


def sparsity(kept: Iterable[Mask]) -> float:
    """The share of pruned weights: 1 − mean over all masks together; 0.0 for none."""
    masks = list(kept)
    total = sum(mask.size for mask in masks)
    through = sum(int(np.count_nonzero(mask)) for mask in masks)
    return (total - through) / total if total else 0.0
