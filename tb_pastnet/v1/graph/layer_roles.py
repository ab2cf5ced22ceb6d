"""What a graph's variables are to their layers, judged by the ops that read them.

Without layer objects this is all there is: a kernel goes into a MatMul or a convolution, a bias
into a BiasAdd. Where nothing here fits, a variable has no layer type, so that its channels are
taken along the last axis and marked unverified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import reach
from tb_pastnet.v1.graph.graph_variables import GraphVariable


class Role(NamedTuple):
    """The layer of Keras that would have a variable ("": not known), and its name there."""

    type: str = ""
    rule: str = ""


UNKNOWN = Role()

_BATCH_NORM = {
    index: Role("BatchNormalization", name)
    for index, name in enumerate(("gamma", "beta", "moving_mean", "moving_variance"), start=1)
}

_ROLES: Mapping[tuple[str, int], Role] = {
    ("MatMul", 1): Role("Dense", "kernel"),
    ("BatchMatMulV2", 1): Role("Dense", "kernel"),
    ("BiasAdd", 1): Role("Dense", "bias"),
    ("Conv2D", 1): Role("Conv2D", "kernel"),
    ("Conv3D", 1): Role("Conv3D", "kernel"),
    ("DepthwiseConv2dNative", 1): Role("DepthwiseConv2D", "depthwise_kernel"),
    ("Conv2DBackpropInput", 1): Role("Conv2DTranspose", "kernel"),
    ("Conv3DBackpropInputV2", 1): Role("Conv3DTranspose", "kernel"),
    ("Gather", 0): Role("Embedding", "embeddings"),
    ("GatherV2", 0): Role("Embedding", "embeddings"),
    ("ResourceGather", 0): Role("Embedding", "embeddings"),
    **{
        (f"FusedBatchNorm{version}", index): role
        for version in ("", "V2", "V3")
        for index, role in _BATCH_NORM.items()
    },
}

_WIDENED = {"Conv2D": Role("Conv1D", "kernel")}
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


def roles(variables: Sequence[GraphVariable]) -> dict[str, Role]:
    """What variables of one graph are, by name; `UNKNOWN` where no op shows it.

    Of several ops that read a variable the one that was made first counts: gradients come later.
    What has no use of its own in a layer, such as moving averages in training, has the type of the
    variables beside it.
    """
    if not variables:
        return {}
    order = {op.name: n for n, op in enumerate(variables[0].graph.get_operations())}
    by_name = {variable.name: _role(variable, order) for variable in variables}
    types: dict[str, str] = {}
    for name, role in by_name.items():
        types[_layer(name)] = types.get(_layer(name)) or role.type
    return {
        name: role if role.type else _role_beside(name, types[_layer(name)])
        for name, role in by_name.items()
    }


def _role(variable: GraphVariable, order: Mapping[str, int]) -> Role:
    rank = len(variable.shape)
    ends = {(op.name, n): (op, n) for part in variable.parts for op, n in _ends(part.op)}
    for op, index in sorted(ends.values(), key=lambda end: order[end[0].name]):
        role = _ROLES.get((op.type, index))
        if role is not None:
            widened = (op.inputs[index].shape.rank or 0) > rank
            role = _WIDENED.get(op.type, UNKNOWN) if widened else role
            return UNKNOWN if _moves_channels(op) else role
    return UNKNOWN


def _ends(op: tf.Operation) -> Iterator[tuple[tf.Operation, int]]:
    """The ops that a variable ends in, each with the index of that input."""

    def passed_on(op: tf.Operation) -> list[tf.Operation]:
        return [consumer for consumer in _consumers(op) if consumer.type in _PASSED_ON]

    for holder in reach([op], passed_on, key=lambda op: op.name).values():
        for output in holder.outputs:
            for consumer in output.consumers():
                if consumer.type not in _PASSED_ON:
                    inputs = enumerate(consumer.inputs)
                    yield from ((consumer, n) for n, tensor in inputs if tensor is output)


def _consumers(op: tf.Operation) -> list[tf.Operation]:
    return [consumer for output in op.outputs for consumer in output.consumers()]


def _moves_channels(op: tf.Operation) -> bool:
    """Whether channels aren't where the op alone says: transposed, or gates of a recurrent cell."""
    attributes = op.node_def.attr
    if any(name in attributes and op.get_attr(name) for name in _TRANSPOSED):
        return True
    return op.type in _LINEAR and any(
        reader.type in _SPLIT or (reader.type in _ADDED and _moves_channels(reader))
        for reader in _consumers(op)
    )


def _role_beside(name: str, kind: str) -> Role:
    own = name.rpartition("/")[2]
    normalizes = own in [role.rule for role in _BATCH_NORM.values()]
    return Role(kind, own) if normalizes and kind == "BatchNormalization" else UNKNOWN


def _layer(name: str) -> str:
    return name.rpartition("/")[0]
