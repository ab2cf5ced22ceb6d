"""What an argument of a graph has to be before operations are built from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument


def open_graph(graph: tf.Graph | None, doing: str) -> tf.Graph:
    """The graph, or the default one; raises InvalidArgument where it is finalized."""
    graph = tf.get_default_graph() if graph is None else graph
    if graph.finalized:
        raise InvalidArgument(
            f"Could not {doing}: expected a graph that takes operations, got a finalized one. "
            f"Build them before the session: a MonitoredTrainingSession finalizes its graph."
        )
    return graph


def one_graph(elements: Iterable[Any], graph: tf.Graph, doing: str) -> None:
    """Raises InvalidArgument for tensors, operations and variables of another graph."""
    for element in elements:
        if _outermost(getattr(element, "graph", graph)) is not _outermost(graph):
            raise InvalidArgument(
                f"Could not {doing}: expected tensors and variables of one graph, got "
                f"{element.name!r} of another one. Build all of it in the same tf.Graph."
            )


def innermost(graph: tf.Graph) -> tf.Graph:
    """The graph to build in: where a branch or a loop of this graph is built, that of its body."""
    current = tf.get_default_graph()
    return current if _outermost(current) is graph else graph


def _outermost(graph: tf.Graph) -> tf.Graph:
    while graph.building_function:
        graph = graph.outer_graph
    return graph
