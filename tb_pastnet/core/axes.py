"""Which elements of a variable make a channel.

The rules are data: for each layer class of a framework, each of its variables and the axis, or
axes, that number its channels. The first of them may hold several gates side by side (`blocks`):
index i then belongs to channel i modulo the units. It may also hold, within each block, the layer's
heads or groups (`parted`): each of them is then a channel. The tests perturb every index of real
layers and check that just the channel named here changes.

Layers that are not in the table fall back to the last axis, in torch to the first one that has
several indices, and are marked unverified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.checks import is_whole
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument

Integers = npt.NDArray[np.intp]

MOST_DIMENSIONS = 32
"""Of arrays of more, NumPy can't choose some channels."""


class _Rule(NamedTuple):
    axes: tuple[int, ...]
    blocks: int = 1
    parted: bool = False


_LAST, _FIRST, _HEAD = _Rule((-1,)), _Rule((0,)), _Rule((-2,))
_CHANNEL_MULTIPLIER = _Rule((-2, -1))

_DENSE = {"kernel": _LAST, "bias": _LAST}
_TRANSPOSE = {"kernel": _HEAD, "bias": _LAST}
_DEPTHWISE = {"kernel": _CHANNEL_MULTIPLIER, "depthwise_kernel": _CHANNEL_MULTIPLIER}
_SEPARABLE = {"depthwise_kernel": _CHANNEL_MULTIPLIER, "pointwise_kernel": _LAST, "bias": _LAST}
_NORM = dict.fromkeys(("gamma", "beta", "moving_mean", "moving_variance", "scale"), _FIRST)
_ATTENTION = {
    **{f"{name}/kernel": _HEAD for name in ("query", "key", "value")},
    **{f"{name}/bias": _HEAD for name in ("query", "key", "value")},
    "attention_output/kernel": _FIRST,
    "attention_output/bias": _FIRST,
}


# Of torch: outputs come first; gates, heads and groups follow one another there.
# What the older `weight_norm` and `spectral_norm` keep instead of a weight is split like it.
_PARTS = ("weight_g", "weight_v", "weight_orig")
_OUT_FIRST = dict.fromkeys(("weight", "bias", *_PARTS), _FIRST)
_OUT_SECOND = {"weight": _Rule((0, 1), parted=True), "bias": _FIRST}
_STATISTICS = {**_OUT_FIRST, "running_mean": _FIRST, "running_var": _FIRST}
_STACKED_HEADS = {
    **dict.fromkeys(("in_proj_weight", "in_proj_bias"), _Rule((0,), 3, parted=True)),
    **{f"{name}_proj_weight": _Rule((0,), parted=True) for name in "qkv"},
    **dict.fromkeys(("bias_k", "bias_v"), _Rule((-1,), parted=True)),
    "out_proj/weight": _Rule((1,), parted=True),
    "out_proj/bias": _FIRST,
}


def _gates(blocks: int) -> dict[str, _Rule]:
    return dict.fromkeys(("kernel", "recurrent_kernel", "bias"), _Rule((-1,), blocks))


def _stacked_gates(blocks: int) -> dict[str, _Rule]:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return {**dict.fromkeys(names, _Rule((0,), blocks)), "weight_hr": _FIRST}


_RULES: Mapping[str, Mapping[str, _Rule]] = {
    "Dense": _DENSE,
    **{f"Conv{n}D": _DENSE for n in (1, 2, 3)},
    **{f"Conv{n}DTranspose": _TRANSPOSE for n in (1, 2, 3)},
    **{f"DepthwiseConv{n}D": {**_DEPTHWISE, "bias": _LAST} for n in (1, 2)},
    **{f"SeparableConv{n}D": _SEPARABLE for n in (1, 2)},
    "Embedding": {"embeddings": _FIRST, "weight": _FIRST},
    "ReversibleEmbedding": {"embeddings": _FIRST, "reverse_embeddings": _LAST},
    "MultiHeadAttention": _ATTENTION,
    "GroupedQueryAttention": _ATTENTION,
    "SimpleRNNCell": _gates(1),
    "LSTMCell": {**_gates(4), **_stacked_gates(4)},
    "GRUCell": {**_gates(3), **_stacked_gates(3)},
    "ConvLSTMCell": _gates(4),
    "BatchNormalization": _NORM,
    "LayerNormalization": _NORM,
    "RMSNormalization": _NORM,
    "GroupNormalization": _NORM,
    **dict.fromkeys(("Linear", "Bilinear", "EmbeddingBag", "PReLU"), _OUT_FIRST),
    **{f"Conv{n}d": _OUT_FIRST for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": _OUT_SECOND for n in (1, 2, 3)},
    "MultiheadAttention": _STACKED_HEADS,
    "RNN": _stacked_gates(1),
    "RNNCell": _stacked_gates(1),
    "LSTM": _stacked_gates(4),
    "GRU": _stacked_gates(3),
    **{f"{kind}Norm{n}d": _STATISTICS for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": _STATISTICS,
    **dict.fromkeys(("LayerNorm", "RMSNorm", "GroupNorm"), _OUT_FIRST),
    "transformers.pytorch_utils.Conv1D": {"weight": _LAST, "bias": _LAST},
}

_ONE_AXIS_ONLY = ("LayerNormalization", "RMSNormalization", "LayerNorm", "RMSNorm")
_BIASES = ("bias", "beta", "in_proj_bias")
_MAIN = (
    "lora_kernel",
    "lora_embeddings",
    "lora_weight",
    "kernel",
    "weight",
    "pointwise_kernel",
    "embeddings",
    "gamma",
    "scale",
)


@dataclass(frozen=True)
class ChannelAxis:
    """How a variable splits into channels."""

    # the shape to look at, with gates apart: (in, 4, units) for the kernel of an LSTM
    view: tuple[int, ...]
    # the axes of `view` that number the channels, flattened in this order; none for a scalar, which
    # is one channel
    axes: tuple[int, ...]
    text: str  # what the page shows, such as "-1", "(-2, -1)", "-1 mod 32" or "0 in 4 parts"
    verified: bool  # the rule is known to fit this layer, or comes from the user
    # first and last axis of the range of `view` that is one axis of the variable
    joined: tuple[int, int] = (0, 0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The variable's own shape."""
        if not self.view:
            return ()
        first, last = self.joined
        return (*self.view[:first], math.prod(self.view[first : last + 1]), *self.view[last + 1 :])

    @property
    def channels(self) -> int:
        """Number of channels; 1 for a scalar."""
        return math.prod(self.view[axis] for axis in self.axes)

    @property
    def elements(self) -> int:
        """Elements in each channel."""
        rest = (n for axis, n in enumerate(self.view) if axis not in self.axes)
        return math.prod(rest)

    @property
    def order(self) -> tuple[int, ...]:
        """The transposition of `view` that brings the channel axes to the front."""
        rest = tuple(axis for axis in range(len(self.view)) if axis not in self.axes)
        return self.axes + rest

    def own_axis(self, axis: int) -> int:
        """The axis of the variable itself that an axis of `view` is, or is a part of."""
        first, last = self.joined
        return axis if axis <= first else max(first, axis - (last - first))

    def split(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A variable's values as (channels, elements); InvalidArgument if their size differs."""
        if values.size != math.prod(self.view):
            raise InvalidArgument(
                f"Could not split values into channels: expected {math.prod(self.view)} elements "
                f"as in {self.view}, got shape {values.shape}. Pass a value of the same variable."
            )
        split = values.reshape(self.view).transpose(self.order)
        return split.reshape(self.channels, self.elements)

    def joined_up(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The reverse of `split`."""
        turned = rows.reshape([self.view[axis] for axis in self.order])
        return turned.transpose(np.argsort(self.order)).reshape(self.shape)

    def places(self, channels: Integers) -> tuple[Integers, ...]:
        """The indices of channels along each of `axes`; () of a scalar, which is one channel."""
        sizes = [self.view[axis] for axis in self.axes]
        return np.unravel_index(channels, sizes) if sizes else ()

    def positions(self, channels: Integers, elements: Integers) -> Integers:
        """Positions in the flattened variable, (channels, elements), of these only."""
        turned = [self.view[axis] for axis in self.order]
        flat = channels[:, None] * self.elements + elements
        own = np.unravel_index(flat, turned or [1])
        back = [own[self.order.index(axis)] for axis in range(len(self.view))]
        return np.ravel_multi_index(back, self.view) if back else np.zeros_like(flat)


def channel_axis(
    layer_types: Sequence[str],
    variable_name: str,
    shape: Sequence[int],
    *,
    parent_types: Sequence[str] = (),
    layer_name: str = "",
    equation: str | None = None,
    parts: int = 1,
    outputs_first: bool = False,
) -> ChannelAxis:
    """Looks up the channel axis of a layer's variable, known by its own name, such as "kernel".

    `layer_types` are names of the layer's class and its bases, most derived first. Only classes of
    Keras itself go by their bare name; others should carry their module's. `parent_types` are those
    of the layer that this one is a part of, `layer_name` its name there, such as "query": attention
    uses them. The equation is that of an EinsumDense; `parts` are heads or groups. With
    `outputs_first` an unknown layer numbers its outputs as torch's functions do.

    The axis is `verified` only if the class itself is in the table: a derived class may work
    differently.
    """
    size = tuple(int(n) for n in shape)
    if not size:
        return ChannelAxis((), (), "scalar", True)
    for kinds, name in (
        (parent_types, f"{layer_name}/{variable_name}"),
        (layer_types, variable_name),
    ):
        for kind in kinds:
            rule = _RULES.get(kind, {}).get(name)
            if rule is not None and _fits(rule, kind, size, parts):
                return _build(rule, size, parts, verified=kind == kinds[0])
    if equation is not None and layer_types and layer_types[0] == "EinsumDense":
        return _einsum(equation, variable_name, size)
    first = next((axis for axis, count in enumerate(size) if count > 1), 0)
    return _build(_Rule((first,)) if outputs_first else _LAST, size, verified=False)


def experts_axis(
    shape: Sequence[int], experts: int, *, transposed: bool, verified: bool
) -> ChannelAxis | None:
    """The channels of fused experts, each output of each expert; None if the shape isn't theirs.

    Weights are (experts, outputs, inputs), or `transposed` (experts, inputs, outputs), and biases
    (experts, outputs). `verified` is as for `channel_axis`.

    Example:
        >>> axis = experts_axis((8, 6, 4), 8, transposed=False, verified=True)
        >>> axis.channels, axis.elements, axis.text
        (48, 4, '(0, 1)')
    """
    size = tuple(int(n) for n in shape)
    if len(size) not in (2, 3) or size[0] != experts:
        return None
    output = 2 if transposed and len(size) == 3 else 1
    return ChannelAxis(size, (0, output), _text((0, output)), verified)


def experts_in(layer_type: str, variable: Any) -> int:
    """How many experts a variable's channels belong to, as many to each; 0 for none.

    A router has a channel for each. `variable` has the variable's `shape` and its `axis` in words.
    """
    if layer_type.endswith("Experts") and variable.axis in ("(0, 1)", "(0, 2)"):
        return int(variable.shape[0])
    routes = layer_type.endswith(("Router", "Gate")) and variable.axis == "0"
    return int(variable.shape[0]) if routes and len(variable.shape) == 2 else 0


def explicit_axis(axis: int | tuple[int, ...], shape: Sequence[int], name: str) -> ChannelAxis:
    """The axis, or axes, from the user, negative from the end; () takes all as one channel.

    Raises InvalidArgument if an axis is out of range, or given twice.

    Example:
        >>> explicit_axis((-2, -1), (3, 3, 8, 2), "w").channels
        16
    """
    size = tuple(int(n) for n in shape)
    axes: Any = (axis,) if is_whole(axis) else axis
    if not isinstance(axes, tuple | list) or not all(map(is_whole, axes)):
        raise InvalidArgument(
            f"Could not use axis {axis!r:.60} of {name!r} for its channels: expected a whole "
            f"number or several, got {type(axis).__name__}. Correct channel_axis=, as in -1."
        )
    if axes and not size:
        raise InvalidArgument(
            f"Could not use axis {axis} of {name!r} for its channels: expected () for a scalar, "
            f"got {axis}. Pass channel_axis=()."
        )
    inside = [a % len(size) for a in axes if -len(size) <= a < len(size)]
    if len(set(inside)) != len(axes):
        raise InvalidArgument(
            f"Could not use axis {axis} of {name!r} for its channels: expected different axes from "
            f"{-len(size)} to {len(size) - 1} for shape {size}, got {axis}. Correct channel_axis=."
        )
    return ChannelAxis(size, tuple(inside), _text(tuple(axes)), True)


def stacked(axis: ChannelAxis, members: int) -> ChannelAxis:
    """The channels of several arrays of one axis, one array after another, (members, *view)."""
    axes = (0, *(own + 1 for own in axis.axes))
    return ChannelAxis((members, *axis.view), axes, axis.text, axis.verified)


def main_variable(variables: Sequence[tuple[str, Sequence[int]]]) -> int:
    """The index of the variable that a layer is drawn by: its kernel, or else the largest."""
    names = [name.rpartition("/")[2] for name, _ in variables]
    for name in _MAIN:
        if name in names:
            return names.index(name)
    return max(range(len(variables)), key=lambda i: math.prod(variables[i][1]))


def variable_role(name: str, shape: Sequence[int], *, statistic: bool = False) -> str:
    """What a variable is to its layer: "kernel", "bias", "scale", "statistic" or "other".

    A statistic isn't trained by gradients, such as a BatchNorm's moving mean.
    """
    own = name.rpartition("/")[2]
    if statistic:
        return "statistic"
    if own.startswith("original") or any(part.startswith("lora_") for part in name.split("/")):
        return "other"
    if own in _BIASES or own.startswith("bias_"):
        return "bias"
    if own in ("gamma", "scale") or (own == "weight" and len(shape) == 1):
        return "scale"
    return "kernel" if own.endswith(("kernel", "embeddings")) or len(shape) > 1 else "other"


def _fits(rule: _Rule, kind: str, shape: tuple[int, ...], parts: int) -> bool:
    # Over several axes a normalisation doesn't have one channel for each element.
    if kind in _ONE_AXIS_ONLY and len(shape) > 1:
        return False
    if not all(-len(shape) <= axis < len(shape) for axis in rule.axes):
        return False
    return shape[rule.axes[0]] % (rule.blocks * (parts if rule.parted else 1)) == 0


def _build(rule: _Rule, shape: tuple[int, ...], parts: int = 1, *, verified: bool) -> ChannelAxis:
    if rule.parted and parts == 1 and len(rule.axes) > 1:
        rule = _Rule(rule.axes[1:])
    axes = [axis % len(shape) for axis in rule.axes]
    if rule.blocks == 1 and not rule.parted:
        return ChannelAxis(shape, tuple(axes), _text(rule.axes), verified)
    first, units = axes[0], shape[axes[0]] // rule.blocks
    sizes = (rule.blocks, *((parts, units // parts) if rule.parted else (units,)))
    sizes = sizes[1:] if rule.blocks == 1 else sizes
    last = first + len(sizes) - 1
    numbering = (first + (rule.blocks > 1), *(axis + last - first for axis in axes[1:]))
    how = f"in {counted(parts, 'part')}" if rule.parted else f"mod {units}"
    view = (*shape[:first], *sizes, *shape[first + 1 :])
    return ChannelAxis(view, numbering, f"{_text(rule.axes)} {how}", verified, (first, last))


def _einsum(equation: str, variable_name: str, shape: tuple[int, ...]) -> ChannelAxis:
    operands, _, output = equation.replace(" ", "").partition("->")
    labels = operands.partition(",")[2]
    if variable_name != "kernel" or len(labels) != len(shape):
        return _build(_LAST, shape, verified=len(shape) == 1)
    own = [i - len(labels) for i, label in enumerate(labels) if label in output]
    return _build(_Rule((own[-1] if own else -1,)), shape, verified=len(own) == 1)


def _text(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)
