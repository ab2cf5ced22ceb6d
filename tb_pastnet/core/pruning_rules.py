"""Rules that choose the weights to prune: a score and a choice.

A score gives each row of (rows, elements) a size; a row is a single weight or a channel. A choice
prunes by these sizes: what is below a threshold, the smallest share, all but the N largest of M. A
rule is a function of `Prunable` weights and its arguments that returns their new kept masks. It is
pure, and pruned weights stay pruned, whatever their current value. Each way of pruning takes any
rule: a new rule is one function. Random pruning, for example, is ::

    def random(weights, sparsity, *, seed=0, **how):
        rng = np.random.default_rng(seed)
        return smallest(weights, sparsity, score=lambda rows, kept: rng.random(len(rows)), **how)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.checks import check_sparsity, is_number, is_whole
from tb_pastnet.core.mask_input import Mask, reduction_axes, spread
from tb_pastnet.errors import InvalidArgument

SCOPES = ("global", "layer")

Values = npt.NDArray[Any]
Score = Callable[[Values, Mask], Values]
"""From values and kept mask, both (rows, elements), to one size per row; the larger ones stay."""


class Prunable(NamedTuple):
    """One variable's weights, as a rule gets them."""

    name: str  # of the variable, for errors
    values: Values  # the weights, of any shape
    kept: Mask  # their mask so far, of the same shape
    axis: ChannelAxis  # how the variable splits into channels


Rule = Callable[..., list[Mask]]
"""From a sequence of `Prunable` and the rule's arguments to a new kept mask for each."""


def magnitude(rows: Values, kept: Mask) -> Values:
    """The magnitude of a weight; the root mean square of a channel, with pruned weights as 0.

    Channels are thus ranked by their 2-norm over the root of their number of elements, which is
    comparable across layers.
    """
    if rows.shape[1] == 1:
        wide = rows.astype(np.float64) if rows.dtype.kind in "biu" else rows
        return np.asarray(np.abs(wide[:, 0]))
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.where(kept, np.square(rows.astype(np.float64)), 0)
        return np.asarray(np.sqrt(squares.sum(axis=1) / max(rows.shape[1], 1)))


def below(weights: Sequence[Prunable], threshold: float, *, score: Score = magnitude) -> list[Mask]:
    """Prunes weights, of either sign, whose size is below a threshold; NaN and infinity stay.

    The threshold is rounded to the weights' dtype first: a float32 weight of 0.7 is not below 0.7.

    Raises InvalidArgument if it isn't a finite number, or is negative.
    """
    return [weight.kept & _reaches(weight, threshold, score) for weight in weights]


def smallest(
    weights: Sequence[Prunable],
    sparsity: float,
    *,
    scope: str = "global",
    structured: bool = False,
    score: Score = magnitude,
) -> list[Mask]:
    """Prunes the smallest weights, or channels, until a fraction of them all is pruned.

    The number is `round(sparsity * all)`, halves to even, and includes those that are already
    pruned. Among equal ones the first is pruned first; NaN and infinity count as largest. The
    largest one of each variable always stays, because pruning a whole layer would cut the network
    (Tanaka et al. 2020, arXiv:2006.05467, "layer collapse"); near 1 fewer may thus be pruned.

    If more is already pruned, nothing changes. If `structured`, whole channels are pruned, and the
    sparsity is a fraction of channels. The scope is "global", the smallest of all variables
    together, or "layer", of each variable separately.

    Raises InvalidArgument if the sparsity isn't from 0 up to below 1, or the scope another word.
    """
    share = check_sparsity(sparsity)
    if scope not in SCOPES:
        raise InvalidArgument(
            f"Could not prune the smallest weights: expected scope='global' or 'layer', got "
            f"{scope!r:.60}. Global ranks the weights of all variables together."
        )
    ranked = [_ranked(weight, structured, score) for weight in weights]
    groups = [ranked] if ranked and scope == "global" else [[variable] for variable in ranked]
    stays = [mask for group in groups for mask in _without_smallest(group, share)]
    return [
        weight.kept & (spread(mask, weight.axis) if structured else mask.reshape(weight.kept.shape))
        for weight, mask in zip(weights, stays, strict=True)
    ]


def blocks(
    weights: Sequence[Prunable],
    nonzeros_per_block: int = 2,
    block_size: int = 4,
    *,
    score: Score = magnitude,
) -> list[Mask]:
    """Prunes all but the N largest of every M weights in a row: N:M sparsity.

    After Zhou et al. 2021, arXiv:2102.04010, where 2:4 has two non-zeros; the pattern
    `sparsity_m_by_n` of tfmot counts the zeros instead. Blocks run along the inputs that an output
    sums over, see `mask_input.reduction_axes`; those that are already sparser stay as they are.
    Among equal weights the first of a block is pruned first; NaN and infinity count as largest.

    Raises InvalidArgument if N isn't from 1 to M, or M doesn't divide the number of inputs.
    """
    return [_in_blocks(weight, nonzeros_per_block, block_size, score) for weight in weights]


def _sizes(weight: Prunable, score: Score) -> Values:
    """The size of each single weight, in the variable's shape."""
    sizes = score(weight.values.reshape(-1, 1), weight.kept.reshape(-1, 1))
    return sizes.reshape(weight.kept.shape)


def _reaches(weight: Prunable, threshold: float, score: Score) -> Mask:
    if not is_number(threshold) or not 0 <= threshold < math.inf:
        raise InvalidArgument(
            f"Could not prune {weight.name!r} below a threshold: expected a magnitude from 0 on, "
            f"got {threshold!r:.60}. Weights of either sign stay if their magnitude reaches it."
        )
    sizes = _sizes(weight, score)
    with np.errstate(over="ignore"):  # e.g. above the largest float16: all finite ones go
        limit = sizes.dtype.type(threshold)
    if limit == 0 and threshold > 0:
        return np.asarray(sizes != 0)
    return np.asarray(~(sizes < limit))


def _in_blocks(weight: Prunable, nonzeros: int, block_size: int, score: Score) -> Mask:
    numbers = is_whole(nonzeros) and is_whole(block_size)
    if not numbers or not 1 <= nonzeros <= block_size:
        raise InvalidArgument(
            f"Could not prune {weight.name!r} in blocks: expected 1 <= nonzeros_per_block <= "
            f"block_size, got {nonzeros!r:.60} of {block_size!r:.60}. 2:4 is nonzeros_per_block=2, "
            f"block_size=4."
        )
    shape = weight.values.shape
    inner = reduction_axes(weight.axis)
    order = (*(axis for axis in range(len(shape)) if axis not in inner), *inner)
    length = math.prod(shape[axis] for axis in inner)
    if length % block_size:
        raise InvalidArgument(
            f"Could not prune {weight.name!r} in blocks of {block_size}: expected a number of "
            f"inputs that blocks fill, got {length} for shape {shape}. Choose a block size that "
            f"divides {length}, or leave this variable out."
        )
    sizes = np.where(weight.kept, _finite(_sizes(weight, score)), -1).transpose(order)
    rows = sizes.reshape(-1, block_size)
    goes = np.argsort(rows, axis=1, kind="stable")[:, : block_size - nonzeros]
    stays = np.ones(rows.shape, bool)
    np.put_along_axis(stays, goes, False, axis=1)
    return stays.reshape(sizes.shape).transpose(np.argsort(order)) & weight.kept


class _Ranked(NamedTuple):
    """The weights, or channels, of one variable that may be pruned."""

    candidates: Mask  # flat, True where not pruned yet
    sizes: Values  # float of shape (number of candidates,), never NaN


def _ranked(weight: Prunable, structured: bool, score: Score) -> _Ranked:
    if structured:
        rows, kept = weight.axis.split(weight.values), weight.axis.split(weight.kept)
        candidates = np.asarray(kept.any(axis=1))
    else:
        rows, kept = weight.values.reshape(-1, 1), weight.kept.reshape(-1, 1)
        candidates = kept[:, 0]
    return _Ranked(candidates, _finite(score(rows, kept)[candidates]))


def _finite(sizes: Values) -> Values:
    """Sizes as float32 or float64, a copy; what isn't finite as infinity."""
    wide = sizes.astype(np.float64 if sizes.dtype == np.float64 else np.float32)
    wide[~np.isfinite(wide)] = np.inf
    return wide


def _without_smallest(group: Sequence[_Ranked], share: float) -> list[Mask]:
    """What stays of each variable, flat, when a share of a group is pruned, including pruned ones.

    The largest of a variable always stays. Among equal ones the first is pruned first.
    """
    total = sum(variable.candidates.size for variable in group)
    live = sum(variable.sizes.size for variable in group)
    free = [_all_but_largest(variable.sizes) for variable in group]
    pool = np.concatenate([variable.sizes[f] for variable, f in zip(group, free, strict=True)])
    more = min(round(share * total) - (total - live), pool.size)
    if more <= 0:
        return [variable.candidates for variable in group]
    goes = np.split(_smallest(pool, more), np.cumsum([np.count_nonzero(f) for f in free])[:-1])
    return [_pruned(*parts) for parts in zip(group, free, goes, strict=True)]


def _all_but_largest(sizes: Values) -> Mask:
    """All but the largest; among equal ones the last stays, as it would be pruned last."""
    free = np.ones(sizes.size, bool)
    if sizes.size:
        free[sizes.size - 1 - int(sizes[::-1].argmax())] = False
    return free


def _smallest(sizes: Values, count: int) -> Mask:
    # As a stable sort would choose them, without sorting.
    limit = np.partition(sizes, count - 1)[count - 1]
    goes = np.asarray(sizes < limit)
    ties = np.flatnonzero(sizes == limit)
    goes[ties[: count - int(np.count_nonzero(goes))]] = True
    return goes


def _pruned(variable: _Ranked, free: Mask, goes: Mask) -> Mask:
    stays = np.ones(variable.sizes.size, bool)
    stays[free] = ~goes
    kept = variable.candidates.copy()
    kept[variable.candidates] = stays
    return kept
