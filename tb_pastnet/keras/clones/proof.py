"""Proves that a copy computes the same as its original, with state of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.callable_network import Arguments, own_losses
from tb_pastnet.keras.graphs.nodes import PYTHON, operation_types
from tb_pastnet.keras.graphs.pairing import Differs, pair_captures
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.graphs.trace import Capture, Trace

if TYPE_CHECKING:
    from tensorflow.types.experimental import ConcreteFunction

Pair = tuple[Any, Any]
"""Of an original its layer or variable, and that in its place in a copy."""

CLONE_FUNCTION = "clone a function: clone_network(tf.function(model), example=batch)."
"""What works without configs."""

CONFIG_HINT = (
    f"Return all that changes what a layer computes from its get_config, or {CLONE_FUNCTION}"
)

_SHARING_HINT = (
    f"Layers that share a layer through their configs each make one of their own: {CLONE_FUNCTION}"
)

_ONE_COPY = "one copy, as layers share it"

_MODES = (None, True)
"""The values of `training` that a network is called with."""


def used_variables(
    networks: Pair, layers: Sequence[Pair], arguments: Arguments, name: str
) -> list[Pair]:
    """The variables that a network of Keras uses, and a copy's; losses of `layers` are results."""
    args, kwargs = arguments
    sides = [pair[0] for pair in layers], [pair[1] for pair in layers]
    pairs = []
    for training in _MODES:
        original, copy = (
            _traced(_results(network, own, training), args, kwargs, name)
            for network, own in zip(networks, sides, strict=True)
        )
        pairs += _pairs_by_graph(original, copy, name)
    return pairs


def _results(
    network: keras.layers.Layer, layers: Sequence[keras.layers.Layer], training: bool | None
) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        with own_losses([network, *layers]):
            outputs = network(*args, training=training, **kwargs)
            graph = tf.compat.v1.get_default_graph()
            losses = [loss for layer in layers for loss in layer.losses]
            # One of a loop's inside can't be had.
            return outputs, [loss for loss in losses if getattr(loss, "graph", graph) is graph]

    return called


def _traced(
    call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> ConcreteFunction:
    try:
        concrete = tf.function(call, autograph=False).get_concrete_function(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not trace {name}: expected inputs that it takes, got {_specs(args, kwargs)}. "
            f"{reason(error).rstrip('.')}. Pass example=, a batch as it is called with."
        ) from error
    refuse_python(concrete, name)
    return concrete


def refuse_python(concrete: ConcreteFunction, name: str) -> None:
    """Refuses a function that runs Python code, which no graph shows."""
    python = operation_types(concrete) & PYTHON
    if python:
        raise InvalidArgument(
            f"Could not clone {name}: expected TensorFlow operations, got Python code "
            f"({', '.join(sorted(python))}), of which nobody can tell what state it uses. Write "
            f"tf.py_function and tf.numpy_function with operations of TensorFlow."
        )


def _pairs_by_graph(original: ConcreteFunction, copy: ConcreteFunction, name: str) -> list[Pair]:
    captures = _own_captures(original, copy, name)
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
            raise _unequal(name, variable, _ONE_COPY, "several", _SHARING_HINT) from None
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that computes the same, got another one from "
            f"{difference.node!r} on. {CONFIG_HINT}"
        ) from None
    return _variable_pairs(((captures[0][a], captures[1][b]) for a, b in numbers), name)


def captured_pairs(original: ConcreteFunction, copy: ConcreteFunction, name: str) -> list[Pair]:
    """The variables that a function and the same one loaded again capture, in their own order."""
    # Not by their graphs: a gradient that was taken of it has changed the loops of the original.
    captures = _own_captures(original, copy, name)
    if len(captures[0]) != len(captures[1]):
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that uses {len(captures[0])} values, got one "
            f"that uses {len(captures[1])}. Save it as a SavedModel, and load that instead."
        )
    return _variable_pairs(zip(*captures, strict=True), name)


def _own_captures(
    original: ConcreteFunction, copy: ConcreteFunction, name: str
) -> tuple[tuple[Capture, ...], tuple[Capture, ...]]:
    """What two functions capture; a copy that uses state of its original is refused."""
    captures = Trace(original).captures, Trace(copy).captures
    state = {id(capture.tensor) for capture in captures[0] if capture.is_state}
    shared = [capture.name for capture in captures[1] if id(capture.tensor) in state]
    if shared:
        mend = f"Make it a weight of a layer, or {CLONE_FUNCTION}"
        if any("seed_generator" in each for each in shared):
            mend = f"Draw from a keras.random.SeedGenerator of the layer, or {CLONE_FUNCTION}"
        raise InvalidArgument(
            f"Could not clone {name}: expected variables of its own, got {', '.join(shared)} of "
            f"the original: Python code that closes over it, such as a Lambda, takes it along. "
            f"{mend}"
        )
    return captures


def check_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Checks that variables of an original and of its copy go together one to one."""
    pairs = list(pairs)
    originals = {id(original) for original, _ in pairs}
    twins: dict[int, Any] = {}
    unique = []
    for original, copy in pairs:
        if id(original) in twins and twins[id(original)] is copy:
            continue
        if id(copy) in originals:
            raise _unequal(name, original, "one of its own", "the original's", _SHARING_HINT)
        if id(original) in twins:
            raise _unequal(name, original, _ONE_COPY, "several", _SHARING_HINT)
        if (original.shape.as_list(), original.dtype) != (copy.shape.as_list(), copy.dtype):
            shown = [f"{each.dtype.name} {each.shape}" for each in (original, copy)]
            raise _unequal(name, original, shown[0], shown[1], CONFIG_HINT)
        twins[id(original)] = copy
        unique.append((original, copy))
    owners = {id(copy): original for original, copy in unique}
    for original, copy in unique:
        if owners[id(copy)] is not original:
            got = f"that of {owners[id(copy)].name!r}"
            raise _unequal(name, original, "a copy of its own", got, CONFIG_HINT)
    return unique


def _variable_pairs(captures: Iterable[tuple[Capture, ...]], name: str) -> list[Pair]:
    pairs = []
    for original, copy in captures:
        if not original.is_state:
            if not _same_bytes(original.tensor, copy.tensor):
                raise InvalidArgument(
                    f"Could not clone {name}: expected a copy with the same constants, got another "
                    f"value of {original.name!r}. {CONFIG_HINT}"
                )
        elif original.variable is not None and copy.variable is not None:
            pairs.append((original.variable, copy.variable))
    return pairs


def _same_bytes(original: tf.Tensor, copy: tf.Tensor) -> bool:
    first, second = np.asarray(original), np.asarray(copy)
    if first.dtype.hasobject or second.dtype.hasobject:
        return bool((first == second).all())
    alike = (first.shape, first.dtype) == (second.shape, second.dtype)
    return alike and first.tobytes() == second.tobytes()


def _unequal(
    name: str, variable: tf.Variable, expected: str, got: str, hint: str
) -> InvalidArgument:
    return InvalidArgument(
        f"Could not clone {name}: expected for {variable.name!r} {expected}, got {got}. {hint}"
    )


def _specs(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    leaves = [leaf for leaf in tf.nest.flatten((args, kwargs)) if hasattr(leaf, "shape")]
    return ", ".join(f"{leaf.dtype.name} {leaf.shape}" for leaf in leaves) or "none"
