"""Shadow variables of a graph: the storage of past values."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.state import VARIABLES, can_be_copied
from tb_pastnet.v1.graph.graph_variables import GraphVariable
from tb_pastnet.v1.graph.keys import PAST_VARIABLES
from tb_pastnet.v1.graph.writes import needed

_FILES = frozenset({"ReadFile", "Restore", "RestoreSlice", "RestoreV2"})


def shadow(current: GraphVariable, scope: str) -> GraphVariable:
    """Makes the shadow variable of another one, kept in the same way and in the same parts.

    It isn't trainable and not in GLOBAL_VARIABLES, so that a Saver's checkpoints stay what they
    are. It is initialized with the current value, or where that is initialized in the same run with
    its initial value.

    Args:
        current: a variable of the default graph.
        scope: the full name scope of the shadow, whose name in it is that of the current one.
    """
    parts = tuple(_part(current, part, scope) for part in current.parts)
    return GraphVariable(f"{scope}/{current.name}", parts, False)


def _part(current: GraphVariable, part: Any, scope: str) -> Any:
    piece = part._get_save_slice_info()  # there is no public way to say that it is a part
    shape = current.shape if piece is None else piece.var_shape
    with tf.device(part.device), tf.name_scope(scope + "/"):
        made = tf.Variable(
            tf.zeros(shape, current.dtype),
            trainable=False,
            collections=[],
            name=part.op.name,
            use_resource=part.op.type == "VarHandleOp",
        )
        with tf.name_scope(made.op.name + "/"):
            initial = _initial(part)
            write = made.assign(initial, read_value=False)
    definition = made.to_proto()
    # tf.Variable changes an initial value that is read from a reference variable.
    definition.initial_value_name, definition.initializer_name = initial.name, write.name
    if piece is not None:
        whole = f"{scope}/{current.name}"
        own = type(piece)(whole, piece.full_shape, piece.var_offset, piece.var_shape)
        definition.save_slice_info_def.CopyFrom(own.to_proto())
    variable = type(made).from_proto(definition)
    tf.add_to_collections([PAST_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES], variable)
    return variable


def _initial(part: Any) -> Any:
    initial = part.initial_value
    if initial is None or not _always_there(initial):
        return part.read_value()
    # In one run with its source's own initializer there is nothing to read yet.
    return tf.cond(tf.is_variable_initialized(part), part.read_value, lambda: initial)


def _always_there(tensor: Any) -> bool:
    """Whether it can be computed in any run: without being fed, and without a file."""
    return all(
        one.type in VARIABLES or (one.type not in _FILES and can_be_copied(one.node_def))
        for one in needed([tensor]).values()
    )
