"""Clones a network of a graph of which only tensors are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.v1.clones.clone_arguments import (
    DOING,
    flat,
    free_scope,
    graph_of,
    refuse_unneeded,
    replacements,
    shared_names,
)
from tb_pastnet.v1.clones.graph_copy import copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart, take_followers
from tb_pastnet.v1.clones.twins import initialize_twins, sync_twins, twin_variables


@dataclass(frozen=True, eq=False)
class ClonedGraph:
    """A network in the graph of its original, with variables of its own.

    Attributes:
        inputs: what it is computed from, in the structure of the original's.
        outputs: its tensors, in the structure of the original's.
        variables: its tf.Variables, in the order of their originals; of a partitioned one its
            parts.
        initializer: the operation that gives them their initial values: with initial="copy" those
            that the originals have at that time.
        sync_op: the operation that copies the values of the originals.
        mapping: by the names of the originals the names of the `variables`, in their order.
    """

    inputs: Nest
    outputs: Nest
    variables: Sequence[Any]
    initializer: Any
    sync_op: Any
    mapping: Mapping[str, str]


def clone_network(
    inputs: Nest,
    outputs: Nest,
    scope: str = "clone",
    new_inputs: Nest = None,
    share: Nest = (),
    initial: str = "copy",
    session: tf.Session | None = None,
) -> ClonedGraph:
    """Clones the part of a graph between some tensors and others, with variables of its own.

    The copy lies in the same graph. It computes the same, has gradients, and shares no state with
    its original. Its variables are in the same collections, so that
    `tf.global_variables_initializer`, a Saver and an optimizer find them. Updates of statistics
    (`UPDATE_OPS`) and losses (`REGULARIZATION_LOSSES`) are copied into the collections that list
    them, if they are made of the network alone.

    Whatever the outputs need and that doesn't lie before the inputs is copied, in branches and
    loops of control flow v1 and v2.

    Args:
        inputs: one tensor or a nest of them, often placeholders, also intermediate ones.
        outputs: likewise.
        scope: the full name scope of the copy: that of "net/w" is named "clone/net/w".
        new_inputs: what the copy is computed from, in the structure of `inputs`; None: the inputs.
        share: variables, tensors, operations and lookup tables that both use, or their names.
        initial: "copy": the initial values are those of the originals. Where all variables of the
            graph are initialized in one run, both get the same. "initializer": drawn afresh, with
            other seeds, the same in each process.
        session: a tf.Session in which the copy is initialized at once. None: that is left to you.

    Returns:
        Tensors, variables and operations of the copy.

    Raises:
        UnknownName: the graph has nothing of a name in `share`.
        InvalidArgument: an input that the outputs need is lacking, or isn't needed; there are no
            outputs; a tensor is of another graph, or of none; a new input is of another dtype or
            shape; the scope is taken; Python code or state other than variables is used and not
            shared; the graph is finalized, or the session is of another one.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None, 2], name="x")
        ...     weight = tf.get_variable("net/weight", initializer=[[1.0], [2.0]])
        ...     copy = clone_network(x, x @ weight)
        ...     session.run(tf.global_variables_initializer())
        ...     _ = session.run(weight.assign([[0.0], [0.0]]))
        ...     session.run(copy.outputs, {x: [[1.0, 1.0]]}).tolist()
        ...     copy.mapping
        [[3.0]]
        {'net/weight': 'clone/net/weight'}
    """
    graph = graph_of(inputs, outputs)
    scope = free_scope(scope, graph)
    _check(initial, session, graph)
    replaced = replacements(inputs, new_inputs, graph)
    shared = shared_names(share, graph, DOING)
    part = GraphPart(graph, frozenset({*(old.name for old, _ in replaced), *shared}))
    part.take(flat(outputs))
    refuse_unneeded([old.name for old, _ in replaced], part)
    followers = take_followers(part)
    part.check(DOING)

    twins = twin_variables(part, scope, fresh=initial == "initializer")
    storages = [(held.outputs[0], storage(twin)) for held, twin in twins]
    copied = copy_part(part, [*replaced, *storages], scope)
    for key, element in followers:
        graph.add_to_collection(key, copied(element))
    ends = [copied(tensor) for tensor in flat(outputs)]
    sync = sync_twins(twins, graph, scope)
    clone = ClonedGraph(
        inputs=inputs if new_inputs is None else new_inputs,
        outputs=tf.nest.pack_sequence_as(outputs, ends, expand_composites=True),
        variables=[twin for _, twin in twins],
        initializer=sync if initial == "copy" else initialize_twins(twins, graph, scope),
        sync_op=sync,
        mapping={held.name: twin.op.name for held, twin in twins},
    )
    if session is not None:
        _initialize(clone, session)
    return clone


def _check(initial: str, session: tf.Session | None, graph: tf.Graph) -> None:
    if initial not in ("copy", "initializer"):
        raise InvalidArgument(
            f"Could not {DOING}: expected initial 'copy' or 'initializer', got {initial!r}. Choose "
            f"one of them."
        )
    if session is not None and session.graph is not graph:
        raise InvalidArgument(
            f"Could not {DOING}: expected a session of its graph, got one of another graph. Make "
            f"it with tf.Session(graph=...)."
        )


def _initialize(clone: ClonedGraph, session: tf.Session) -> None:
    try:
        session.run(clone.initializer)
    except tf.errors.FailedPreconditionError as error:
        raise InvalidArgument(
            f"Could not {DOING}: expected its variables to have values in the session, got one "
            f"that isn't initialized. Initialize or restore the original first, or leave session "
            f"out."
        ) from error
