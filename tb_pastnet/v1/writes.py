"""Which operations of a graph write to variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.train.graphs.uses import READS, uses_of

_PASSES_ON = frozenset({"Enter", "Identity", "Merge", "Switch"})
"""Operations of control flow v1 that hand on the handle of a resource variable."""


def writes(operation: Any, functions: Mapping[str, Any]) -> bool:
    """Whether an operation writes to a variable.

    Args:
        operation: a tf.Operation.
        functions: definitions of the functions that it may call, by name.
    """
    if any(argument.is_ref for argument in operation.op_def.input_arg):
        return operation.type != "IsVariableInitialized" and not operation.type.startswith("Ref")
    handles = [one.op.name for one in operation.inputs if _is_handle(one)]
    if not handles or operation.type in _PASSES_ON:
        return False
    taken = uses_of([operation.node_def], handles, functions)
    return any(kind not in READS for kinds in taken.values() for kind in kinds)


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


def _is_handle(tensor: Any) -> bool:
    while tensor.dtype == tf.resource:
        if tensor.op.type == "VarHandleOp":
            return True
        if tensor.op.type not in _PASSES_ON:
            return False
        tensor = tensor.op.inputs[0]
    return False
