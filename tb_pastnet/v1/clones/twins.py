"""Makes variables like those of a part of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.v1.clones.draw import Draw
from tb_pastnet.v1.clones.graph_copy import Pair
from tb_pastnet.v1.clones.graph_part import Part
from tb_pastnet.v1.graph.graph_variables import graph_variables

_ASSIGNS = ("Assign", "AssignVariableOp")


def twin_variables(part: Part, scope: str, *, fresh: bool) -> list[Pair]:
    """Makes a copy of each variable of a network, in the collections of its original.

    One that no collection has, as in a graph that was imported without its collections, is taken
    for a global variable, and for a trainable one if it is floating.

    Args:
        part: the network.
        scope: the full name scope of the copies.
        fresh: whether copies of the originals' initializers draw their initial values; else those
            of the originals are drawn for both.

    Returns:
        Pairs of the operation that holds an original and the tf.Variable that is its copy, in the
        order of the graph.

    Raises:
        InvalidArgument: an initial value is to be drawn that can't be.
    """
    graph = part.graph
    known = {each.op.name: each for one in graph_variables(graph) for each in one.parts}
    listed = _collections(graph)
    held = [one for one in graph.get_operations() if one.name in part.variables]
    values = {one.name: _initial_value(one, known.get(one.name)) for one in held}
    draw = Draw(part, scope)
    for operation in held if fresh else ():
        draw.check(operation, values[operation.name])
    pairs: list[Pair] = []
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(None):
        for operation in held:
            original, start = known.get(operation.name), values[operation.name]
            if fresh:
                start = draw(start, pairs)
            elif start is None:
                start = read(operation)
            keys = listed[operation.name] if original is not None else _usual(operation)
            with tf.device(operation.device or None):
                pairs.append((operation, _twin(operation, original, start, keys, scope)))
    return pairs


def sync_twins(pairs: Sequence[Pair], graph: Any, scope: str) -> Any:
    """Builds the operation that gives copies the values of their originals.

    Args:
        pairs: of `twin_variables`.
        graph: that of them.
        scope: the full name scope of the copies.
    """
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(f"{scope}/sync/"):
        return tf.group(*(two.assign(read(one), read_value=False) for one, two in pairs))


def initialize_twins(pairs: Sequence[Pair], graph: Any, scope: str) -> Any:
    """Builds the operation that gives copies their own initial values.

    Args:
        pairs: of `twin_variables`.
        graph: that of them.
        scope: the full name scope of the copies.
    """
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(f"{scope}/init/"):
        return tf.group(*(twin.initializer for _, twin in pairs))


def read(operation: Any) -> Any:
    """Builds a read of the variable that an operation holds."""
    held = operation.outputs[0]
    if held.dtype != tf.resource:
        return tf.identity(held)
    return tf.raw_ops.ReadVariableOp(resource=held, dtype=operation.get_attr("dtype"))


def _collections(graph: Any) -> dict[str, list[Any]]:
    """By the name of a variable's operation the keys of the collections that list it."""
    found: dict[str, list[Any]] = defaultdict(list)
    for key in graph.collections:
        for one in graph.get_collection(key):
            if isinstance(one, Variable) and key not in found[one.op.name]:
                found[one.op.name].append(key)
    return found


def _usual(operation: Any) -> list[Any]:
    trained = operation.get_attr("dtype").is_floating
    more = [tf.GraphKeys.TRAINABLE_VARIABLES] if trained else []
    return [tf.GraphKeys.GLOBAL_VARIABLES, *more]


def _initial_value(operation: Any, original: Any) -> Any:
    """The tensor that a variable is initialized with, or None."""
    initializer = getattr(original, "initializer", None)
    if initializer is None:  # TensorFlow's own name for it
        try:
            initializer = operation.graph.get_operation_by_name(f"{operation.name}/Assign")
        except KeyError:
            return None
    return initializer.inputs[1] if initializer.type in _ASSIGNS else None


def _twin(operation: Any, original: Any, value: Any, keys: Iterable[Any], scope: str) -> Any:
    shape = tf.TensorShape(operation.get_attr("shape"))
    keys = list(keys)
    twin = tf.Variable(
        value if value.shape.is_subtype_of(shape) else tf.ensure_shape(value, shape),
        trainable=tf.GraphKeys.TRAINABLE_VARIABLES in keys,
        collections=keys,
        validate_shape=shape.is_fully_defined(),
        name=f"{scope}/{operation.name}",
        use_resource=operation.type == "VarHandleOp",
        constraint=getattr(original, "constraint", None),
    )
    whole = None if original is None else original._get_save_slice_info()
    if whole is not None:  # without it a Saver would take a part for a whole
        name = f"{scope}/{whole.full_name}"
        twin._set_save_slice_info(
            Variable.SaveSliceInfo(name, whole.full_shape, whole.var_offset, whole.var_shape)
        )
    return twin
