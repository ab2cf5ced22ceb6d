"""The recorded or masked variables of a graph, and their roles in layers.

Without layer objects, roles come from the ops that read a variable: a kernel goes into a MatMul or
a convolution, a bias into a BiasAdd. If nothing fits, a variable has no layer type: its channels
are along the last axis, marked unverified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # as in `graph_variables`

from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import reach
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import AxisOverrides, network_of
from tb_pastnet.record.weight import Network
from tb_pastnet.v1.graph.graph_variables import (
    MASK_VARIABLES,
    GraphVariable,
    graph_variable,
    graph_variables,
    one_graph,
)
from tb_pastnet.v1.graph.session import GraphSession

Chosen = str | Mapping[str, Any] | Iterable[Any] | None


def network_in(
    site: GraphSession,
    variables: Chosen = None,
    channel_axes: AxisOverrides | None = None,
    follows: Follows = None,
    *,
    writable: bool = False,
) -> Network[TFWeight]:
    """Lists variables of a graph, with their layers (their scopes) and channels, as they were made.

    `variables` are as for `v1.Recorder`. `writable` ones can be assigned arrays.
    """
    if isinstance(variables, Variable):
        variables = [variables]
    named = _named(site.graph, variables)
    if not isinstance(variables, Mapping):
        # Their order in collections differs from process to process.
        order = _order(site.graph)
        named = dict(sorted(named.items(), key=lambda entry: order[entry[1].holders[0]]))
    used = roles(list(named.values()))
    entries = [
        _entry(name, site.variable_of(variable, writable=writable), used[variable.name])
        for name, variable in named.items()
    ]
    listed = isinstance(variables, str | Mapping) or variables is None
    chosen = None if listed else _names(variables)
    return network_of(TFWeight, entries, "a graph", chosen, channel_axes, follows)


def _named(graph: tf.Graph, variables: Chosen) -> dict[str, GraphVariable]:
    if isinstance(variables, Mapping):
        named = {str(name): graph_variable(each) for name, each in variables.items()}
    elif isinstance(variables, str):
        named = {each.name: each for each in _networks(graph, variables)}
        if not named:
            raise InvalidArgument(
                f"Could not choose the variables of scope {variables!r}: expected at least one, "
                "got none. A scope matches exactly, by whole parts of the path."
            )
    elif variables is None:
        models = _listed(graph, tf.GraphKeys.MODEL_VARIABLES)
        every = _listed(graph, tf.GraphKeys.GLOBAL_VARIABLES)
        named = {each.name: each for each in graph_variables(graph) if _own(each, models, every)}
    elif not isinstance(variables, Iterable):
        raise InvalidArgument(
            f"Could not choose variables= {variables!r:.60}: expected the name of a scope, names, "
            f"tf.Variables or a mapping of these, got {type(variables).__name__}. Leave it out for "
            f"all that are trained."
        )
    else:
        named = {each.name: each for each in _networks(graph, "", _names(variables))}
    one_graph(named.values(), graph, "choose variables")
    return named


def _order(graph: tf.Graph) -> dict[str, int]:
    """The number of each operation, by name."""
    return {op.name: number for number, op in enumerate(graph.get_operations())}


def _networks(graph: tf.Graph, scope: str, wanted: Collection[str] = ()) -> list[GraphVariable]:
    """Those wanted by name, or that are neither slots, like "net/kernel/Adam", nor our masks."""
    every = graph_variables(graph, scope)
    names = {each.name for each in every}
    masks = _listed(graph, MASK_VARIABLES)
    return [
        each
        for each in every
        if each.name in wanted or not (names & {*_above(each.name)} or each.holders[0] in masks)
    ]


def _above(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _own(variable: GraphVariable, models: Collection[str], every: Collection[str]) -> bool:
    """Whether it belongs to the network, not to an optimizer or its past."""
    if variable.trainable:
        return True
    named = variable.name.rpartition("/")[2].startswith("moving_")
    return variable.holders[0] in models or (named and variable.holders[0] in every)


def _listed(graph: tf.Graph, key: str) -> set[str]:
    """The names of the elements of a collection."""
    return {each.op.name for each in graph.get_collection(key)}


def _names(variables: Any) -> list[str]:
    return [each if isinstance(each, str) else graph_variable(each).name for each in variables]


def _entry(name: str, face: Any, use: Role) -> Found:
    layer, _, own = name.strip("/").rpartition("/")
    return Found(
        layer=layer or own,
        name=own,
        variable=face,
        type=use.type or "Variable",
        types=() if use is UNKNOWN else (use.type,),
        statistic=not face.trainable,
        given=face,
        paths=tuple(part.name for part in face.variable.parts),
        rule=use.rule,
    )


class Role(NamedTuple):
    """The Keras layer that would have a variable ("": unknown), and its name there."""

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
"""The role of a variable whose axes were changed on the way."""

_PASSED_ON = (
    *("Identity", "ReadVariableOp", "Cast", "Enter", "Switch", "RefSwitch"),
    *("ConcatV2", "ExpandDims"),  # parts of a partitioned variable; a convolution of sequences
)
"""Ops that pass on a variable with its channels in place."""

_LINEAR = ("MatMul", "BatchMatMulV2", "BiasAdd", "Add", "AddV2")
_ADDED = ("BiasAdd", "Add", "AddV2")
_SPLIT = ("Split", "SplitV")
_TRANSPOSED = ("transpose_b", "adj_y")


def roles(variables: Sequence[GraphVariable]) -> dict[str, Role]:
    """The roles of variables of one graph, by name; `UNKNOWN` if no op shows it.

    The first op that reads a variable counts: gradients come later. Unused variables, such as
    moving averages in training, have the type of the variables next to them.
    """
    if not variables:
        return {}
    order = _order(variables[0].graph)
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
    for op, index in sorted(_ends(variable), key=lambda end: order[end[0].name]):
        role = _ROLES.get((op.type, index))
        if role is not None:
            widened = (op.inputs[index].shape.rank or 0) > rank
            role = _WIDENED.get(op.type, UNKNOWN) if widened else role
            return UNKNOWN if _moves_channels(op) else role
    return UNKNOWN


def _ends(variable: GraphVariable) -> Iterator[tuple[tf.Operation, int]]:
    """The ops that a variable ends in, each with the index of that input."""

    def passed_on(op: tf.Operation) -> list[tf.Operation]:
        return [consumer for consumer in _consumers(op) if consumer.type in _PASSED_ON]

    starts = [part.op for part in variable.parts]
    holders = reach(starts, passed_on, key=lambda op: op.name)
    for holder in holders.values():
        for consumer in _consumers(holder):
            if consumer.type not in _PASSED_ON:
                inputs = enumerate(consumer.inputs)
                yield from ((consumer, n) for n, tensor in inputs if tensor.op.name in holders)


def _consumers(op: tf.Operation) -> list[tf.Operation]:
    return [consumer for output in op.outputs for consumer in output.consumers()]


def _moves_channels(op: tf.Operation) -> bool:
    """Whether channels aren't on the op's usual axis: transposed, or gates of a recurrent cell."""
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
