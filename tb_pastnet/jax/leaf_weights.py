"""The recorded leaves of a pytree: names, layers, and how they split into channels.

The class of a layer is that of the module that holds a leaf; if only names are left, as in Linen
and Haiku, it is the name of an unnamed module. A table maps their weights to those of layers in
`core.axes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from tb_pastnet.core.axes import ChannelAxis, channel_axis, explicit_axis
from tb_pastnet.core.follow_pairs import Follows, follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.jax.tree import Leaf, Tree, leaves
from tb_pastnet.record.array_recorder import ArrayWeight
from tb_pastnet.record.weight import Network, Weight

AxisOverrides = Mapping[str, int | tuple[int, ...]]

_STATISTICS = ("BatchStat", "StateIndex", "RngKey", "RngCount")
"""The statistics of Flax's BatchNorm, Equinox's initial values of state kept elsewhere, and the
random state of Flax's layers."""

_Row = tuple[str, str]


def _rows(kinds: str, like: str, variables: str) -> dict[_Row, _Row]:
    """Rows of the table: "b=bias" means that variable `b` is like `bias` of the similar layer."""
    pairs = [pair.split("=") for pair in variables.split()]
    return {(kind, own): (like, other) for kind in kinds.split() for own, other in pairs}


_FLAX_ATTENTION = " ".join(
    f"{own}/{name}={other}/{name}"
    for own, other in (("query",) * 2, ("key",) * 2, ("value",) * 2, ("out", "attention_output"))
    for name in ("kernel", "bias")
)
_EQUINOX_CONV = " ".join(f"{kind}{n}d" for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3))
_HAIKU_CONV = "conv1_d conv2_d conv3_d"
_HAIKU_TRANSPOSE = "conv1_d_transpose conv2_d_transpose conv3_d_transpose"
_NORM = "scale=scale bias=beta mean=moving_mean var=moving_variance"
_GATE_NAMES = "ii if ig io hi hf hg ho ir iz in hr hz hn i h"
_OF_A_GATE = " ".join(
    f"{gate}/{name}={name}" for gate in _GATE_NAMES.split(" ") for name in ("kernel", "bias")
)
_GATES = "dense_i/kernel=kernel dense_h/kernel=recurrent_kernel dense_h/bias=bias dense_i/bias=bias"

_LIKE: Mapping[_Row, _Row] = {
    # Flax
    **_rows("Linear Dense Conv ConvLocal ConvTranspose", "Dense", "kernel=kernel bias=bias"),
    **_rows("Embed", "Embedding", "embedding=embeddings"),
    ("", "embedding"): ("Embedding", "embeddings"),  # no other library uses this name
    **_rows("BatchNorm GroupNorm InstanceNorm", "BatchNormalization", _NORM),
    **_rows("LayerNorm RMSNorm", "LayerNormalization", _NORM),
    **_rows(
        "MultiHeadAttention MultiHeadDotProductAttention SelfAttention",
        "MultiHeadAttention",
        _FLAX_ATTENTION,
    ),
    **_rows("LSTMCell OptimizedLSTMCell GRUCell SimpleCell", "Dense", _OF_A_GATE),
    **_rows("OptimizedLSTMCell", "LSTMCell", _GATES),
    **_rows("GRUCell", "GRUCell", _GATES),
    # Equinox
    **_rows(f"Linear {_EQUINOX_CONV}", "Linear", "weight=weight bias=bias"),
    **_rows("Embedding", "Embedding", "weight=weight"),
    **_rows("LayerNorm RMSNorm GroupNorm BatchNorm", "LayerNorm", "weight=weight bias=bias"),
    **_rows("LSTMCell", "LSTMCell", "weight_ih=weight_ih weight_hh=weight_hh bias=bias_ih"),
    **_rows("GRUCell", "GRUCell", "weight_ih=weight_ih weight_hh=weight_hh bias=bias_ih"),
    **_rows(
        "MultiheadAttention",
        "MultiheadAttention",
        "query_proj/weight=q_proj_weight key_proj/weight=k_proj_weight "
        "value_proj/weight=v_proj_weight output_proj/weight=out_proj/weight "
        "output_proj/bias=out_proj/bias",
    ),
    # Haiku
    **_rows(f"linear {_HAIKU_CONV}", "Dense", "w=kernel b=bias"),
    **_rows(_HAIKU_TRANSPOSE, "Conv2DTranspose", "w=kernel b=bias"),
    **_rows("embed", "Embedding", "embeddings=embeddings"),
    **_rows("layer_norm rms_norm", "LayerNormalization", "scale=scale offset=beta"),
    **_rows("batch_norm group_norm", "BatchNormalization", "scale=scale offset=beta"),
    **_rows("lstm", "LSTMCell", "linear/w=kernel linear/b=bias"),
    **_rows("gru", "GRUCell", "w_i=kernel w_h=recurrent_kernel b=bias"),
}
_KINDS = frozenset(kind for kind, _ in _LIKE)
_FRAMEWORKS = ("flax.", "equinox.", "haiku.")
_PARTS_OF_ATTENTION = frozenset(("query", "key", "value", "out"))


class LeafWeight(ArrayWeight):
    """A leaf of the pytree that a step passes; `number` is its place there."""

    def __init__(
        self, tree: Tree, leaf: Leaf, axis: int | tuple[int, ...] | None, *, follows: bool
    ) -> None:
        shape = tuple(leaf.value.shape)
        super().__init__(
            leaf.name,
            shape,
            leaf.value.dtype.name,
            axis_of(leaf) if axis is None else explicit_axis(axis, shape, leaf.name),
            partial(tree.read, leaf.number),
            kind=_kinds(leaf)[0].rpartition(".")[2],
            statistic=is_statistic(leaf),
            follows=follows,
        )
        self._tree, self.number = tree, leaf.number

    def fetch(self) -> None:
        """See `Weight`."""
        self._tree.fetch(self.number)

    def shares_memory(self, other: Weight) -> bool:
        """See `Weight`: an array doesn't change, so two leaves may be one for now."""
        return False


def network_of(
    params: Any,
    tree: Tree,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
    follows: Follows = None,
) -> Network[LeafWeight]:
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
    moved = follow_pairs(named, follows, named.all)
    axes = named.keyed(channel_axes, "channel_axis")
    weights = [
        LeafWeight(tree, leaf, axes.get(name), follows=name in moved)
        for name, leaf in usable.items()
    ]
    return Network.of(
        weights,
        variables,
        skipped=skipped,
        shown=f"a pytree ({type(params).__name__})",
        follows=moved,
    )


def is_statistic(leaf: Leaf) -> bool:
    """Whether a layer writes it, such as a mean, or draws random numbers from it."""
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
    return None if here else "parts of it are in other processes"


def axis_of(leaf: Leaf) -> ChannelAxis:
    """The channel axis of a leaf: verified if its layer's class is in the table."""
    shape = tuple(leaf.value.shape)
    kind, parent = _kinds(leaf)
    path = leaf.name.split("/")
    heads = getattr(leaf.nodes[-2], "num_heads", 1) if len(leaf.nodes) > 1 else 1
    for key in ((parent, "/".join(path[-2:])), (kind, path[-1])):
        if key in _LIKE:
            like, name = _LIKE[key]
            layer, _, own = name.rpartition("/")
            if layer:
                return channel_axis(
                    (), own, shape, parent_types=[like], layer_name=layer, parts=heads
                )
            return channel_axis([like], own, shape, parts=heads)
    return channel_axis((), path[-1], shape)


def _kinds(leaf: Leaf) -> tuple[str, str]:
    """The classes of the layer that holds a leaf, and of its parent layer."""
    path = ["", "", *leaf.name.split("/")]
    nodes = (None, None, *leaf.nodes)
    return _kind(nodes[-1], path[-2]), _kind(nodes[-2], path[-3])


def _kind(node: Any, name: str) -> str:
    if isinstance(node, Mapping):
        base = re.sub(r"_\d+$", "", name)
        if base in _KINDS and (base != name or base.islower()):
            return base
        return "MultiHeadAttention" if set(node) >= _PARTS_OF_ATTENTION else ""
    if node is None or isinstance(node, list | tuple):
        return ""
    cls = type(node)
    bare = cls.__module__.startswith(_FRAMEWORKS)
    return cls.__name__ if bare else f"{cls.__module__}.{cls.__name__}"
