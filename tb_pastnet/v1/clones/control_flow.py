"""Branches and loops of control flow v1, as contexts, for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import node_of

if TYPE_CHECKING:
    from tensorflow.core.protobuf.control_flow_pb2 import CondContextDef, WhileContextDef

    Definition: TypeAlias = CondContextDef | WhileContextDef

_KEYS = (tf.GraphKeys.COND_CONTEXT, tf.GraphKeys.WHILE_CONTEXT)

Rename = Callable[[str], str | None]
"""The name of a tensor in the copy, or None if it isn't copied."""


class Context(NamedTuple):
    """A branch or loop: its operations, and the tensors that represent it in a gradient."""

    inside: frozenset[str]
    anchors: tuple[str, ...]


def contexts_of(graph: tf.Graph) -> tuple[Context, ...]:
    """The branches and loops of a graph, including those within others."""
    return tuple(
        Context(frozenset(map(node_of, _inside(definition))), tuple(_anchors(definition)))
        for _, context in _roots(graph)
        for definition in _nested(context.to_proto())
    )


def copy_contexts(graph: tf.Graph, rename: Rename, scope: str) -> None:
    """Marks the operations copied into a scope as those of separate branches and loops."""
    for key, context in _roots(graph):
        definition = context.to_proto()
        pivot = definition.pivot_name
        if rename(pivot) not in (None, pivot):
            _rename(definition, rename, scope)
            graph.add_to_collection(key, type(context).from_proto(definition))


def _roots(graph: tf.Graph) -> list[tuple[str, Any]]:
    return [(key, context) for key in _KEYS for context in graph.get_collection(key)]


def _nested(definition: Definition) -> Iterator[Definition]:
    yield definition
    for nested in definition.nested_contexts:
        yield from _nested(getattr(nested, nested.WhichOneof("ctxt")))


def _inside(definition: Definition) -> set[str]:
    values = definition.values_def
    return set(values.values) - set(values.external_values)


def _tensors(definition: Definition) -> dict[str, Any]:
    """Its fields that name a tensor, or several; all texts do but its own name."""
    return {
        field.name: value
        for field, value in definition.ListFields()
        if field.type == field.TYPE_STRING and field.name != "context_name"
    }


def _anchors(definition: Definition) -> list[str]:
    named = _tensors(definition).values()
    single = [value for value in named if isinstance(value, str)]
    return single + [name for value in named if not isinstance(value, str) for name in value]


def _rename(definition: Definition, rename: Rename, scope: str) -> None:
    """Renames all tensors in the definition of a context; those that aren't copied are left out."""
    definition.context_name = f"{scope}/{definition.context_name}"
    for field, value in _tensors(definition).items():
        if isinstance(value, str):
            setattr(definition, field, rename(value))
        else:
            value[:] = _copied(value, rename)
    values = definition.values_def
    inside = _copied(sorted(_inside(definition)), rename)
    outside = {rename(key): rename(value) for key, value in values.external_values.items()}
    values.external_values.clear()
    values.external_values.update({a: b for a, b in outside.items() if a and b})
    values.values[:] = [*inside, *values.external_values]
    kept = []
    for wrapper in definition.nested_contexts:
        nested = getattr(wrapper, wrapper.WhichOneof("ctxt"))
        if rename(nested.pivot_name) is not None:
            _rename(nested, rename, scope)
            kept.append(wrapper)
    del definition.nested_contexts[:]
    definition.nested_contexts.extend(kept)


def _copied(names: Iterable[str], rename: Rename) -> list[str]:
    return [name for name in map(rename, names) if name is not None]
