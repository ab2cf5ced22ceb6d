"""Which weights a mask lets through: as given, by channel, by magnitude, in blocks.

A mask is a bool array of its variable's shape, True = through. Functions that prune take the kept
masks so far and return new ones: what was pruned stays pruned, whatever its value is by now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.checks import check_sparsity, is_number, is_whole
from tb_pastnet.core.ranking import Mask, magnitudes, norms, prune_smallest, rank, scores
from tb_pastnet.errors import InvalidArgument

SCOPES = ("global", "layer")


def as_mask(value: npt.ArrayLike, shape: Sequence[int], name: str, word: str) -> Mask:
    """Reads a mask that a user gives.

    Args:
        value: bool, int or float of exactly `shape`, each element 0 or 1; nothing is broadcast.
        shape: the variable's shape.
        name: the variable, for errors.
        word: the mask, "kept" or "trainable", for errors.

    Returns:
        bool array, a copy.

    Raises:
        InvalidArgument: the shape differs, or an element is neither 0 nor 1 (also NaN).

    Example:
        >>> as_mask([[1, 0.0]], (1, 2), "dense/kernel", "kept").tolist()
        [[True, False]]
    """
    failed = f"Could not take the {word} mask of {name!r}"
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
            f"{failed}: expected shape {size}, got {given.shape}. Give one 0 or 1 for each weight; "
            f"whole channels go by channels=."
        )
    others = (given != 0) & (given != 1)
    if others.any():
        first = np.unravel_index(int(others.argmax()), size)
        raise InvalidArgument(
            f"{failed}: expected only 0 and 1, got {np.count_nonzero(others)} other values, the "
            f"first {given[first]} at {[int(i) for i in first]}. Compare first, as in w > 0."
        )
    return np.asarray(given != 0)


def channel_mask(channels: npt.ArrayLike, axis: ChannelAxis, name: str) -> Mask:
    """The mask that holds whole channels.

    Args:
        channels: numbers of channels from 0 on, in any order; repeated ones count once.
        axis: how the variable splits into channels.
        name: the variable, for errors.

    Returns:
        bool array of the variable's shape, False in these channels. No channels: all True.

    Raises:
        InvalidArgument: they aren't whole numbers, or one is out of range; negative ones are too.

    Example:
        >>> from tb_pastnet.core.axes import explicit_axis
        >>> channel_mask([2], explicit_axis(-1, (1, 3), "w"), "w").tolist()
        [[True, True, False]]
    """
    failed = f"Could not take channels of {name!r}"
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
    return _spread(through, axis)


def above(values: npt.NDArray[Any], threshold: float, name: str) -> Mask:
    """The mask that lets large weights through, of either sign.

    Args:
        values: the weights, any shape.
        threshold: the least magnitude that goes through, rounded to the weights' dtype first, so
            that a float32 weight of 0.7 is not below 0.7.
        name: the variable, for errors.

    Returns:
        bool array: |w| >= threshold. NaN and infinity go through.

    Raises:
        InvalidArgument: the threshold isn't a finite number, or is negative.

    Example:
        >>> above(np.array([-3.0, 0.1, 0.5]), 0.5, "w").tolist()
        [True, False, True]
    """
    if not is_number(threshold) or not 0 <= threshold < math.inf:
        raise InvalidArgument(
            f"Could not prune {name!r} below a threshold: expected a magnitude from 0 on, got "
            f"{threshold!r:.60}. Weights of either sign stay where their magnitude reaches it."
        )
    sizes = magnitudes(values)
    with np.errstate(over="ignore"):  # above the largest float16, say: all finite weights go
        limit = sizes.dtype.type(threshold)
    if limit == 0 and threshold > 0:
        return np.asarray(sizes != 0)
    return np.asarray(~(sizes < limit))


def keep_largest(
    values: Sequence[npt.NDArray[Any]],
    kept: Sequence[Mask],
    sparsity: float,
    *,
    scope: str = "global",
    axes: Sequence[ChannelAxis] | None = None,
) -> list[Mask]:
    """Prunes the smallest weights, or channels, until a fraction of all is pruned.

    That are `round(sparsity * all)`, halves to even, those that are pruned already included. Of
    equal ones the first goes first. The largest one of each variable always stays, as pruning a
    whole layer would cut the network (Tanaka et al. 2020, arXiv:2006.05467, "layer collapse"), so
    that near 1 fewer may be pruned.

    Args:
        values: the weights of each variable; NaN and infinity count as largest.
        kept: their masks so far, of the same shapes.
        sparsity: the fraction of all that shall be pruned, from 0 up to below 1. Where more is
            pruned already, nothing changes.
        scope: "global", smallest of all variables together, or "layer", that of each alone.
        axes: None for single weights; for whole channels how each variable splits into them. These
            are ranked by their 2-norm over the root of their number of elements, so that layers
            compare; `sparsity` is then the fraction of channels.

    Returns:
        New kept masks.

    Raises:
        InvalidArgument: the sparsity isn't a number in range, or the scope is another word.

    Example:
        >>> w = np.array([0.1, -0.4, 0.3, 0.2])
        >>> keep_largest([w], [np.ones(4, bool)], 0.5)[0].tolist()
        [False, True, True, False]
    """
    share = check_sparsity(sparsity)
    if scope not in SCOPES:
        raise InvalidArgument(
            f"Could not prune the smallest weights: expected scope='global' or 'layer', got "
            f"{scope!r:.60}. Global ranks the weights of all variables together."
        )
    if axes is None:
        ranked = [rank(magnitudes(v), m) for v, m in zip(values, kept, strict=True)]
    else:
        ranked = [
            rank(norms(axis.split(v), axis.split(m)), np.any(axis.split(m), axis=1, keepdims=True))
            for v, m, axis in zip(values, kept, axes, strict=True)
        ]
    groups = [ranked] if ranked and scope == "global" else [[one] for one in ranked]
    through = [mask for group in groups for mask in prune_smallest(group, share)]
    if axes is None:
        return [t.reshape(m.shape) & m for t, m in zip(through, kept, strict=True)]
    wide = [_spread(t, axis) for t, axis in zip(through, axes, strict=True)]
    return [w & m for w, m in zip(wide, kept, strict=True)]


def keep_blocks(
    values: npt.NDArray[Any],
    kept: Mask,
    nonzeros_per_block: int,
    block_size: int,
    *,
    name: str,
    axes: Sequence[int] | None = None,
) -> Mask:
    """Prunes all but the N largest of every M weights in a row: N:M sparsity.

    After Zhou et al. 2021, arXiv:2102.04010, where 2:4 has two that are not zero; the pattern
    `sparsity_m_by_n` of tfmot counts the zeros instead.

    Args:
        values: the weights; NaN and infinity count as largest.
        kept: their mask so far. Blocks that are sparser already stay as they are.
        nonzeros_per_block: N, from 1 to M.
        block_size: M.
        name: the variable, for errors.
        axes: the axes that a block lies along, flattened in this order: those that an output sums
            over. None: all but the last, which fits Dense (in, out) and Conv (…, in, out).

    Returns:
        The new kept mask. Of equal weights the first of a block goes first.

    Raises:
        InvalidArgument: N or M is out of range, or M doesn't divide the size of these axes.

    Example:
        >>> w = np.array([[0.4], [-0.3], [0.1], [0.2]])
        >>> keep_blocks(w, np.ones((4, 1), bool), 2, 4, name="w")[:, 0].tolist()
        [True, True, False, False]
    """
    whole = is_whole(nonzeros_per_block) and is_whole(block_size)
    if not whole or not 1 <= nonzeros_per_block <= block_size:
        raise InvalidArgument(
            f"Could not prune {name!r} in blocks: expected 1 <= nonzeros_per_block <= block_size, "
            f"got {nonzeros_per_block!r:.60} of {block_size!r:.60}. 2:4 is nonzeros_per_block=2, "
            f"block_size=4."
        )
    inner = tuple(range(values.ndim - 1)) if axes is None else tuple(a % values.ndim for a in axes)
    order = (*(a for a in range(values.ndim) if a not in inner), *inner)
    length = math.prod(values.shape[a] for a in inner)
    if length % block_size:
        raise InvalidArgument(
            f"Could not prune {name!r} in blocks of {block_size}: expected as many inputs as "
            f"blocks hold, got {length} for shape {values.shape}. Choose a block size that divides "
            f"{length}, or leave this variable out."
        )
    sizes = np.where(kept, scores(magnitudes(values)), -1).transpose(order)
    blocks = sizes.reshape(-1, block_size)
    smallest = np.argsort(blocks, axis=1, kind="stable")[:, : block_size - nonzeros_per_block]
    through = np.ones(blocks.shape, bool)
    np.put_along_axis(through, smallest, False, axis=1)
    return through.reshape(sizes.shape).transpose(np.argsort(order)) & kept


def reduction_axes(axis: ChannelAxis) -> tuple[int, ...]:
    """The axes of a variable that don't number its channels, for `keep_blocks`.

    Example:
        >>> from tb_pastnet.core.axes import channel_axis
        >>> reduction_axes(channel_axis(["Conv2DTranspose"], "kernel", (3, 3, 8, 16)))
        (0, 1, 3)
    """
    if axis.blocks > 1:
        return tuple(range(len(axis.shape) - 1))
    return axis.order[len(axis.axes) :]


def sparsity(kept: Iterable[Mask]) -> float:
    """The share of pruned weights: 1 − mean over all masks together; 0.0 of none.

    Example:
        >>> sparsity([np.array([True, False]), np.array([True, True])])
        0.25
    """
    masks = list(kept)
    total = sum(mask.size for mask in masks)
    through = sum(int(np.count_nonzero(mask)) for mask in masks)
    return (total - through) / total if total else 0.0


def _spread(channels: Mask, axis: ChannelAxis) -> Mask:
    """Gives each weight what its channel has: (channels,) to the variable's shape."""
    rows = np.repeat(channels, axis.elements).reshape([axis.view[a] for a in axis.order])
    return rows.transpose(np.argsort(axis.order)).reshape(axis.shape)
