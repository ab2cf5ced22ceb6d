"""The arguments of a copy and its shared parts, checked before the graph changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.v1.clones.graph_part import GraphPart, Pair
from tb_pastnet.v1.graph.graph_variables import (
    GraphVariable,
    graph_variable,
    one_graph,
    open_graph,
    within,
)

DOING = "clone a network"

_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
"""Scopes that TensorFlow allows."""

_SHARE_HINT = (
    "Pass variables, tensors, operations, tables, or names of operations such as an error shows."
)


def flat(tensors: Nest) -> list[Any]:
    """The tensors in a nest; a sparse one is made of three."""
    return [
        part
        for leaf in tf.nest.flatten(tensors)
        for part in (  # some variables are composites of their handle
            [leaf] if isinstance(leaf, Variable) else tf.nest.flatten(leaf, expand_composites=True)
        )
    ]


def graph_of(inputs: Nest, outputs: Nest, doing: str = DOING) -> tf.Graph:
    """The graph of a network; raises InvalidArgument without an open one."""
    tensors = [*flat(outputs), *flat(inputs)]
    if not flat(outputs):
        raise InvalidArgument(
            f"Could not {doing}: expected outputs, got none. Pass the tensors at its end."
        )
    for tensor in tensors:
        _check_tensor(tensor, doing)
    graph = tensors[0].graph
    one_graph(tensors, graph, doing)
    if graph.building_function:
        raise InvalidArgument(
            f"Could not {doing}: expected a tf.Graph, got that of a function, {graph.name!r}. Do "
            "this outside of the tf.function, loop or branch; for functions use tb_pastnet "
            "without v1."
        )
    return open_graph(graph, doing)


def _check_tensor(tensor: object, doing: str) -> None:
    if not (isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")):
        raise InvalidArgument(
            f"Could not {doing}: expected tensors of a tf.Graph, got {type(tensor).__name__}. For "
            "a variable pass a tensor read from it; for Keras and eager code use tb_pastnet "
            "without v1."
        )


def replacements(inputs: Nest, new_inputs: Nest, graph: tf.Graph) -> list[Pair]:
    """Pairs of an input and its replacement; raises InvalidArgument if they don't fit."""
    old = flat(inputs)
    names = [tensor.name for tensor in old]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(
            f"Could not {DOING}: expected each input once, got {twice!r} twice. Leave one out."
        )
    if new_inputs is None:
        return [(tensor, tensor) for tensor in old]
    try:
        tf.nest.assert_same_structure(inputs, new_inputs, expand_composites=True)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not {DOING}: expected new_inputs in the structure of inputs, with "
            f"{len(old)} tensors, got {len(flat(new_inputs))} in another one. Pass one for each."
        ) from error
    pairs = list(zip(old, flat(new_inputs), strict=True))
    for pair in pairs:
        _check_tensor(pair[1], DOING)
        one_graph(pair, graph, DOING)
        _check_alike(*pair)
    return pairs


def free_scope(scope: str, graph: tf.Graph, doing: str = DOING) -> str:
    """A scope without a slash at its end; raises InvalidArgument if it is invalid or taken."""
    name = str(scope).rstrip("/")
    if not isinstance(scope, str) or not _SCOPE.fullmatch(name):
        raise InvalidArgument(
            f"Could not {doing}: expected a valid scope of TensorFlow, got {scope!r}. Begin it "
            f"with a letter, a digit or a dot."
        )
    taken = sum(each.name == name or within(each.name, name) for each in graph.get_operations())
    if taken:
        raise InvalidArgument(
            f"Could not {doing}: expected a scope that is free, got {name!r}, which has {taken} "
            f"operations. Pass another scope."
        )
    return name


def refuse_unneeded(names: Iterable[str], part: GraphPart, doing: str = DOING) -> None:
    """Raises InvalidArgument for inputs that are on no path to the outputs."""
    left = [repr(name) for name in names if name not in part.reached]
    if left:
        raise InvalidArgument(
            f"Could not {doing}: expected only inputs that its outputs need, got "
            f"{', '.join(left)}, which none needs. Leave it out, or add the output that it leads "
            "to."
        )


def shared_names(share: Nest, graph: tf.Graph, doing: str) -> set[str]:
    """The names of tensors and operations that a copy shares with its original."""
    leaves = tf.nest.flatten(share)
    elements = [element for leaf in leaves for element in _elements(leaf, graph, doing)]
    one_graph(elements, graph, doing)
    return {element.name for element in elements}


def _elements(leaf: Any, graph: tf.Graph, doing: str) -> Iterator[Any]:
    if isinstance(leaf, str):
        yield _named(leaf, graph, doing)
    elif isinstance(leaf, tf.Operation) or (isinstance(leaf, tf.Tensor) and hasattr(leaf, "graph")):
        yield leaf
    elif hasattr(getattr(leaf, "resource_handle", None), "graph"):  # of a table
        yield leaf.resource_handle
    elif isinstance(leaf, GraphVariable | Variable) or hasattr(leaf, "as_tensor"):
        yield from (part.op for part in graph_variable(leaf).parts)
    elif isinstance(leaf, tf.SparseTensor | tf.IndexedSlices):
        yield from tf.nest.flatten(leaf, expand_composites=True)
    else:
        raise InvalidArgument(
            f"Could not {doing}: expected parts of the graph in share, got "
            f"{type(leaf).__name__}. {_SHARE_HINT}"
        )


def _named(name: str, graph: tf.Graph, doing: str) -> Any:
    try:
        return graph.as_graph_element(name)
    except (KeyError, ValueError) as error:
        raise UnknownName(
            f"Could not {doing}: expected names of the graph's operations in share, got {name!r}. "
            f"{_SHARE_HINT}"
        ) from error


def _check_alike(old: tf.Tensor, new: tf.Tensor) -> None:
    if old.dtype.base_dtype != new.dtype.base_dtype:
        expected, got = old.dtype.base_dtype.name, new.dtype.base_dtype.name
    elif not old.shape.is_compatible_with(new.shape):
        expected, got = f"shape {old.shape}", str(new.shape)
    else:
        return
    raise InvalidArgument(
        f"Could not {DOING}: expected {expected} for new input {new.name!r}, as {old.name!r} has, "
        f"got {got}. The copy is the same network: pass inputs like the original's."
    )
