"""The operations of a graph that write to variables, and how to make them wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import READS, Uses, called_functions, needed

if TYPE_CHECKING:
    from tensorflow.core.framework.function_pb2 import FunctionDef

_PASSES_ON = frozenset({"Enter", "Identity", "Merge", "Switch"})
"""Operations of control flow v1 that pass on a variable; for references they begin with Ref."""


def written(
    operation: tf.Operation, functions: Mapping[str, FunctionDef]
) -> dict[str, tf.Operation]:
    """The variables that an operation, or a function that it calls, writes to.

    For each variable, by its operation's name, the operation that uses it: this one, or where it
    enters the branches and loops around this one.
    """
    if operation.type.removeprefix("Ref") in {*_PASSES_ON, "IsVariableInitialized"}:
        return {}
    arguments = zip(operation.op_def.input_arg, operation.inputs, strict=False)
    references = [tensor for argument, tensor in arguments if argument.is_ref]
    handles = {each.op.name: each for each in operation.inputs if each.dtype == tf.resource}
    uses = Uses(functions).of([operation.node_def], handles) if handles else {}
    taken = [handles[name] for name, kinds in uses.items() if not kinds.keys() <= READS]
    return dict(_origin(tensor, operation) for tensor in (*references, *taken))


def let_wait(
    elements: Sequence[tf.Tensor | tf.Operation], variables: Set[str], operation: tf.Operation
) -> None:
    """Makes the writes to variables, among all that elements need, wait for an operation.

    Variables are named by the operations that hold them. Its own dependencies can't wait for it.
    """
    if not elements:
        return
    operations, earlier = needed(elements), needed([operation])
    functions = called_functions(operation.graph, operations.values())
    takers = {
        taker.name: taker
        for each in operations.values()
        for name, taker in written(each, functions).items()
        if name in variables
    }
    for name, taker in takers.items():
        if name not in earlier:
            # There is no public way to wait for operations built later.
            taker._add_control_inputs([operation])


def _origin(tensor: tf.Tensor, taker: tf.Operation) -> tuple[str, tf.Operation]:
    while tensor.op.type.removeprefix("Ref") in _PASSES_ON:
        taker, tensor = tensor.op, tensor.op.inputs[0]
    return str(tensor.op.name), taker
