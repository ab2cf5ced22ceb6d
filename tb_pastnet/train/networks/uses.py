"""What a traced function does with the state that it captures, read from its graph.

Variables, lookup tables and iterators all come into a graph as resource handles. Only the
operations that take a handle tell what it is, and whether they write to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})
"""Operations that read a variable and leave it as it is."""

_PASSES_ON = frozenset({"Identity", "IdentityN"})


def uses(concrete: Any) -> list[frozenset[str]]:
    """The types of operations that take each captured tensor, also inside called functions.

    Args:
        concrete: a ConcreteFunction.

    Returns:
        One set a capture, in the order of `concrete.captured_inputs`.

    Example:
        >>> import tensorflow as tf
        >>> total = tf.Variable(0.0)
        >>> count = tf.function(lambda x: total.assign_add(x))
        >>> [sorted(found) for found in uses(count.get_concrete_function(tf.constant(1.0)))]
        [['AssignAddVariableOp', 'ReadVariableOp']]
    """
    graph = concrete.graph.as_graph_def()
    functions = {function.signature.name: function for function in graph.library.function}
    placeholders = [tensor.op.name for tensor in concrete.inputs]
    first = len(placeholders) - len(concrete.captured_inputs)
    found = _Walk(functions).of(graph.node, placeholders)
    return [found[name] for name in placeholders[first:]]


class _Walk:
    """Follows tensors into the functions that they are handed to, each function once."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions
        self._known: dict[str, list[frozenset[str]]] = {}

    def of(self, nodes: Iterable[Any], names: Iterable[str]) -> dict[str, frozenset[str]]:
        """The operations that take each of these tensors."""
        origin = {name: name for name in names}
        found: dict[str, set[str]] = {name: set() for name in origin}
        for node in nodes:
            for at, text in enumerate(node.input):
                name = origin.get(text.partition(":")[0])
                if name is None or text.startswith("^"):
                    continue
                if node.op in _PASSES_ON:
                    origin[node.name] = name
                else:
                    found[name] |= self._taken(node, at)
        return {name: frozenset(types) for name, types in found.items()}

    def _taken(self, node: Any, at: int) -> set[str]:
        called = [
            function.name
            for attribute in node.attr.values()
            for function in (attribute.func, *attribute.list.func)
            if function.name in self._functions
        ]
        if not called:
            return {node.op}
        # The first input of a branch chooses it, and isn't handed on.
        skipped = 1 if node.op in ("If", "StatelessIf", "Case", "StatelessCase") else 0
        taken: set[str] = set()
        for name in called:
            arguments = self._arguments(name)
            if at >= skipped and at - skipped < len(arguments):
                taken |= arguments[at - skipped]
        return taken

    def _arguments(self, name: str) -> list[frozenset[str]]:
        if name not in self._known:
            function = self._functions[name]
            names = [argument.name for argument in function.signature.input_arg]
            # One that calls itself adds nothing.
            self._known[name] = [frozenset()] * len(names)
            found = self.of(function.node_def, names)
            self._known[name] = [found[one] for one in names]
        return self._known[name]
