"""What a graph's variables are to their layers, told by the ops that read them.

Without layer objects this is all there is: a kernel goes into a MatMul or a convolution, a bias
into a BiasAdd. Where nothing here fits, a variable has no layer type, so that its channels are
taken along the last axis and marked unverified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tb_pastnet.v1.graph.graph_variables import GraphVariable


class Use(NamedTuple):
    """What a variable is.

    Attributes:
        type: the layer of Keras that would have it, "" where that isn't known.
        rule: its name in there, as in the table of channel axes.
    """

    type: str = ""
    rule: str = ""


UNKNOWN = Use()

_BATCH_NORM = {
    index: Use("BatchNormalization", name)
    for index, name in enumerate(("gamma", "beta", "moving_mean", "moving_variance"), start=1)
}

_USES: Mapping[tuple[str, int], Use] = {
    ("MatMul", 1): Use("Dense", "kernel"),
    ("BatchMatMulV2", 1): Use("Dense", "kernel"),
    ("BiasAdd", 1): Use("Dense", "bias"),
    ("Conv2D", 1): Use("Conv2D", "kernel"),
    ("Conv3D", 1): Use("Conv3D", "kernel"),
    ("DepthwiseConv2dNative", 1): Use("DepthwiseConv2D", "depthwise_kernel"),
    ("Conv2DBackpropInput", 1): Use("Conv2DTranspose", "kernel"),
    ("Conv3DBackpropInputV2", 1): Use("Conv3DTranspose", "kernel"),
    ("Gather", 0): Use("Embedding", "embeddings"),
    ("GatherV2", 0): Use("Embedding", "embeddings"),
    ("ResourceGather", 0): Use("Embedding", "embeddings"),
    **{
        (f"FusedBatchNorm{version}", index): use
        for version in ("", "V2", "V3")
        for index, use in _BATCH_NORM.items()
    },
}

_WIDENED = {"Conv2D": Use("Conv1D", "kernel")}
"""What a variable is that got another axis on its way."""

_PASSED_ON = (
    *("Identity", "ReadVariableOp", "Cast", "Enter", "Switch", "RefSwitch"),
    *("ConcatV2", "ExpandDims"),  # parts of a partitioned variable; a convolution of sequences
)
"""Ops that hand on a variable with its channels where they were."""

_LINEAR = ("MatMul", "BatchMatMulV2", "BiasAdd", "Add", "AddV2")
_ADDED = ("BiasAdd", "Add", "AddV2")
_SPLIT = ("Split", "SplitV")
_TRANSPOSED = ("transpose_b", "adj_y")


def uses(variables: Sequence[GraphVariable]) -> dict[str, Use]:
    """Tells what variables of one graph are.

    Of several ops that read a variable the one that was made first counts: gradients come later.

    Args:
        variables: the same.

    Returns:
        By name; `UNKNOWN` where no op tells. What has no use of its own in a layer, such as moving
        averages in training, has the type of the variables beside it.

    Example:
        >>> import tensorflow.compat.v1 as tf
        >>> from tb_pastnet.v1.graph.graph_variables import graph_variables
        >>> with tf.Graph().as_default():
        ...     kernel = tf.get_variable("dense/w", (3, 2))
        ...     _ = tf.matmul(tf.ones((1, 3)), kernel)
        ...     uses(graph_variables())["dense/w"]
        Use(type='Dense', rule='kernel')
    """
    if not variables:
        return {}
    order = {op.name: at for at, op in enumerate(variables[0].graph.get_operations())}
    found = {one.name: _use(one, order) for one in variables}
    types: dict[str, str] = {}
    for name, use in found.items():
        types.setdefault(_layer(name), use.type)
        types[_layer(name)] = types[_layer(name)] or use.type
    return {
        name: use if use.type else _beside(name, types[_layer(name)]) for name, use in found.items()
    }


def _use(variable: GraphVariable, order: Mapping[str, int]) -> Use:
    rank = len(variable.shape)
    ends = {(op.name, at): (op, at) for part in variable.parts for op, at in _ends(part.op)}
    for op, at in sorted(ends.values(), key=lambda end: order[end[0].name]):
        use = _USES.get((op.type, at))
        if use is not None:
            use = _WIDENED.get(op.type, UNKNOWN) if (op.inputs[at].shape.rank or 0) > rank else use
            return UNKNOWN if _otherwise(op) else use
    return UNKNOWN


def _ends(op: Any) -> Iterator[tuple[Any, int]]:
    """The ops that a variable ends in, each with the index of that input."""
    waiting, seen = [op], {op.name}
    while waiting:
        for output in waiting.pop().outputs:
            for consumer in output.consumers():
                if consumer.type not in _PASSED_ON:
                    inputs = enumerate(consumer.inputs)
                    yield from ((consumer, at) for at, one in inputs if one is output)
                elif consumer.name not in seen:
                    seen.add(consumer.name)
                    waiting.append(consumer)


def _otherwise(op: Any) -> bool:
    """Whether channels aren't where the op alone says: transposed, or gates of a recurrent cell."""
    attributes = op.node_def.attr
    if any(name in attributes and op.get_attr(name) for name in _TRANSPOSED):
        return True
    readers = [one for output in op.outputs for one in output.consumers()]
    return any(
        one.type in _SPLIT or (one.type in _ADDED and _otherwise(one))
        for one in readers
        if op.type in _LINEAR
    )


def _beside(name: str, kind: str) -> Use:
    own = name.rpartition("/")[2]
    known = own in [use.rule for use in _BATCH_NORM.values()]
    return Use(kind, own) if known and kind == "BatchNormalization" else UNKNOWN


def _layer(name: str) -> str:
    return name.rpartition("/")[0]
