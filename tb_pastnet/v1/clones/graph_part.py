"""The part of a graph between some tensors and others, and whether it can be copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import PYTHON, called_functions, operation_of, reach
from tb_pastnet.v1.clones.control_flow import Context, contexts_of
from tb_pastnet.v1.graph.graph_variables import VARIABLES

if TYPE_CHECKING:
    from tensorflow.core.framework.function_pb2 import FunctionDef

Pair = tuple[Any, Any]
"""A part of an original, and its counterpart in a copy."""

_FOLLOWERS = (tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES)
"""The collections of what belongs to a network next to its outputs."""

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})


class GraphPart:
    """A part of a graph, found backwards from its ends, by name.

    Attributes:
        starts: tensors and operations at its beginning, which aren't part of it.
        operations: those of the part, except those that hold variables.
        variables: the operations that hold its variables.
        reached: those of the starts that it needs.
        lacking: operations that it needs but that can't be copied.
        contexts: the branches and loops of the graph.
    """

    def __init__(
        self,
        graph: tf.Graph,
        starts: Iterable[str],
        ends: Iterable[tf.Tensor | tf.Operation],
        contexts: Sequence[Context] | None = None,
    ) -> None:
        self.graph = graph
        self.starts = frozenset(starts)
        self.operations: dict[str, tf.Operation] = {}
        self.variables: dict[str, tf.Operation] = {}
        self.reached: set[str] = set()
        self.lacking: dict[str, tf.Operation] = {}
        self.contexts = contexts_of(graph) if contexts is None else contexts
        self._take(ends)

    def _take(self, elements: Iterable[tf.Tensor | tf.Operation]) -> None:
        """Adds what elements, and gradients of branches and loops, depend on."""
        size = -1
        while size != len(self.operations):
            size = len(self.operations)
            reach(self._inside(elements), self._needs, key=lambda operation: operation.name)
            elements = [
                self.graph.as_graph_element(name)
                for context in self.contexts
                if not context.inside.isdisjoint(self.operations)
                for name in context.anchors
            ]

    def outside(self, copied: Callable[[tf.Tensor], tf.Tensor]) -> list[Pair]:
        """The outside tensors that its operations use or wait for and that have copies, with them.

        `copied` returns the copy of a tensor, or itself.
        """
        tensors = (
            tensor
            for operation in self.operations.values()
            for each in (operation.inputs, *(first.outputs for first in operation.control_inputs))
            for tensor in each
            if tensor.op.name not in self.operations or tensor.name in self.starts
        )
        pairs = ((tensor, copied(tensor)) for tensor in tensors)
        return [(tensor, copy) for tensor, copy in pairs if copy is not tensor]

    @cached_property
    def functions(self) -> dict[str, FunctionDef]:
        """The functions that its operations call, by name, once all are in it."""
        return called_functions(self.graph, self.operations.values())

    def check(self, doing: str) -> None:
        """Raises InvalidArgument if it can't be copied; `doing` is such as "clone a network"."""
        for operation in self.lacking.values():
            raise _refusal(operation.node_def, doing)
        for name, definition in self.functions.items():
            for node in definition.node_def:
                if node.op in PYTHON or _keeps_state(node):
                    raise InvalidArgument(
                        f"Could not {doing}: expected functions without Python code or internal "
                        f"state, got {node.name!r} ({node.op}) in function {name!r}. Build it "
                        "outside of the loop, branch or tf.function."
                    )

    def _needs(self, operation: tf.Operation) -> list[tf.Operation]:
        """Classifies an operation, and returns those that it needs, if it is in the part."""
        name = operation.name
        if name in self.operations or name in self.variables or name in self.lacking:
            return []
        if operation.type in VARIABLES:
            self.variables[name] = operation
        elif not can_be_copied(operation.node_def):
            self.lacking[name] = operation
        else:
            self.operations[name] = operation
            return self._inside((*operation.inputs, *operation.control_inputs))
        return []

    def _inside(self, elements: Iterable[tf.Tensor | tf.Operation]) -> list[tf.Operation]:
        return [operation_of(element) for element in elements if not self._starts_at(element)]

    def _starts_at(self, element: tf.Tensor | tf.Operation) -> bool:
        # A dependency on an operation can be one on any of its outputs.
        tensors = element.outputs if isinstance(element, tf.Operation) else [element]
        for name in (operation_of(element).name, *(tensor.name for tensor in tensors)):
            if name in self.starts:
                self.reached.add(name)
                return True
        return False


def take_followers(part: GraphPart) -> list[tuple[str, Any]]:
    """Adds the updates and losses of a part; returns keys of collections and their elements.

    An update may write variables that the outputs don't use, like that of a batch normalization in
    training. One with other inputs, or with outside weights, belongs to another network.
    """
    weights = {each.op.name for each in part.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
    followers = []
    for key in _FOLLOWERS:
        for listed in part.graph.get_collection(key):
            element = _element(listed, part.graph)
            inside = {*part.operations, *part.variables}
            more = GraphPart(part.graph, part.starts | inside, [element], part.contexts)
            outside = more.variables if key != tf.GraphKeys.UPDATE_OPS else weights
            foreign = more.variables.keys() & outside
            if _is_part_of(part, more.reached) and not more.lacking and not foreign:
                part.operations |= more.operations
                part.variables |= more.variables
                part.reached |= more.reached & part.starts
                followers.append((key, element))
    return followers


def can_be_copied(node: tf.NodeDef) -> bool:
    """Whether the copy of an operation does the same as its original, next to it."""
    return not (node.op in _PLACEHOLDERS or node.op in PYTHON or _keeps_state(node))


def _keeps_state(node: tf.NodeDef) -> bool:
    # State that outlives a run has a name for sharing, or is anonymous.
    return "shared_name" in node.attr or node.op.startswith("Anonymous")


def _refusal(node: tf.NodeDef, doing: str) -> InvalidArgument:
    if node.op in _PLACEHOLDERS:
        return InvalidArgument(
            f"Could not {doing}: expected inputs that its outputs can be computed from, got none "
            f"for placeholder {node.name!r}. Add it to inputs, or to share for one that feeds both."
        )
    if node.op in PYTHON:
        return InvalidArgument(
            f"Could not {doing}: expected TensorFlow operations, got Python code in {node.name!r} "
            f"({node.op}), whose use of state is unknown. Write it with TensorFlow operations, or "
            "add it to share for both to use its result."
        )
    return InvalidArgument(
        f"Could not {doing}: expected variables as its state, got {node.name!r} ({node.op}), which "
        f"can't be copied. Add it to share for both to use it."
    )


def _element(listed: object, graph: tf.Graph) -> Any:
    """The tensor or operation of an element of a collection."""
    if isinstance(listed, tf.Operation):
        return listed
    if isinstance(listed, Variable):  # the assignment of a resource variable has this type
        return listed.op
    with graph.as_default():
        return tf.convert_to_tensor(listed)


def _is_part_of(part: GraphPart, names: set[str]) -> bool:
    operations = (part.operations[name] for name in names if name in part.operations)
    return bool(names & part.variables.keys()) or any(_is_own(part, each) for each in operations)


def _is_own(part: GraphPart, operation: tf.Operation) -> bool:
    """Whether only this network has it, unlike a constant or the read of a shared variable."""
    for tensor in operation.inputs[:1] if operation.type == "Identity" else ():
        if tensor.op.type in VARIABLES:
            return tensor.op.name in part.variables
    return bool(operation.type != "Const")
