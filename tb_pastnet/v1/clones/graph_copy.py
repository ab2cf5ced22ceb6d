"""Copies a part of a graph inside that graph, with its own functions and gradients.

In the functions of v2's loops and branches a gradient adds outputs, so two operations with the
same one can't both have gradients. Custom gradients close over tensors of the original.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf

# There is no public way to call the gradient of one operation for another.
from tensorflow.python.framework.ops import get_gradient_function, gradient_registry

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import called, first_argument
from tb_pastnet.v1.clones.control_flow import copy_contexts
from tb_pastnet.v1.clones.graph_part import GraphPart, Pair

if TYPE_CHECKING:
    from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Types of the operations that call a tf.function."""

_PASS_ON = ("Enter", "Identity", "Switch")

_TYPE = "_gradient_op_type"
_CUSTOM = "CustomGradient-"
_OURS = "PastNetCopy-"

_NUMBERS = itertools.count(1)
_COPIES = itertools.count(1)


@dataclass(frozen=True)
class Copied:
    """Replacements of tensors and operations, by name."""

    tensors: Mapping[str, tf.Tensor]
    operations: dict[str, tf.Operation]

    def __call__(self, element: tf.Tensor | tf.Operation) -> Any:
        """The copy of a tensor or operation; itself if the copy uses the same one."""
        if isinstance(element, tf.Operation):
            return self.operations.get(element.name, element)
        if element.name in self.tensors:
            return self.tensors[element.name]
        operation = self.operations.get(element.op.name)
        return element if operation is None else operation.outputs[element.value_index]


def storage(variable: tf.Variable) -> tf.Tensor:
    """The tensor that represents a tf.Variable of a graph: its reference, or its handle."""
    return variable.op.outputs[0]


def copy_part(
    part: GraphPart,
    replaced: Iterable[Pair],
    scope: str,
    change: Callable[[tf.NodeDef], None] | None = None,
) -> Copied:
    """Copies the operations of a checked part of a graph, with their gradients, into a scope.

    The copy has the same outside inputs, except for those `replaced` by a tensor of the same dtype:
    a variable's `storage` by that of one of the same kind. `change` may change the definition of
    each operation before it is made.
    """
    pairs = list(replaced)
    copied = Copied({old.name: new for old, new in pairs}, {})
    graph = part.graph
    definition = _definition(part, scope, copied)
    if change is not None:
        for node in definition.node:
            change(node)
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(scope + "/"):
        imported = tf.import_graph_def(
            definition,
            _from_outside(part, copied),
            return_elements=list(part.operations),
            name=scope + "/",
        )
        copied.operations.update(zip(part.operations, imported, strict=True))
        copy_contexts(graph, lambda name: _renamed(name, graph, copied), scope)
    if all(new.shape.is_subtype_of(old.shape) for old, new in pairs):
        _take_shapes(part, copied)
    return copied


def _take_shapes(part: GraphPart, copied: Copied) -> None:
    # An import infers shapes, but not those of `set_shape`.
    for operation in part.operations.values():
        for old, new in zip(operation.outputs, copied(operation).outputs, strict=True):
            if not new.shape.is_subtype_of(old.shape):
                new.set_shape(old.shape)


def _definition(part: GraphPart, scope: str, copied: Copied) -> tf.GraphDef:
    """The imported definition, without names that would tie it to the original."""
    nodes = [operation.node_def for operation in part.operations.values()]
    within_flow = {name for context in part.contexts for name in context.inside}
    for node, operation in zip(nodes, part.operations.values(), strict=True):
        _own_gradient(operation, node, part, copied, in_flow=node.name in within_flow)
        if "frame_name" in node.attr:  # of a loop of control flow v1
            node.attr["frame_name"].s = f"{scope}/{node.attr['frame_name'].s.decode()}".encode()
        if "_class" in node.attr:
            places = node.attr["_class"].list
            own = [
                place
                for place in places.s
                if place.decode().removeprefix("loc:@") in part.operations
            ]
            places.s[:] = own
            if not own:
                del node.attr["_class"]
    return tf.GraphDef(
        node=nodes,
        library=_own_functions(part.functions, part.operations.values(), nodes),
        versions=part.graph.graph_def_versions,
    )


def _from_outside(part: GraphPart, copied: Copied) -> dict[str, Any]:
    """Tensors for the names that an import doesn't find, or must not use."""
    tensors = {}
    for operation in part.operations.values():
        for tensor in operation.inputs:
            if tensor.name in copied.tensors or tensor.op.name not in part.operations:
                tensors[tensor.name] = copied(tensor)
        for control in operation.control_inputs:
            if control.name not in part.operations:
                tensors["^" + control.name] = _done(control, copied)
    return tensors


def _done(operation: tf.Operation, copied: Copied) -> tf.Tensor:
    """A tensor that exists when an operation is done."""
    if operation.outputs:
        return copied(operation.outputs[0])
    with tf.control_dependencies([operation]):
        return tf.constant(0, name="done")


def _renamed(name: str, graph: tf.Graph, copied: Copied) -> str | None:
    tensor = graph.as_graph_element(name)
    copy = copied(tensor)
    return None if copy is tensor and name not in copied.tensors else str(copy.name)


def _rewired(
    operation: tf.Operation,
    part: GraphPart,
    copied: Copied,
    results: Sequence[Any],
    upstream: Sequence[Any],
    *,
    in_flow: bool,
) -> Sequence[Any]:
    """The gradients of a copied operation, if its original's close over the original network."""
    leaves = tf.nest.flatten(results, expand_composites=True)
    originals = {*copied.operations, *copied.tensors}
    values = (*upstream, *copied.tensors.values())
    ends = (value.name for value in values if isinstance(value, tf.Tensor))
    copies = (copy.name for copy in copied.operations.values())
    starts = {*originals, *part.starts, *ends, *copies}
    tensors = (leaf for leaf in leaves if isinstance(leaf, tf.Tensor))
    gradient = GraphPart(part.graph, starts, tensors)
    foreign = gradient.variables.keys() - part.variables.keys()
    uses = gradient.reached & originals
    if not uses and not foreign:
        return results
    if in_flow:
        raise _closes_over(copied(operation).name)
    if foreign:
        raise InvalidArgument(
            f"Could not take a gradient through the copy of {operation.name!r}: expected a custom "
            f"gradient that uses variables of the network, got {', '.join(sorted(foreign))}, which "
            f"its outputs don't use. Use it in the function itself as well, or add it to share."
        )
    gradient.check(f"take a gradient through the copy of {operation.name!r}")
    own = copy_part(gradient, gradient.outside(copied), copied(operation).name + "_gradient")
    rewired = [own(leaf) if isinstance(leaf, tf.Tensor) else leaf for leaf in leaves]
    return tuple(tf.nest.pack_sequence_as(results, rewired, expand_composites=True))


def _own_functions(
    functions: Mapping[str, FunctionDef],
    operations: Iterable[tf.Operation],
    nodes: Iterable[tf.NodeDef],
) -> FunctionDefLibrary:
    """Copies the functions of copied operations; `nodes`, their definitions, are changed."""
    library = tf.GraphDef().library
    if not functions:
        return library
    number = next(_COPIES)
    copies = {name: library.function.add() for name in functions}
    for name, copy in copies.items():
        copy.CopyFrom(functions[name])
    for operation in operations:
        _mark_variables(operation.node_def, list(map(_variable, operation.inputs)), copies)
    names = {name: f"{name}_copy_{number}" for name in functions}
    for name, copy in copies.items():
        copy.signature.name = names[name]
        _rename(copy.node_def, names)
        for node in copy.node_def:
            _closed_gradient(node)
    _rename(nodes, names)
    return library


def _mark_variables(
    node: tf.NodeDef, inputs: Sequence[Any], functions: Mapping[str, FunctionDef]
) -> None:
    """Writes variables' shapes, which gradients need, into the definitions of called functions.

    `inputs` are like the results of `_variable`.
    """
    arguments = inputs[first_argument(node) :]
    for reference in called(node):
        function = functions.get(reference.name)
        if function is None or not any(arguments):
            continue
        variables = {}
        for argument, variable in zip(function.signature.input_arg, arguments, strict=False):
            if variable is not None:
                variables[argument.name] = variable
                del argument.handle_data[:]
                argument.handle_data.add(
                    dtype=variable["dtype"].type, shape=variable["shape"].shape
                )
        for inner in function.node_def:
            _mark_variables(inner, [variables.get(name) for name in inner.input], functions)


def _variable(tensor: tf.Tensor) -> Mapping[str, Any] | None:
    """The attributes of the node that holds the variable that a tensor passes on."""
    operation = tensor.op
    while operation.type in _PASS_ON:
        operation = operation.inputs[0].op
    return operation.node_def.attr if operation.type == "VarHandleOp" else None


def _rename(nodes: Iterable[tf.NodeDef], names: Mapping[str, str]) -> None:
    for node in nodes:
        # TensorFlow finds the gradient of a tf.function by its name.
        if node.op not in _CALLS:
            for reference in called(node):
                reference.name = names.get(reference.name, reference.name)


def _own_gradient(
    operation: tf.Operation, node: tf.NodeDef, part: GraphPart, copied: Copied, *, in_flow: bool
) -> None:
    """Sets the gradient in the definition of a copy: that of its original, with the copy's tensors.

    `in_flow`: it is in a branch or loop of control flow v1.
    """
    if not _custom(node) and operation.type not in _CALLS:
        return
    try:
        original = get_gradient_function(operation)
    except LookupError:  # the graph comes from a file
        return

    def gradient(copy: tf.Operation, *upstream: Any) -> Any:
        try:
            results = original(copy, *upstream)
        except ValueError as error:
            # A tensor of one loop can't be used in another.
            raise (_closes_over(copy.name) if in_flow else error) from error
        return _rewired(operation, part, copied, results, upstream, in_flow=in_flow)

    _register(node, gradient)


def _closed_gradient(node: tf.NodeDef) -> None:
    """Gives a node of a copied function its original's gradient, if that closes over nothing."""
    kind = _custom(node)
    if not kind:
        return
    try:
        original = gradient_registry.lookup(kind)
    except LookupError:
        return

    def gradient(copy: tf.Operation, *upstream: Any) -> Any:
        graph = tf.get_default_graph()
        captured = len(graph.external_captures)
        try:
            results = original(copy, *upstream)
        except ValueError as error:  # a tensor of the original function
            raise _closes_over(copy.name) from error
        if len(graph.external_captures) != captured:
            raise _closes_over(copy.name)
        return results

    _register(node, gradient)


def _closes_over(name: str) -> InvalidArgument:
    """The error for a gradient in a loop or branch that uses more than its arguments."""
    return InvalidArgument(
        f"Could not take a gradient through {name!r} of a copied network: expected a custom "
        f"gradient in a loop or branch to use only its incoming gradient, got one that "
        f"closes over tensors of the original. Move the tf.custom_gradient out of the loop or "
        f"branch, or stop the gradient before it."
    )


def _custom(node: tf.NodeDef) -> str:
    kind = node.attr[_TYPE].s.decode() if _TYPE in node.attr else ""
    return kind if kind.startswith((_CUSTOM, _OURS)) else ""


def _register(node: tf.NodeDef, gradient: Callable[..., Any]) -> None:
    name = f"{_OURS}{next(_NUMBERS)}"
    tf.RegisterGradient(name)(gradient)
    node.attr[_TYPE].s = name.encode()
