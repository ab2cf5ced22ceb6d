"""Makes variables like those of a part of a graph, with the same or fresh initial values."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1.clones.graph_copy import Copied, Pair, copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart
from tb_pastnet.v1.graph.graph_variables import graph_variables, slice_in

_ASSIGNS = ("Assign", "AssignVariableOp")


def twin_variables(part: GraphPart, scope: str, *, fresh: bool) -> list[Pair]:
    """Makes a copy of each variable of a network, in the collections of its original.

    One that no collection has, as in a graph that was imported without its collections, is taken
    for a global variable, and for a trainable one if it is floating. `fresh` initial values are
    drawn by copies of the originals' initializers; else those of the originals are drawn for both.

    Returns:
        Pairs of the operation that holds an original and the tf.Variable that is its copy.
    """
    graph = part.graph
    originals = {
        each.op.name: each for variable in graph_variables(graph) for each in variable.parts
    }
    listed = _collections(graph)
    held = [each for each in graph.get_operations() if each.name in part.variables]
    values = {each.name: _initial_value(each, originals.get(each.name)) for each in held}
    draw = Draw(part, scope)
    for operation in held if fresh else ():
        draw.check(operation, values[operation.name])
    pairs: list[Pair] = []
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(None):
        for operation in held:
            original, value = originals.get(operation.name), values[operation.name]
            if fresh:
                value = draw(value, pairs)
            elif value is None:
                value = _read(operation)
            keys = listed[operation.name] if original is not None else _usual(operation)
            with tf.device(operation.device or None):
                pairs.append((operation, _twin(operation, original, value, keys, scope)))
    return pairs


def sync_twins(pairs: Sequence[Pair], graph: tf.Graph, scope: str) -> tf.Operation:
    """Builds the operation that gives twins the values of their originals."""
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(f"{scope}/sync/"):
        return tf.group(*(twin.assign(_read(held), read_value=False) for held, twin in pairs))


def initialize_twins(pairs: Sequence[Pair], graph: tf.Graph, scope: str) -> tf.Operation:
    """Builds the operation that gives twins their own initial values."""
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(f"{scope}/init/"):
        return tf.group(*(twin.initializer for _, twin in pairs))


def _read(operation: tf.Operation) -> tf.Tensor:
    """Builds a read of the variable that an operation holds."""
    held = operation.outputs[0]
    if held.dtype != tf.resource:
        return tf.identity(held)
    return tf.raw_ops.ReadVariableOp(resource=held, dtype=operation.get_attr("dtype"))


def _collections(graph: tf.Graph) -> dict[str, list[Any]]:
    """By the name of a variable's operation the keys of the collections that list it."""
    keys: dict[str, list[Any]] = defaultdict(list)
    for key in graph.collections:
        for each in graph.get_collection(key):
            if isinstance(each, Variable) and key not in keys[each.op.name]:
                keys[each.op.name].append(key)
    return keys


def _usual(operation: tf.Operation) -> list[Any]:
    trained = operation.get_attr("dtype").is_floating
    more = [tf.GraphKeys.TRAINABLE_VARIABLES] if trained else []
    return [tf.GraphKeys.GLOBAL_VARIABLES, *more]


def _initial_value(operation: tf.Operation, original: tf.Variable | None) -> Any:
    """The tensor that a variable is initialized with, or None."""
    initializer = getattr(original, "initializer", None)
    if initializer is None:  # TensorFlow's own name for it
        try:
            initializer = operation.graph.get_operation_by_name(f"{operation.name}/Assign")
        except KeyError:
            return None
    return initializer.inputs[1] if initializer.type in _ASSIGNS else None


def _twin(
    operation: tf.Operation,
    original: tf.Variable | None,
    value: tf.Tensor,
    keys: list[Any],
    scope: str,
) -> tf.Variable:
    shape = tf.TensorShape(operation.get_attr("shape"))
    twin = tf.Variable(
        value if value.shape.is_subtype_of(shape) else tf.ensure_shape(value, shape),
        trainable=tf.GraphKeys.TRAINABLE_VARIABLES in keys,
        collections=keys,
        validate_shape=shape.is_fully_defined(),
        name=f"{scope}/{operation.name}",
        use_resource=operation.type == "VarHandleOp",
        constraint=getattr(original, "constraint", None),
    )
    if original is not None:  # without it a Saver would take a part for a whole
        twin._set_save_slice_info(slice_in(scope, original))
    return twin


class Draw:
    """Copies initial values with other seeds. What several of them are made of is copied once."""

    def __init__(self, network: GraphPart, scope: str) -> None:
        self._network = network
        self._scope = scope
        self._copied: dict[str, tf.Operation] = {}

    def check(self, operation: tf.Operation, value: tf.Tensor | None) -> None:
        """Raises InvalidArgument for an initial value that can't be copied."""
        if value is None:
            raise InvalidArgument(
                f"Could not draw an initial value for the copy of {operation.name!r}: expected an "
                f"initializer in the graph, got none. Pass initial='copy'."
            )
        self._part(value).check(f"draw an initial value for the copy of {operation.name!r}")

    def __call__(self, value: tf.Tensor, pairs: Iterable[Pair]) -> tf.Tensor:
        """Copies an initial value, which may be made of the variables of earlier pairs."""
        part = self._part(value)
        part.check("draw an initial value")
        storages = {held.outputs[0].name: storage(twin) for held, twin in pairs}
        earlier = Copied(storages, self._copied)
        with tf.name_scope(self._scope + "/"):
            seeds = self._other_seeds(part)
        outside = [(tensor, earlier(tensor)) for tensor in part.outside()]
        replaced = [(tensor, copy) for tensor, copy in outside if copy is not tensor]
        copied = copy_part(part, [*replaced, *seeds], self._scope, self._reseed)
        self._copied |= copied.operations
        return earlier(copied(value))

    def _part(self, value: tf.Tensor) -> GraphPart:
        part = GraphPart(self._network.graph, self._network.starts | self._copied.keys())
        part.take([value])
        return part

    def _reseed(self, node: tf.NodeDef) -> None:
        """Gives a random operation that has a seed another one, the same in every process."""
        seeds = [node.attr[key] for key in ("seed", "seed2") if key in node.attr]
        if any(seed.i for seed in seeds):
            seeds[-1].i = (seeds[-1].i ^ self._number(node.name)) or 1

    def _other_seeds(self, part: GraphPart) -> list[Pair]:
        """The seeds of stateless random operations, which are tensors, each with another one."""
        seeds = {}
        for operation in part.operations.values():
            for argument, tensor in zip(operation.op_def.input_arg, operation.inputs, strict=False):
                if argument.type_attr == "Tseed":
                    seeds[tensor.name] = tensor
        return [
            (seed, tf.bitwise.bitwise_xor(seed, tf.constant(self._number(name), seed.dtype)))
            for name, seed in seeds.items()
        ]

    def _number(self, name: str) -> int:
        return zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
