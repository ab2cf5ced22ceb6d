"""Functions and gradients of their own for copied operations.

In the functions of v2's loops and branches a gradient adds outputs, so that two operations with the
same one can't both have gradients. Custom gradients close over tensors of the original.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf

# There is no public way to call the gradient of one operation for another.
from tensorflow.python.framework.ops import get_gradient_function, gradient_registry

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import called, first_argument

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

Rewire = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""From gradients, and what they were made of, to the same with tensors of a copy."""

Attributes = Mapping[str, Any]
"""Those of the node that holds a variable."""


def own_functions(
    functions: Mapping[str, FunctionDef],
    operations: Iterable[tf.Operation],
    nodes: Iterable[tf.NodeDef],
) -> FunctionDefLibrary:
    """Gives copied operations functions of their own; `nodes`, their definitions, are changed."""
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
    node: tf.NodeDef, inputs: Sequence[Attributes | None], functions: Mapping[str, FunctionDef]
) -> None:
    """Writes into the definitions of called functions which variables their arguments are.

    The gradient of a function that is made of a definition needs their shapes. `inputs` has the
    attributes of a variable, or None, for each input of the node.
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


def _variable(tensor: tf.Tensor) -> Attributes | None:
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


def own_gradient(operation: tf.Operation, node: tf.NodeDef, in_flow: bool, rewire: Rewire) -> None:
    """Lets the copy of an operation have the gradient of its original, with the copy's tensors.

    `node`, the definition of the copy, is changed; `in_flow` says that it is in a branch or loop of
    control flow v1; `rewire` replaces tensors of the original.
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
            raise (closes_over(copy.name) if in_flow else error) from error
        return rewire(results, upstream)

    _register(node, gradient)


def _closed_gradient(node: tf.NodeDef) -> None:
    """Lets a node of a copied function have its original's gradient, if that closes over none."""
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
            raise closes_over(copy.name) from error
        if len(graph.external_captures) != captured:
            raise closes_over(copy.name)
        return results

    _register(node, gradient)


def closes_over(name: str) -> InvalidArgument:
    """The error for a gradient in a loop or branch that uses more than what it is given."""
    return InvalidArgument(
        f"Could not take a gradient through {name!r} of a copied network: expected a custom "
        f"gradient in a loop or branch to use only the gradient that it is given, got one that "
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
