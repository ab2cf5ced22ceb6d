"""Callable networks: how to call them, and their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.tf_weights import find_variables
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import free_name
from tb_pastnet.keras.versions import refuse_legacy

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class CallableNetwork(NamedTuple):
    """A callable network, for tracing."""

    name: str  # in errors
    call: Callable[..., Any]
    variables: dict[str, Found]  # those that it lists itself, by name
    inputs: Arguments | None = None  # arguments for tracing it, if known
    defaults: Mapping[str, Any] = MappingProxyType({})  # used if an argument is missing or None


def callable_network(network: object) -> CallableNetwork:
    """Finds how to call a network: a built keras.Model or layer, a tf.Module, or a function."""
    refuse_legacy(network)
    if isinstance(network, keras.layers.Layer):
        return _of_keras(network)
    if not callable(network):
        functions = functions_of(network)
        hint = f"one of its functions: {', '.join(functions)}" if functions else "the model itself"
        raise InvalidArgument(
            f"Could not use a {type(network).__name__} as a network: expected a keras.Model, a "
            f"tf.Module that can be called, or a function, got {network!r:.80}. Pass {hint}."
        )
    if isinstance(network, tf.Module):
        name = f"module {type(network).__name__!r}"
        return CallableNetwork(name, _converted(network), _listed(network))
    return CallableNetwork(_name_of(network), _converted(network), {}, _signature(network))


def _of_keras(model: keras.layers.Layer) -> CallableNetwork:
    if not model.built:
        if model.weights:
            raise InvalidArgument(
                f"Could not use model {model.name!r} as a network: expected one that was called, "
                f"got one that only holds others. Pass those that it calls, one by one."
            )
        raise InvalidArgument(
            f"Could not use model {model.name!r} as a network: expected a built model, got one "
            f"without weights. Call model.build(input_shape), or the model on one batch."
        )

    def call(*args: Any, training: Any = False, **kwargs: Any) -> Any:
        with own_losses([model]):
            return model(*args, training=training, **kwargs)

    shown = f"model {model.name!r}" if isinstance(model, keras.Model) else f"layer {model.name!r}"
    # Never None: Keras would use the value of the layer around the call.
    return CallableNetwork(shown, call, _listed(model), _specs(model), {"training": False})


@contextmanager
def own_losses(layers: Sequence[keras.layers.Layer]) -> Iterator[None]:
    """Keeps the `add_loss` results of layers, and inner ones, separate from a trace's losses."""
    every = {id(inner): inner for layer in layers for inner in layer._flatten_layers()}
    # No public names: `losses` is made again from these.
    parts = [getattr(layer, part) for layer in every.values() for part in ("_losses", "_loss_ids")]
    contents = [type(part)(part) for part in parts]
    for part in parts:
        part.clear()
    try:
        yield
    finally:
        for part, content in zip(parts, contents, strict=True):
            part.clear()
            (part.update if isinstance(part, set) else part.extend)(content)


def _listed(network: tf.Module) -> dict[str, Found]:
    """All variables of a network, by name, including states, seeds and masks."""
    named: dict[str, Found] = {}
    seen: set[int] = set()
    by_holder = (variable_entry(tf_variable(holder), holder) for holder in network.variables)
    for entry in (*find_variables(network), *by_holder):
        # In a layer that owns its masks, the trained weight is inside.
        variable = entry.variable
        if not isinstance(variable, tf.Variable):
            variable = getattr(variable, "variable", None)
        if variable is not None and id(variable) not in seen:
            seen.add(id(variable))
            named[free_name(entry.id, named)] = replace(entry, variable=variable)
    return named


def variable_entry(variable: tf.Variable, holder: keras.Variable | tf.Variable = None) -> Found:
    """A variable of which only its own name is known."""
    holder = variable if holder is None else holder
    path = str(getattr(holder, "path", None) or holder.name).partition(":")[0]
    layer, _, name = path.rpartition("/")
    return Found(layer or name, name, variable, type(holder).__name__, given=holder)


def _specs(model: keras.layers.Layer) -> Arguments | None:
    if isinstance(model, keras.Function):
        return specs_of(model.input)
    # A Sequential has one input, and no `input` before it is called.
    inputs = getattr(model, "inputs", None)
    return specs_of(inputs[0]) if inputs else None


def specs_of(tensors: Nest) -> Arguments:
    """The tracing arguments of a network that is called with a nest of KerasTensors."""
    return (keras.tree.map_structure(_spec, tensors),), {}


def _spec(tensor: keras.KerasTensor) -> tf.TypeSpec:
    if tensor.sparse:
        return tf.SparseTensorSpec(tensor.shape, tensor.dtype)
    if getattr(tensor, "ragged", False):
        return tf.RaggedTensorSpec(tensor.shape, tensor.dtype)
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes Python's `if` and `while` work on tensors, as under tf.function."""
    if any(hasattr(function, name) for name in ("get_concrete_function", "captured_inputs")):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        # Made again each time: a single tf.function would keep every trace.
        return tf.function(function)(*args, **kwargs)

    return call


def _signature(function: object) -> Arguments | None:
    signature = getattr(function, "structured_input_signature", None)
    if signature is not None:
        args, kwargs = signature
        return tuple(args), dict(kwargs)
    inputs = getattr(function, "input_signature", None)
    return (tuple(inputs), {}) if inputs else None


def _name_of(function: object) -> str:
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return f"function {name!r}" if isinstance(name, str) else f"a {type(function).__name__}"


def functions_of(owner: object) -> list[str]:
    """Names of the tf.functions among an object's attributes, as in a loaded SavedModel."""
    return [name for name in dir(owner) if name[0] != "_" and _is_function(owner, name)]


def _is_function(owner: object, name: str) -> bool:
    try:
        return hasattr(getattr(owner, name), "get_concrete_function")
    except Exception:
        return False  # a property may raise
