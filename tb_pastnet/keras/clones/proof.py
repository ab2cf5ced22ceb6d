"""Proves that a copy computes the same as its original, with state of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.pairing import Differs, operations, pair_captures
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.graphs.trace import STATE, Capture, Trace

Pair = tuple[Any, Any]

CLONE_FUNCTION = "clone a function: clone_network(tf.function(model), example=batch)."
"""What works without configs."""

CONFIG_HINT = (
    f"Return all that changes what a layer computes from its get_config, or {CLONE_FUNCTION}"
)

_SHARING_HINT = (
    f"Layers that share a layer through their configs each make one of their own: {CLONE_FUNCTION}"
)

_ONE = "one copy, as layers share it"

_PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})


def traced(call: Callable[..., Any], args: Sequence[Any], kwargs: Any, name: str) -> Any:
    """A ConcreteFunction of a network.

    Raises:
        InvalidArgument: the network doesn't take these inputs, or it runs Python code.
    """
    try:
        concrete = tf.function(call, autograph=False).get_concrete_function(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not trace {name}: expected inputs that it takes, got {_specs(args, kwargs)}. "
            f"{reason(error).rstrip('.')}. Pass example=, a batch as it is called with."
        ) from error
    refuse_python(concrete, name)
    return concrete


def refuse_python(concrete: Any, name: str) -> None:
    """Refuses what no graph shows.

    Raises:
        InvalidArgument: the function runs Python code.
    """
    found = operations(concrete) & _PYTHON
    if found:
        raise InvalidArgument(
            f"Could not clone {name}: expected TensorFlow operations, got Python code "
            f"({', '.join(sorted(found))}), of which nobody can tell what state it uses. Write "
            f"tf.py_function and tf.numpy_function with operations of TensorFlow."
        )


def variables_of(original: Any, copy: Any, name: str) -> list[Pair]:
    """The variables that two traces use, each of the original with that in its place.

    Args:
        original: a ConcreteFunction.
        copy: a ConcreteFunction of the same inputs.
        name: of the network in errors.

    Raises:
        InvalidArgument: they don't compute the same, or the copy uses state of the original.
    """
    captures = Trace(original).captures, Trace(copy).captures
    refuse_shared(captures[0], captures[1], name)
    try:
        numbers = pair_captures(original, copy)
    except Differs as difference:
        # One of these is read where another was expected.
        variables = {
            tensor.op.name: capture.variable
            for tensor, capture in zip(
                reversed(original.inputs), reversed(captures[0]), strict=False
            )
            if capture.variable is not None
        }
        if difference.node in variables:
            variable = variables[difference.node]
            raise _unequal(name, variable, _ONE, "several", _SHARING_HINT) from None
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that computes the same, got another one from "
            f"{difference.node!r} on. {CONFIG_HINT}"
        ) from None
    return _pairs([(captures[0][at], captures[1][other]) for at, other in numbers], name)


def captured_pairs(original: Any, copy: Any, name: str) -> list[Pair]:
    """The variables that a function and the same one loaded again capture, in their own order.

    Args:
        original: a ConcreteFunction.
        copy: its copy.
        name: of the function in errors.

    Raises:
        InvalidArgument: the copy uses state of the original, or not the same.
    """
    # Not by their graphs: a gradient that was taken of it has changed the loops of the original.
    captures = Trace(original).captures, Trace(copy).captures
    refuse_shared(captures[0], captures[1], name)
    if len(captures[0]) != len(captures[1]):
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that uses {len(captures[0])} values, got one "
            f"that uses {len(captures[1])}. Save it as a SavedModel, and load that instead."
        )
    return _pairs(list(zip(*captures, strict=True)), name)


def refuse_shared(originals: Iterable[Capture], copies: Iterable[Capture], name: str) -> None:
    """Refuses a copy that uses state of its original.

    Raises:
        InvalidArgument: it does.
    """
    own = {id(one.tensor) for one in originals if one.tensor.dtype in STATE}
    shared = [one.name for one in copies if id(one.tensor) in own]
    if shared:
        mend = f"Make it a weight of a layer, or {CLONE_FUNCTION}"
        if any("seed_generator" in one for one in shared):
            mend = f"Draw from a keras.random.SeedGenerator of the layer, or {CLONE_FUNCTION}"
        raise InvalidArgument(
            f"Could not clone {name}: expected variables of its own, got {', '.join(shared)} of "
            f"the original: Python code that closes over it, such as a Lambda, takes it along. "
            f"{mend}"
        )


def check_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Checks that variables of an original and of its copy go together one to one.

    Args:
        pairs: tf.Variables; a pair may be there more than once.
        name: of the network in errors.

    Returns:
        Each pair once.

    Raises:
        InvalidArgument: a variable is shared, or split in two, or of another shape or dtype.
    """
    pairs = list(pairs)
    originals = {id(one) for one, _ in pairs}
    twins: dict[int, Any] = {}
    unique = []
    for one, two in pairs:
        if id(one) in twins and twins[id(one)] is two:
            continue
        if id(two) in originals:
            raise _unequal(name, one, "one of its own", "the original's", _SHARING_HINT)
        if id(one) in twins:
            raise _unequal(name, one, _ONE, "several", _SHARING_HINT)
        if (one.shape.as_list(), one.dtype) != (two.shape.as_list(), two.dtype):
            shown = [f"{each.dtype.name} {each.shape}" for each in (one, two)]
            raise _unequal(name, one, shown[0], shown[1], CONFIG_HINT)
        twins[id(one)] = two
        unique.append((one, two))
    copies = {id(two): one for one, two in unique}
    for one, two in unique:
        if copies[id(two)] is not one:
            other = copies[id(two)].name
            raise _unequal(name, one, "a copy of its own", f"that of {other!r}", CONFIG_HINT)
    return unique


def _pairs(captures: Sequence[tuple[Capture, Capture]], name: str) -> list[Pair]:
    pairs = []
    for one, two in captures:
        if one.tensor.dtype not in STATE:
            _check_constant(one, two, name)
        elif one.variable is not None and two.variable is not None:
            pairs.append((one.variable, two.variable))
    return pairs


def _check_constant(one: Capture, two: Capture, name: str) -> None:
    if not _same_bytes(one.tensor, two.tensor):
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy with the same constants, got another value "
            f"of {one.name!r}. {CONFIG_HINT}"
        )


def _same_bytes(one: Any, two: Any) -> bool:
    first, second = np.asarray(one), np.asarray(two)
    if first.dtype.hasobject or second.dtype.hasobject:
        return bool((first == second).all())
    return (first.shape, first.dtype, first.tobytes()) == (
        second.shape,
        second.dtype,
        second.tobytes(),
    )


def _unequal(name: str, variable: Any, expected: str, got: str, hint: str) -> InvalidArgument:
    return InvalidArgument(
        f"Could not clone {name}: expected for {variable.name!r} {expected}, got {got}. {hint}"
    )


def _specs(args: Any, kwargs: Any) -> str:
    leaves = [one for one in tf.nest.flatten((args, kwargs)) if hasattr(one, "shape")]
    return ", ".join(f"{one.dtype.name} {one.shape}" for one in leaves) or "none"
