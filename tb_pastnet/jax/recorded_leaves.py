"""The recorded leaves of a pytree: names, layers and channel axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.names import Called, Names
from tb_pastnet.jax.axes import axis_of, kind_of
from tb_pastnet.jax.tree import Leaf, Tree, leaves
from tb_pastnet.record.array_recorder import ArrayWeight
from tb_pastnet.record.weight import Network

AxisOverrides = Mapping[str, int | tuple[int, ...]]

_STATISTICS = ("BatchStat", "StateIndex")
"""The statistics of Flax's BatchNorm, and Equinox's initial values of state kept elsewhere."""


def network_of(
    params: Any,
    tree: Tree,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
    follows: Iterable[Any] = (),
) -> Network[ArrayWeight]:
    """Lists what is recorded of a pytree; raises InvalidArgument if that is nothing."""
    usable: dict[str, Leaf] = {}
    skipped = []
    for leaf in leaves(params):
        if not (hasattr(leaf.value, "dtype") and hasattr(leaf.value, "shape")):
            # A setting, a function, or a model of another framework.
            continue
        reason = "another leaf has its name" if leaf.name in usable else _unusable(leaf.value)
        if reason is None:
            usable[leaf.name] = leaf
        else:
            skipped.append((leaf.name, reason))
    named = Names({name: Called(tuple(leaf.value.shape)) for name, leaf in usable.items()})
    moved = {*named.all(follows)}
    axes = named.keyed(channel_axes, "channel_axis")
    weights = [
        _weight(leaf, partial(tree.read, leaf.number), axes.get(name), follows=name in moved)
        for name, leaf in usable.items()
    ]
    return Network.of(
        weights, variables, skipped=skipped, shown=f"a pytree ({type(params).__name__})"
    )


def _weight(
    leaf: Leaf, read: Any, override: int | tuple[int, ...] | None, *, follows: bool
) -> ArrayWeight:
    shape = tuple(leaf.value.shape)
    axis = axis_of(leaf) if override is None else explicit_axis(override, shape, leaf.name)
    return ArrayWeight(
        leaf.name,
        shape,
        leaf.value.dtype.name,
        axis,
        read,
        kind=kind_of(leaf),
        statistic=_is_statistic(leaf),
        follows=follows,
    )


def _is_statistic(leaf: Leaf) -> bool:
    kinds = {type(node).__name__ for node in (*leaf.nodes, leaf.box)}
    return not kinds.isdisjoint(_STATISTICS) or leaf.name.startswith("batch_stats/")


def _unusable(value: Any) -> str | None:
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return "it is a PRNG key"
    if not jax.dtypes.issubdtype(value.dtype, np.floating):
        return f"its dtype {value.dtype.name} isn't a floating one"
    if not value.size:
        return "it has no elements"
    # If all processes have all of it, each can read it.
    here = getattr(value, "is_fully_addressable", True) or value.is_fully_replicated
    if not here:
        return "parts of it are in other processes"
    return None
