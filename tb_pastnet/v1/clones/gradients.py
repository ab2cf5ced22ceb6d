"""Gradients that are Python functions: those of tf.custom_gradient and of tf.functions.

A copied operation would have that of its original, which closes over tensors of the original.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

# There is no public way to call the gradient of one operation for another.
from tensorflow.python.framework.ops import get_gradient_function, gradient_registry

from tb_pastnet.errors import InvalidArgument

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Types of the operations that call a tf.function."""

_TYPE = "_gradient_op_type"
_CUSTOM = "CustomGradient-"
_OURS = "PastNetCopy-"
_NUMBERS = itertools.count(1)

Rewire = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""From gradients, and what they were made of, to the same with tensors of a copy."""


def own_gradient(operation: Any, node: Any, in_flow: bool, rewire: Rewire) -> None:
    """Lets the copy of an operation have the gradient of its original, with the copy's tensors.

    Args:
        operation: the original.
        node: the definition of the copy, which is changed.
        in_flow: whether it is in a branch or loop of control flow v1.
        rewire: replaces tensors of the original.
    """
    if not _custom(node) and operation.type not in CALLS:
        return
    try:
        original = get_gradient_function(operation)
    except LookupError:  # the graph comes from a file
        return

    def gradient(copy: Any, *given: Any) -> Any:
        try:
            results = original(copy, *given)
        except ValueError as error:
            # A tensor of one loop can't be used in another.
            raise (closes_over(copy.name) if in_flow else error) from error
        return rewire(results, given)

    _register(node, gradient)


def closed_gradient(node: Any) -> None:
    """Lets a node of a copied function have the gradient of its original, if that closes over none.

    Args:
        node: its definition, which is changed.
    """
    kind = _custom(node)
    if not kind:
        return
    try:
        original = gradient_registry.lookup(kind)
    except LookupError:
        return

    def gradient(copy: Any, *given: Any) -> Any:
        graph = tf.get_default_graph()
        before = len(graph.external_captures)
        try:
            results = original(copy, *given)
        except ValueError as error:  # a tensor of the original function
            raise closes_over(copy.name) from error
        if len(graph.external_captures) != before:
            raise closes_over(copy.name)
        return results

    _register(node, gradient)


def closes_over(name: str) -> InvalidArgument:
    """The error for a gradient in a loop or branch that uses more than what it is given."""
    return InvalidArgument(
        f"Could not take a gradient through {name!r} of a copied network: expected a custom "
        f"gradient in a loop or branch to use only the gradient that it is given, got one that "
        f"closes over tensors of the original. Move the tf.custom_gradient out of the loop or "
        f"branch, or stop the gradient before it."
    )


def _custom(node: Any) -> str:
    kind = node.attr[_TYPE].s.decode() if _TYPE in node.attr else ""
    return kind if kind.startswith((_CUSTOM, _OURS)) else ""


def _register(node: Any, gradient: Callable[..., Any]) -> None:
    name = f"{_OURS}{next(_NUMBERS)}"
    tf.RegisterGradient(name)(gradient)
    node.attr[_TYPE].s = name.encode()
