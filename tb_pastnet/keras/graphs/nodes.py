"""What a traced function does with the state that it captures, read from its graph.

Variables, lookup tables and iterators all come into a graph as resource handles. Only the
operations that take a handle tell what it is, and whether they write to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

READS = frozenset(
    {
        "DisableCopyOnRead",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarIsInitializedOp",
        "VariableShape",
    }
)
"""Operations that read a variable and leave it as it is."""

_PASSES_ON = frozenset({"Identity", "IdentityN"})

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
"""Their first input chooses the function, and isn't handed on."""


def uses(concrete: Any) -> list[dict[str, str]]:
    """The operations that take each captured tensor, also inside called functions.

    Args:
        concrete: a ConcreteFunction.

    Returns:
        One dict a capture, in the order of `concrete.captured_inputs`: the types of operations,
        each with the name of one of them. An operation that calls functions in a way that isn't
        known stands for itself.

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
    found = uses_of(graph.node, placeholders, functions)
    return [found[name] for name in placeholders[first:]]


def uses_of(
    nodes: Iterable[Any], names: Iterable[str], functions: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """The operations that take each of some tensors, also inside called functions.

    Args:
        nodes: NodeDefs of a graph.
        names: of the nodes that give the tensors.
        functions: FunctionDefs by name.

    Returns:
        By name dicts as those of `uses`.
    """
    return _Walk(functions).of(nodes, names)


class _Walk:
    """Follows tensors into the functions that they are handed to, each function once."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions
        self._known: dict[str, list[dict[str, str]]] = {}

    def of(self, nodes: Iterable[Any], names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The operations that take each of these tensors."""
        nodes = list(nodes)
        found: dict[str, dict[str, str]] = {name: {} for name in names}
        origins = _origins(nodes, found)
        for node in nodes:
            if node.op in _PASSES_ON:
                continue
            for at, name in enumerate(_inputs(node)):
                for origin in origins.get(name, ()):
                    found[origin] = {**self._taken(node, at), **found[origin]}
        return found

    def _taken(self, node: Any, at: int) -> dict[str, str]:
        called = [
            function.name
            for attribute in node.attr.values()
            for function in (attribute.func, *attribute.list.func)
            if function.name in self._functions
        ]
        if not called or node.op not in _CALLS | _BRANCHES:
            return {node.op: node.name}
        taken: dict[str, str] = {}
        for name in called:
            arguments = self._arguments(name)
            position = at - 1 if node.op in _BRANCHES else at
            if 0 <= position < len(arguments):
                taken |= arguments[position]
        return taken

    def _arguments(self, name: str) -> list[dict[str, str]]:
        if name not in self._known:
            function = self._functions[name]
            names = [argument.name for argument in function.signature.input_arg]
            # One that calls itself adds nothing.
            self._known[name] = [{} for _ in names]
            found = self.of(function.node_def, names)
            self._known[name] = [found[one] for one in names]
        return self._known[name]


def _inputs(node: Any) -> list[str]:
    """Names of the nodes that it takes tensors from; those that it only waits for come last."""
    return [text.partition(":")[0] for text in node.input if not text.startswith("^")]


def _origins(nodes: Iterable[Any], names: Iterable[str]) -> dict[str, set[str]]:
    """For each node that is one of these tensors, or passes some of them on, which."""
    origins = {name: {name} for name in names}
    passing = [node for node in nodes if node.op in _PASSES_ON]
    grows = True
    while grows:  # nodes stand in any order
        grows = False
        for node in passing:
            found = set().union(*(origins.get(name, set()) for name in _inputs(node)))
            if found - origins.get(node.name, set()):
                origins[node.name] = origins.get(node.name, set()) | found
                grows = True
    return origins
