"""Shadow variables of a graph: the storage of past values."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import needed
from tb_pastnet.v1.clones.graph_part import VARIABLES, can_be_copied
from tb_pastnet.v1.graph.graph_variables import PAST_VARIABLES, GraphVariable, slice_in

_FILES = frozenset({"ReadFile", "Restore", "RestoreSlice", "RestoreV2"})


def graph_shadow(current: GraphVariable, scope: str) -> GraphVariable:
    """Makes the shadow variable of another one in a scope, of the same name, kind and parts.

    It isn't trainable and not in GLOBAL_VARIABLES, so that a Saver's checkpoints stay what they
    are. It is initialized with the current value, or where that is initialized in the same run with
    its initial value.
    """
    parts = tuple(_part(current, part, scope) for part in current.parts)
    return GraphVariable(f"{scope}/{current.name}", parts, False)


def _part(current: GraphVariable, part: tf.Variable, scope: str) -> tf.Variable:
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
    """Whether it can be computed in any run: without being fed, and without a file."""
    return all(
        each.type in VARIABLES or (each.type not in _FILES and can_be_copied(each.node_def))
        for each in needed([tensor]).values()
    )
