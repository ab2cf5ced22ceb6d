"""Which operations of a graph write to variables, and how they are made to wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import READS, uses_of
from tb_pastnet.v1.graph.functions import called_functions

_PASSES_ON = frozenset({"Enter", "Identity", "Merge", "Switch"})
"""Operations of control flow v1 that hand on a variable; for references they begin with Ref."""


def written(operation: Any, functions: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that an operation writes to.

    Args:
        operation: a tf.Operation.
        functions: definitions of the functions that it may call, by name.

    Returns:
        By the name of the operation that holds a variable the one that takes it from there: this
        one, or where the variable comes into the branches and loops around it.
    """
    if operation.type.removeprefix("Ref") in {*_PASSES_ON, "IsVariableInitialized"}:
        return {}
    arguments = zip(operation.op_def.input_arg, operation.inputs, strict=False)
    references = [tensor for argument, tensor in arguments if argument.is_ref]
    handles = {one.op.name: one for one in operation.inputs if one.dtype == tf.resource}
    uses = uses_of([operation.node_def], handles, functions) if handles else {}
    taken = [handles[name] for name, kinds in uses.items() if not kinds.keys() <= READS]
    return dict(_origin(tensor, operation) for tensor in (*references, *taken))


def needed(elements: Iterable[Any]) -> dict[str, Any]:
    """By name the operations that have to run for tensors and operations, these included."""
    found: dict[str, Any] = {}
    pending = list(elements)
    while pending:
        one = pending.pop()
        operation = one if isinstance(one, tf.Operation) else one.op
        if operation.name not in found:
            found[operation.name] = operation
            pending += [*operation.inputs, *operation.control_inputs]
    return found


def let_wait(elements: Sequence[Any], variables: Set[str], operation: Any) -> None:
    """Lets what writes to some variables wait for an operation.

    What the operation itself needs can't wait for it, and doesn't.

    Args:
        elements: tensors and operations; what they need is looked through.
        variables: the names of the operations that hold the variables.
        operation: a tf.Operation of the same graph.
    """
    if not elements:
        return
    operations, earlier = needed(elements), needed([operation])
    functions = called_functions(operation.graph, operations.values())
    takers = {
        taker.name: taker
        for one in operations.values()
        for name, taker in written(one, functions).items()
        if name in variables
    }
    for name, taker in takers.items():
        if name not in earlier:
            # Operations have no public way to wait for what is built later.
            taker._add_control_inputs([operation])


def _origin(tensor: Any, taker: Any) -> tuple[str, Any]:
    while tensor.op.type.removeprefix("Ref") in _PASSES_ON:
        taker, tensor = tensor.op, tensor.op.inputs[0]
    return str(tensor.op.name), taker
