"""What an argument of a graph has to be before operations are built from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument


def open_graph(graph: Any, doing: str) -> Any:
    """A graph that still takes operations.

    Args:
        graph: a tf.Graph; None: the default graph.
        doing: what is built, as in "sync 'past' with 'net'".

    Raises:
        InvalidArgument: it is finalized.
    """
    graph = tf.get_default_graph() if graph is None else graph
    if graph.finalized:
        raise InvalidArgument(
            f"Could not {doing}: expected a graph that takes operations, got a finalized one. "
            f"Build them before the session: a MonitoredTrainingSession finalizes its graph."
        )
    return graph


def one_graph(elements: Iterable[Any], graph: Any, doing: str) -> None:
    """Refuses what isn't of a graph.

    Args:
        elements: tensors, operations and variables; what belongs to no graph is left out.
        graph: the tf.Graph that they are to be in.
        doing: what is built of them.

    Raises:
        InvalidArgument: one is of another graph.
    """
    for one in elements:
        if _outermost(getattr(one, "graph", graph)) is not _outermost(graph):
            raise InvalidArgument(
                f"Could not {doing}: expected tensors and variables of one graph, got {one.name!r} "
                f"of another one. Build all of it in the same tf.Graph."
            )


def inside(graph: Any) -> Any:
    """The graph to build in: where a branch or a loop of this graph is built, that of its body."""
    current = tf.get_default_graph()
    return current if _outermost(current) is graph else graph


def _outermost(graph: Any) -> Any:
    while graph.building_function:
        graph = graph.outer_graph
    return graph
