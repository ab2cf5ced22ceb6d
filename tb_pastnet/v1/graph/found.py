"""Which variables of a graph are recorded or masked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import AxisOverrides, TFWeight, network_of
from tb_pastnet.keras.types import Graph
from tb_pastnet.record.weight import Network
from tb_pastnet.v1.graph.graph_checks import one_graph
from tb_pastnet.v1.graph.graph_variables import (
    MASK_VARIABLES,
    GraphVariable,
    graph_variable,
    graph_variables,
)
from tb_pastnet.v1.graph.layer_roles import UNKNOWN, Role, roles
from tb_pastnet.v1.graph.session import GraphSession

Chosen = str | Mapping[str, Any] | Iterable[Any] | None


def network_in(
    site: GraphSession,
    variables: Chosen = None,
    channel_axes: AxisOverrides | None = None,
    *,
    writable: bool = False,
) -> Network[TFWeight]:
    """Lists variables of a graph, with their layers (their scopes) and channels, as they were made.

    Args:
        site: the graph.
        variables: as of `v1.Recorder`. Slots of optimizers have to be named.
        channel_axes: corrections by name.
        writable: whether arrays are going to be assigned to them.

    Raises:
        InvalidArgument: there are none, a scope has none, or one is of another graph.
        UnknownName: a name fits no variable, or several.
    """
    named = _named(site.graph, variables)
    order = {op.name: number for number, op in enumerate(site.graph.get_operations())}
    if not isinstance(variables, Mapping):
        # Collections have them in an order that differs from process to process.
        named = dict(sorted(named.items(), key=lambda entry: order[entry[1].parts[0].op.name]))
    used = roles(list(named.values()))
    entries = []
    for name, variable in named.items():
        face = site.variable_of(variable, writable=writable)
        entries.append(_entry(name, face, used[variable.name]))
    listed = isinstance(variables, str | Mapping) or variables is None
    return network_of(entries, "a graph", None if listed else _names(variables), channel_axes)


def _named(graph: Graph, variables: Chosen) -> dict[str, GraphVariable]:
    if isinstance(variables, Mapping):
        named = {str(name): graph_variable(each) for name, each in variables.items()}
    elif isinstance(variables, str):
        named = {each.name: each for each in _networks(graph_variables(graph, variables))}
        if not named:
            raise InvalidArgument(
                f"Could not take the variables of scope {variables!r}: expected at least one, got "
                f"none. A scope is taken exactly, by whole parts of the path."
            )
    elif variables is None:
        models, every = (
            _listed(graph, key)
            for key in (tf.GraphKeys.MODEL_VARIABLES, tf.GraphKeys.GLOBAL_VARIABLES)
        )
        named = {each.name: each for each in graph_variables(graph) if _own(each, models, every)}
    else:
        named = {each.name: each for each in _networks(graph_variables(graph), _names(variables))}
    one_graph(named.values(), graph, "take variables")
    return named


def _networks(every: Sequence[GraphVariable], wanted: Collection[str] = ()) -> list[GraphVariable]:
    """Those that aren't slots, as "net/kernel/Adam", or our masks, or are wanted by name."""
    names = {each.name for each in every}
    masks = _listed(every[0].graph, MASK_VARIABLES) if every else set()
    return [
        each
        for each in every
        if each.name in wanted or not (names & {*_above(each.name)} or _op(each) in masks)
    ]


def _above(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _own(variable: GraphVariable, models: Collection[str], every: Collection[str]) -> bool:
    """Whether it belongs to the network, not to an optimizer or to its past."""
    if variable.trainable:
        return True
    named = variable.name.rpartition("/")[2].startswith("moving_")
    return _op(variable) in models or (named and _op(variable) in every)


def _listed(graph: Graph, key: str) -> set[str]:
    """The names of what is in a collection."""
    return {each.op.name for each in graph.get_collection(key)}


def _op(variable: GraphVariable) -> str:
    name: str = variable.parts[0].op.name
    return name


def _names(variables: Any) -> list[str]:
    return [each if isinstance(each, str) else graph_variable(each).name for each in variables]


def _entry(name: str, face: Any, use: Role) -> Found:
    layer, _, own = name.strip("/").rpartition("/")
    return Found(
        layer=layer or own,
        name=own,
        variable=face,
        type=use.type or "Variable",
        types=() if use is UNKNOWN else (use.type,),
        statistic=not face.trainable,
        holders=(face,),
        rule=use.rule,
    )
