"""Functions of their own for copied operations, such as loops and branches of control flow v2."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.gradients import CALLS, closed_gradient
from tb_pastnet.v1.graph.functions import function_names

_COPIES = itertools.count(1)

_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
"""Their first input chooses the function, and isn't passed on."""

_PASS_ON = ("Enter", "Identity", "Switch")


def own_functions(functions: Mapping[str, Any], operations: Iterable[Any], nodes: Any) -> Any:
    """Gives copied operations functions of their own.

    A gradient adds outputs to the functions of the loops and branches that it goes through. Two
    operations with the same one can't both have gradients.

    Args:
        functions: as they are called by the originals, by name.
        operations: the originals.
        nodes: the definitions of their copies, which are changed.

    Returns:
        A library for their graph.
    """
    library = tf.GraphDef().library
    if not functions:
        return library
    number = next(_COPIES)
    copies = {name: library.function.add() for name in functions}
    for name, copy in copies.items():
        copy.CopyFrom(functions[name])
    for operation in operations:
        _tell_variables(operation.node_def, list(map(_variable, operation.inputs)), copies)
    names = {name: f"{name}_copy_{number}" for name in functions}
    for name, copy in copies.items():
        copy.signature.name = names[name]
        _rename(copy.node_def, names)
        for node in copy.node_def:
            closed_gradient(node)
    _rename(nodes, names)
    return library


def _tell_variables(node: Any, given: Sequence[Any], functions: Mapping[str, Any]) -> None:
    """Says of the arguments of functions which variables they are.

    A function that is made of a definition needs the shapes of variables for its gradient.

    Args:
        node: the definition of an operation that calls functions.
        given: for each of its inputs the attributes of a variable, or None.
        functions: the definitions that are changed, by name.
    """
    given = given[1:] if node.op in _BRANCHES else given
    for called in function_names(node):
        function = functions.get(called.name)
        if function is None or not any(given):
            continue
        known = {}
        for argument, variable in zip(function.signature.input_arg, given, strict=False):
            if variable is not None:
                known[argument.name] = variable
                del argument.handle_data[:]
                argument.handle_data.add(
                    dtype=variable["dtype"].type, shape=variable["shape"].shape
                )
        for inner in function.node_def:
            _tell_variables(inner, [known.get(name) for name in inner.input], functions)


def _variable(tensor: Any) -> Any:
    operation = tensor.op
    while operation.type in _PASS_ON:
        operation = operation.inputs[0].op
    return operation.node_def.attr if operation.type == "VarHandleOp" else None


def _rename(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    for node in nodes:
        # TensorFlow finds the gradient of a tf.function by its name.
        if node.op not in CALLS:
            for one in function_names(node):
                one.name = names.get(one.name, one.name)
