"""The functions that operations call, such as loops and branches of control flow v2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def called_functions(graph: Any, operations: Iterable[Any]) -> dict[str, Any]:
    """The definitions of all functions that operations call, by name, also from within others."""
    pending = [one.name for operation in operations for one in function_names(operation.node_def)]
    if not pending:
        return {}
    library = {one.signature.name: one for one in graph.as_graph_def().library.function}
    found: dict[str, Any] = {}
    while pending:
        name = pending.pop()
        if name in library and name not in found:
            found[name] = library[name]
            pending += [one.name for node in found[name].node_def for one in function_names(node)]
    return found


def function_names(node: Any) -> Iterator[Any]:
    """The places in a node where functions are named."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func
        yield from value.list.func
