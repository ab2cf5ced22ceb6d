"""What can be called as a network: how to call it, and which variables it has.

Keras models list their variables, and so do modules. A bare function tells of its state only once
it is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.losses import own_losses
from tb_pastnet.keras.model.walk import Found, find_variables, tf_variable

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Source(NamedTuple):
    """A network that can be called.

    Attributes:
        name: in errors.
        call: calls it as it is to be traced.
        variables: those that it lists itself, by name.
        inputs: what it can be traced with, positional and by name, where that is known.
        defaults: arguments that it is called with where none, or None, is given.
    """

    name: str
    call: Callable[..., Any]
    variables: dict[str, Found]
    inputs: Arguments | None = None
    defaults: Mapping[str, Any] = MappingProxyType({})


def source_of(network: Any) -> Source:
    """Says how a network is called.

    Args:
        network: a built keras.Model or layer, a tf.Module, or a function.

    Raises:
        InvalidArgument: the model isn't built, or it can't be called.
    """
    if isinstance(network, keras.layers.Layer):
        return _of_keras(network)
    if isinstance(network, tf.Module) and callable(network):
        return Source(f"module {type(network).__name__!r}", _converted(network), _listed(network))
    if not callable(network):
        raise _uncallable(network)
    return Source(_name_of(network), _converted(network), {}, _signature(network))


def _of_keras(model: Any) -> Source:
    if not model.built:
        raise InvalidArgument(
            f"Could not take model {model.name!r} as a network: expected a built model, got one "
            f"without weights. Call model.build(input_shape), or the model on one batch."
        )

    def call(*args: Any, training: Any = False, **kwargs: Any) -> Any:
        with own_losses([model]):
            return model(*args, training=training, **kwargs)

    shown = f"model {model.name!r}" if isinstance(model, keras.Model) else f"layer {model.name!r}"
    # Never None: Keras would take what the layer around a call is called with.
    return Source(shown, call, _listed(model), _specs(model), {"training": False})


def _listed(network: Any) -> dict[str, Found]:
    """All variables that a network lists, by name: also states, seeds and masks."""
    found: dict[str, Found] = {}
    seen: set[int] = set()
    for entry in (*find_variables(network), *_others(network)):
        # Of a layer that owns its masks the trained weight lies inside.
        variable = entry.variable
        if not isinstance(variable, tf.Variable):
            variable = getattr(variable, "variable", None)
        if variable is not None and id(variable) not in seen:
            seen.add(id(variable))
            found[free_name(entry.id, found)] = replace(entry, variable=variable)
    return found


def free_name(name: str, taken: Container[str]) -> str:
    """The name, numbered where it is taken.

    Example:
        >>> free_name("scale", {"scale", "scale_1"})
        'scale_2'
    """
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _others(network: Any) -> Iterator[Found]:
    for holder in network.variables:
        yield found_of(tf_variable(holder), holder)


def found_of(variable: Any, holder: Any = None) -> Found:
    """A variable of which only its own name is known."""
    holder = variable if holder is None else holder
    path = str(getattr(holder, "path", None) or holder.name).partition(":")[0]
    layer, _, name = path.rpartition("/")
    return Found(layer or name, name, variable, type(holder).__name__, holders=(holder,))


def _specs(model: Any) -> Arguments | None:
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return None
    # A Sequential has one input, and no `input` before it is called.
    structure = inputs[0] if len(inputs) == 1 else model.input
    return (keras.tree.map_structure(_spec, structure),), {}


def _spec(tensor: Any) -> Any:
    kind = tf.SparseTensorSpec if tensor.sparse else tf.TensorSpec
    return kind(tensor.shape, tensor.dtype)


def _converted(function: Any) -> Callable[..., Any]:
    """With it Python's own `if` and `while` on tensors work, as under tf.function."""
    if any(hasattr(function, name) for name in ("get_concrete_function", "captured_inputs")):
        called: Callable[..., Any] = function
        return called

    def call(*args: Any, **kwargs: Any) -> Any:
        # Made anew each time: one tf.function would keep every trace that was ever made.
        return tf.function(function)(*args, **kwargs)

    return call


def _signature(function: Any) -> Arguments | None:
    signature = getattr(function, "structured_input_signature", None)
    if signature is not None:
        args, kwargs = signature
        return tuple(args), dict(kwargs)
    if getattr(function, "input_signature", None):
        return tuple(function.input_signature), {}
    return None


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return f"function {name!r}" if isinstance(name, str) else f"a {type(function).__name__}"


def functions_of(owner: Any) -> list[str]:
    """Names of the tf.functions among an object's attributes, as a loaded SavedModel has them."""
    return [name for name in dir(owner) if name[0] != "_" and _is_function(owner, name)]


def _is_function(owner: Any, name: str) -> bool:
    try:
        return hasattr(getattr(owner, name), "get_concrete_function")
    except Exception:
        return False  # a property may raise


def _uncallable(network: Any) -> InvalidArgument:
    functions = functions_of(network)
    hint = f"one of its functions: {', '.join(functions)}" if functions else "the model itself"
    return InvalidArgument(
        f"Could not take a {type(network).__name__} as a network: expected a keras.Model, a "
        f"tf.Module that can be called, or a function, got {network!r:.80}. Pass {hint}."
    )
