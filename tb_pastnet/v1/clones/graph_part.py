"""The part of a graph between some tensors and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.control_flow import Context, contexts
from tb_pastnet.v1.clones.state import VARIABLES, can_be_copied, check_functions, refusal
from tb_pastnet.v1.graph.functions import called_functions


@dataclass
class Part:
    """A part of a graph, found backwards from where it ends.

    Attributes:
        graph: the tf.Graph.
        starts: names of the tensors and operations at which it starts: neither they nor what lies
            before them is part of it.
        operations: those of the part by name, without those that hold variables.
        variables: the operations that hold the variables that it uses, by name.
        reached: those of the starts that it needs.
        lacking: operations that it needs and that can't be copied, by name.
        functions: the definitions of functions that its operations call, by name.
        contexts: the branches and loops of the graph; None: as they are now.
    """

    graph: Any
    starts: frozenset[str]
    operations: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    lacking: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    contexts: tuple[Context, ...] | None = None

    def take(self, elements: Iterable[Any]) -> None:
        """Takes in what tensors and operations need to be computed.

        Of branches and loops that includes what their gradients need.
        """
        if self.contexts is None:
            self.contexts = contexts(self.graph)
        size = -1
        while size != len(self.operations):
            size = len(self.operations)
            self._walk(elements)
            elements = [
                self.graph.as_graph_element(name)
                for context in self.contexts
                if any(name in self.operations for name in context.inside)
                for name in context.anchors
            ]

    def beyond(self, elements: Iterable[Any]) -> Part:
        """The part from here to other tensors and operations."""
        more = Part(
            self.graph,
            self.starts | {*self.operations, *self.variables},
            contexts=self.contexts,
        )
        more.take(elements)
        return more

    def add(self, other: Part) -> None:
        """Takes in what lies beyond."""
        self.operations |= other.operations
        self.variables |= other.variables
        self.reached |= other.reached & self.starts

    def outside(self) -> list[Any]:
        """The tensors that its operations take from outside, or wait for."""
        return [
            tensor
            for operation in self.operations.values()
            for each in (operation.inputs, *(one.outputs for one in operation.control_inputs))
            for tensor in each
            if tensor.op.name not in self.operations or tensor.name in self.starts
        ]

    def check(self, doing: str) -> None:
        """Looks at all that is to be copied.

        Args:
            doing: what the copy is for, as in "clone a network".

        Raises:
            InvalidArgument: a placeholder is needed that isn't among the starts, state other than
                variables, or Python code.
        """
        for operation in self.lacking.values():
            raise refusal(operation.node_def, doing)
        self.functions = called_functions(self.graph, self.operations.values())
        check_functions(self.functions, doing)

    def _walk(self, elements: Iterable[Any]) -> None:
        pending = [one for one in elements if not self._starts_at(one)]
        while pending:
            one = pending.pop()
            operation = one if isinstance(one, tf.Operation) else one.op
            name = operation.name
            if name in self.operations or name in self.variables or name in self.lacking:
                continue
            if operation.type in VARIABLES:
                self.variables[name] = operation
            elif not can_be_copied(operation.node_def):
                self.lacking[name] = operation
            else:
                self.operations[name] = operation
                needed = (*operation.inputs, *operation.control_inputs)
                pending += [one for one in needed if not self._starts_at(one)]

    def _starts_at(self, element: Any) -> bool:
        # What waits for an operation can wait for any of its outputs.
        single = not isinstance(element, tf.Operation)
        tensors, operation = ([element], element.op) if single else (element.outputs, element)
        for name in (operation.name, *(tensor.name for tensor in tensors)):
            if name in self.starts:
                self.reached.add(name)
                return True
        return False
