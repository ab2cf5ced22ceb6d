"""What a clone and its original both use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.v1.graph.graph_checks import one_graph
from tb_pastnet.v1.graph.graph_variables import GraphVariable, graph_variable

_HINT = (
    "Pass variables, tensors, operations, tables, or names of operations such as an error shows."
)


def shared_names(share: Any, graph: Any, doing: str) -> set[str]:
    """The names of the tensors and operations that stand for what is shared.

    Args:
        share: one or a nest of variables, also partitioned ones, tensors, operations, lookup tables
            and names of tensors and operations.
        graph: the tf.Graph that they are to be in.
        doing: for errors, as in "clone a network".

    Raises:
        UnknownName: the graph has nothing of that name.
        InvalidArgument: one is something else, or of another graph.
    """
    elements = [one for given in tf.nest.flatten(share) for one in _elements(given, graph, doing)]
    one_graph(elements, graph, doing)
    return {one.name for one in elements}


def _elements(given: Any, graph: Any, doing: str) -> Iterator[Any]:
    if isinstance(given, str):
        yield _named(given, graph, doing)
    elif isinstance(given, tf.Operation) or (isinstance(given, tf.Tensor) and _in_graph(given)):
        yield given
    elif _in_graph(getattr(given, "resource_handle", None)):  # of a table
        yield given.resource_handle
    elif isinstance(given, GraphVariable | Variable) or hasattr(given, "as_tensor"):
        yield from (part.op for part in graph_variable(given).parts)
    elif isinstance(given, tf.SparseTensor | tf.IndexedSlices):
        yield from tf.nest.flatten(given, expand_composites=True)
    else:
        raise InvalidArgument(
            f"Could not {doing}: expected something of the graph in share, got "
            f"{type(given).__name__}. {_HINT}"
        )


def _named(name: str, graph: Any, doing: str) -> Any:
    try:
        return graph.as_graph_element(name)
    except (KeyError, ValueError) as error:
        raise UnknownName(
            f"Could not {doing}: expected names of the graph's operations in share, got {name!r}. "
            f"{_HINT}"
        ) from error


def _in_graph(tensor: Any) -> bool:
    return hasattr(tensor, "graph")
