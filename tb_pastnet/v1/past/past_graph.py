"""The past of a network in a graph, from its tensors, and its shadow variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import Nest, needed
from tb_pastnet.keras.past.past_variables import difference
from tb_pastnet.v1.clones.clone_arguments import (
    flat,
    free_scope,
    graph_of,
    refuse_unneeded,
    shared_names,
)
from tb_pastnet.v1.clones.graph_copy import copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart, can_be_copied
from tb_pastnet.v1.graph.graph_variables import (
    PAST_VARIABLES,
    VARIABLES,
    GraphVariable,
    choose,
    graph_variables,
    innermost,
    open_graph,
    slice_in,
)
from tb_pastnet.v1.graph.writes import written
from tb_pastnet.v1.past.sync import Pair, build_sync

_DOING = "make a past network"
_FILES = frozenset({"ReadFile", "Restore", "RestoreSlice", "RestoreV2"})


class PastGraph:
    """A network of a graph as it was at the last sync, made by `past_network`.

    Attributes:
        outputs: the outputs of the network with its past values, in the structure of its own
            outputs. No gradient flows through them.
        variables: the shadow variables, tf.Variables. They aren't trainable, and in the collections
            `pastnet.v1.PAST_VARIABLES` and LOCAL_VARIABLES.
        mapping: the name of the past variable by that of the current one.
        initializer: the operation that initializes the shadow variables with the current values.
        sync_op: the operation that copies the current values. It doesn't wait for anything.

    Example:
        >>> from tb_pastnet import v1
        >>> with tf.Graph().as_default():
        ...     x = tf.placeholder(tf.float32, (None, 4))
        ...     past = v1.past_network(x, tf.matmul(x, tf.get_variable("w", (4, 2))))
        >>> past.mapping
        {'w': 'past/w'}
    """

    def __init__(self, outputs: Nest, pairs: Sequence[Pair], scope: str) -> None:
        self.outputs = outputs
        self.variables = [part for _, past in pairs for part in past.parts]
        self.mapping = {current.name: past.name for current, past in pairs}
        self._pairs, self._scope = tuple(pairs), scope
        with tf.name_scope(scope + "/"):
            begin = [variable.initializer for variable in self.variables]
            self.initializer = tf.group(*begin, name="init")
        self.sync_op = self.sync()

    def sync(
        self,
        tau: float | Any = 1.0,
        after: Nest = (),
        before: Nest = (),
        *,
        statistics: bool = False,
    ) -> Any:
        """Builds the operation that moves past values towards current ones, like `sync_op`."""
        graph = open_graph(innermost(self.graph), "sync a past network")
        with graph.as_default(), tf.name_scope(self._scope + "/"):
            return build_sync(
                self._pairs, tau, after, before, graph=graph, name="sync", statistics=statistics
            )

    @contextmanager
    def step(self, tau: float | Any = 1.0) -> Iterator[Any]:
        """A context for building an update: each run uses the past, then syncs it, then trains.

        In the run of the update the past's outputs are those from before the sync. The sync waits
        for them, and everything built in the block waits for the sync. So do existing operations of
        UPDATE_OPS that write to the same variables, such as moving statistics. Runs of the update
        have to feed the inputs of the past's outputs. It yields the operation of `sync(tau)`.

        Example:
            >>> with tf.Graph().as_default(), tf.Session() as session:
            ...     x = tf.placeholder(tf.float32, ())
            ...     weight = tf.get_variable("weight", initializer=1.0)
            ...     past = past_network(x, weight * x)
            ...     with past.step():
            ...         train = weight.assign_add(1.0)
            ...     session.run(tf.global_variables_initializer())
            ...     session.run(past.initializer)
            ...     [list(map(float, session.run([past.outputs, train], {x: 1.0}))) for _ in "abc"]
            [[1.0, 2.0], [1.0, 3.0], [2.0, 4.0]]
        """
        updates = self.graph.get_collection(tf.GraphKeys.UPDATE_OPS)
        sync = self.sync(tau, after=self.outputs, before=updates)
        with self.graph.control_dependencies([sync]):
            yield sync

    def delta(self) -> dict[str, Any]:
        """Builds current minus past, by the name of the current variable.

        For a bool variable it is True where the two differ.
        """
        graph = open_graph(innermost(self.graph), "build the delta of a past network")
        with graph.as_default(), tf.name_scope(self._scope + "/"), tf.name_scope("delta"):
            return {
                current.name: difference(current.tensor(), past.tensor(), current.name)
                for current, past in self._pairs
            }

    @property
    def graph(self) -> tf.Graph:
        """Its tf.Graph."""
        return self.variables[0].graph

    def __repr__(self) -> str:
        return f"<PastGraph {self._scope!r} of {len(self.mapping)} variables>"


@answered
def past_network(
    inputs: Nest,
    outputs: Nest,
    variables: str | Iterable[Any] | None = None,
    scope: str = "past",
    share: Nest = (),
) -> PastGraph:
    """Builds the past of a network: itself on the same input, with past values of its variables.

    The part from the inputs to the outputs is copied, with shadow variables instead of the
    network's. Everything before the inputs is shared, and so are all placeholders. Random
    operations, such as dropout, draw their own numbers, or with seeds the same ones.

    The shadow variables aren't in GLOBAL_VARIABLES, so earlier checkpoints still restore.
    `local_variables_initializer` and `PastGraph.initializer` initialize them with the current
    values, so run these after initializing or restoring: a MonitoredTrainingSession does so.

    Args:
        inputs: the input tensors of the network, one or a nest of them.
        outputs: its output tensors, one or a nest of them.
        variables: the variables whose past is kept, as a scope, names, patterns such as
            `"*/kernel"` or tf.Variables; for others, current values are used. None: all that the
            outputs need.
        scope: the full name scope of the past: the past of "net/w" is named "past/net/w".
        share: tensors, operations and lookup tables that both networks use, or their names.

    Raises:
        InvalidArgument: an input is unused, there are no outputs, or these need no variables, write
            one, or need one without a collection. Also if they need unshared Python code or other
            state, if the scope is taken, if a tensor isn't of this graph, or if the graph is
            finalized.
        UnknownName: a name fits no variable, or several; the graph has nothing of a name in
            `share`.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, ())
        ...     weight = tf.get_variable("weight", initializer=2.0)
        ...     past = past_network(x, weight * x)
        ...     session.run([tf.global_variables_initializer(), past.initializer])
        ...     _ = session.run(weight.assign(5.0))
        ...     before = session.run(past.outputs, {x: 10.0})
        ...     session.run(past.sync_op)
        ...     float(before), float(session.run(past.outputs, {x: 10.0}))
        [None, None]
        (20.0, 50.0)
    """
    graph = graph_of(inputs, outputs, _DOING)
    scope = free_scope(scope, graph, _DOING)
    part = _part(graph, inputs, outputs, shared_names(share, graph, _DOING))
    chosen = _chosen(part, variables)
    with graph.as_default(), graph.control_dependencies(None):
        pairs = [(current, graph_shadow(current, scope)) for current in chosen]
        replaced = [
            (storage(own), storage(shadow))
            for current, past in pairs
            for own, shadow in zip(current.parts, past.parts, strict=True)
        ]
        copied = copy_part(part, replaced, scope)
        with tf.name_scope(scope + "/"):
            stopped = [_stopped(copied(tensor), part) for tensor in flat(outputs)]
        packed = tf.nest.pack_sequence_as(outputs, stopped, expand_composites=True)
        return PastGraph(packed, pairs, scope)


def _stopped(output: tf.Tensor, part: GraphPart) -> tf.Tensor:
    # An output may be the storage of a reference variable, which a sync overwrites.
    if any(holder.type != "VarHandleOp" for holder in part.variables.values()):
        output = tf.raw_ops.DeepCopy(x=output)
    return tf.stop_gradient(output)


def _part(graph: tf.Graph, inputs: Nest, outputs: Nest, shared: Iterable[str]) -> GraphPart:
    """The part that leads to the outputs, checked."""
    starts, operations = [tensor.name for tensor in flat(inputs)], graph.get_operations()
    fed = [each.outputs[0].name for each in operations if each.type.startswith("Placeholder")]
    part = GraphPart(graph, {*starts, *fed, *shared}, flat(outputs))
    part.check(_DOING)
    refuse_unneeded(starts, part, _DOING)
    writers = [
        name
        for name, operation in part.operations.items()
        if written(operation, part.functions).keys() & part.variables.keys()
    ]
    if writers:
        raise InvalidArgument(
            f"Could not {_DOING}: expected outputs that write no variable, got {writers[0]!r}, "
            f"which they need. Use the tensors from before that control dependency."
        )
    return part


def _chosen(part: GraphPart, variables: Any) -> list[GraphVariable]:
    listed = graph_variables(part.graph)
    usable = [each for each in listed if not part.variables.keys().isdisjoint(each.holders)]
    chosen = usable if variables is None else choose(variables, usable)
    unlisted = part.variables.keys() - {name for each in listed for name in each.holders}
    if variables is None and unlisted:
        raise InvalidArgument(
            f"Could not {_DOING}: expected variables that the graph lists, got {min(unlisted)!r}, "
            f"which is in none of its collections. Choose others with variables=."
        )
    if not chosen:
        raise InvalidArgument(
            f"Could not {_DOING}: expected variables between its inputs and outputs, got none. "
            f"Pass inputs from before the first layer."
        )
    return chosen


def graph_shadow(current: GraphVariable, scope: str) -> GraphVariable:
    """Makes the shadow of a variable in a scope, of the same name, kind and parts.

    It isn't trainable and not in GLOBAL_VARIABLES, so checkpoints don't change.
    It begins with the current value, or with the same initial value in one run.
    """
    parts = tuple(_shadow_of(current, part, scope) for part in current.parts)
    return GraphVariable(f"{scope}/{current.name}", parts, False)


def _shadow_of(current: GraphVariable, part: tf.Variable, scope: str) -> tf.Variable:
    piece = slice_in(scope, part)
    shape = current.shape if piece is None else piece.var_shape
    with tf.device(part.device), tf.name_scope(scope + "/"):
        shadow = tf.Variable(
            tf.zeros(shape, current.dtype),
            trainable=False,
            collections=[],
            name=part.op.name,
            use_resource=part.op.type == "VarHandleOp",
        )
        with tf.name_scope(shadow.op.name + "/"):
            initial = _initial(part)
            write = shadow.assign(initial, read_value=False)
    definition = shadow.to_proto()
    # tf.Variable changes an initial value that is read from a reference variable.
    definition.initial_value_name, definition.initializer_name = initial.name, write.name
    if piece is not None:
        definition.save_slice_info_def.CopyFrom(piece.to_proto())
    variable = type(shadow).from_proto(definition)
    tf.add_to_collections([PAST_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES], variable)
    return variable


def _initial(part: tf.Variable) -> tf.Tensor:
    initial = part.initial_value
    if initial is None or not _always_there(initial):
        return part.read_value()
    # In one run with the initializer of its source there is nothing to read yet.
    return tf.cond(tf.is_variable_initialized(part), part.read_value, lambda: initial)


def _always_there(tensor: tf.Tensor) -> bool:
    """Whether it can be computed in any run: without feeds and files."""
    return all(
        each.type in VARIABLES or (each.type not in _FILES and can_be_copied(each.node_def))
        for each in needed([tensor]).values()
    )
