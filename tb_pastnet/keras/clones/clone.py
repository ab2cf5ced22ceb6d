"""Clones networks: whole Keras models, parts between symbolic tensors, and functions."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import keras
import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.subject import KERAS, check_subject
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.layer_copies import (
    Initializer,
    LayerCopies,
    assign,
    copy_flags,
    draw,
    layer_pairs,
    listed_variables,
    of_keras,
    take_over,
)
from tb_pastnet.keras.clones.proof import (
    Pair,
    captured_pairs,
    check_pairs,
    refuse_python,
    used_variables,
)
from tb_pastnet.keras.clones.symbolic import PartLayer, part_between
from tb_pastnet.keras.graphs.callable_network import (
    Arguments,
    callable_network,
    functions_of,
    specs_of,
)
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.graphs.trace import Trace
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.versions import need_tensorflow, refuse_legacy

if TYPE_CHECKING:
    from tensorflow.types.experimental import ConcreteFunction, PolymorphicFunction

    Traceable: TypeAlias = ConcreteFunction | PolymorphicFunction

Copied = tuple[str, Pair, Arguments, LayerCopies]
"""A network's name in errors; it and its copy; inputs for tracing; copies of its layers."""

_CONCRETE = tf.types.experimental.ConcreteFunction


@answered
def clone_network(
    inputs: Nest,
    outputs: Nest = None,
    *,
    weights: str = "copy",
    initializer: Initializer | str | None = None,
    example: Nest = None,
    name: str | None = None,
) -> Any:
    """Clones a network from its tensors, model, or function, with new variables.

    It needs neither the code that built the network nor a saved file. The copy computes the same
    and shares no state with the original: train it, save it, or delete the original. A copy that
    uses a variable of the original is refused. Layers are also traced together with the original,
    and the graphs compared operation by operation: any difference is refused, too.

    - Symbolic tensors: the layers between `inputs` and `outputs` are made again from their configs,
      a shared layer once. The user's classes and functions don't have to be registered. `trainable`
      flags, vocabularies, and statistics stay as they are.
    - A built keras.Model or layer: the same for all of it. The copy isn't compiled.
    - A tf.function, a ConcreteFunction, a function of a loaded SavedModel, or a callable module:
      its graphs are copied with their gradients, without layers.

    Args:
        inputs: one KerasTensor or a list or dict of them, which may be intermediate ones; or the
            model or function.
        outputs: one KerasTensor or a list or dict of them; None for a model or function.
        weights: "copy": the values of all variables. "fresh": drawn again by the layers' own
            initializers; results of `adapt`, masks and frozen values are kept.
        initializer: with weights="fresh": a Keras initializer, its name, or a function of `shape`
            and `dtype`, for the trainable variables. It is required for a function, which has no
            layers; all other variables are then copied.
        example: a batch, or a tuple of arguments, as tensors or tf.TensorSpecs: for a tf.function
            that hasn't been called yet, and a subclassed model that takes other dtypes than its
            own.
        name: of the new model.

    Returns:
        A keras.Model for KerasTensors, the same class for a model, a `ClonedFunction` for a
        function.

    Raises:
        ValueError: from Keras, if it has no initializer of that name.
        InvalidArgument: an input is missing or unused, an output can't be reached, or the model
            isn't built. Also if a layer can't be made from its config or then computes something
            else, or if a function uses other state than variables or a deleted one.

    Example:
        >>> import numpy as np
        >>> x = keras.Input((2,))
        >>> y = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(x)
        >>> copy = clone_network(x, y)
        >>> copy.set_weights([np.array([[2.0], [3.0]])])
        >>> batch = np.array([[1.0, 1.0]])
        >>> float(keras.Model(x, y)(batch)[0, 0]), float(copy(batch)[0, 0])
        (2.0, 5.0)
    """
    drawn: Initializer | None = keras.initializers.get(initializer)
    _check_values(weights, drawn)
    if not tf.executing_eagerly():
        raise InvalidArgument(
            "Could not clone a network: expected to run eagerly, got a call inside of a "
            "tf.function. Clone it outside, and call the clone inside."
        )
    if outputs is not None:
        need_tensorflow("clone a Keras network")
        return _finished(_part_copied(inputs, outputs, name), weights, drawn)
    if isinstance(inputs, keras.layers.Layer):
        return _finished(_model_copied(inputs, example, name), weights, drawn)
    refuse_legacy(inputs)
    check_subject(inputs, KERAS, "clone", "inputs")
    if not callable(inputs):
        raise _unknown(inputs)
    if weights == "fresh" and drawn is None:
        raise InvalidArgument(
            "Could not clone a function with fresh weights: expected an initializer, got none. A "
            "function has no layers with initializers: pass initializer=, such as "
            "keras.initializers.GlorotUniform()."
        )
    return _clone_function(inputs, drawn, example, name)


def _check_values(weights: str, initializer: Initializer | None) -> None:
    if weights not in ("copy", "fresh"):
        raise InvalidArgument(
            f"Could not clone a network: expected weights 'copy' or 'fresh', got {weights!r}. "
            f"Choose one of them."
        )
    if weights == "copy" and initializer is not None:
        raise InvalidArgument(
            "Could not clone a network: expected an initializer with weights='fresh' only, got one "
            "with 'copy'. Pass weights='fresh' as well."
        )


def _unknown(given: object) -> InvalidArgument:
    if any(isinstance(leaf, keras.KerasTensor) for leaf in keras.tree.flatten(given)):
        return InvalidArgument(
            "Could not clone a network: expected outputs as well as inputs, got none. Pass the "
            "KerasTensors at the end of the network."
        )
    hint = "symbolic tensors, such as model.inputs and model.outputs, or a function"
    if functions := functions_of(given):
        hint = f"one of its functions: {', '.join(functions)}"
    return InvalidArgument(
        f"Could not clone a network: expected KerasTensors, a keras.Model or a function, got a "
        f"{type(given).__name__}. Pass {hint}."
    )


def _part_copied(inputs: Nest, outputs: Nest, name: str | None) -> Copied:
    part = part_between(inputs, outputs)
    copies = LayerCopies()
    copy = keras.Model(**copies.tensors(part), name=name)
    return "the network", (PartLayer(part), copy), specs_of(part.inputs), copies


def _model_copied(model: keras.layers.Layer, example: Nest, name: str | None) -> Copied:
    network = callable_network(model)
    arguments = _arguments(model, example, network.inputs)
    copies = LayerCopies()
    copy = copies.operation(model)
    if name is not None:
        copy.name = name
    if not copy.built or len(copy.variables) < len(model.variables):
        _build(copy, model, arguments, network.name)
    return network.name, (model, copy), arguments, copies


def _finished(copied: Copied, weights: str, initializer: Initializer | None) -> keras.layers.Layer:
    """Verifies a copy, and sets its values."""
    name, networks, arguments, copies = copied
    layers = layer_pairs(copies.pairs, name)
    listed = listed_variables(layers, name)
    take_over(layers, saved=weights == "copy")
    copy_flags(layers)
    used = used_variables(networks, copies.pairs, arguments, name)
    # Used variables are matched by their use, unused ones by their order in the layers.
    paired = {id(original) for original, _ in used}
    unused = [pair for pair in listed if id(pair[0]) not in paired]
    pairs = check_pairs([*used, *unused], name)
    if weights == "copy":
        assign(pairs)
        return networks[1]
    assign((tf_variable(original), tf_variable(copy)) for original, copy in copies.loose)
    if initializer is not None:
        trained = [tf_variable(variable) for variable in networks[1].trainable_variables]
        draw(trained, initializer, name)
    return networks[1]


def _arguments(model: keras.layers.Layer, example: Nest, known: Arguments | None) -> Arguments:
    """The arguments for tracing a model, which may be known."""
    if example is not None:
        return (example if isinstance(example, tuple) else (example,)), {}
    if known is not None:
        return known

    def spec(shape: Sequence[int | None]) -> tf.TensorSpec:
        # It was built with shapes; the dtype is its compute dtype.
        return tf.TensorSpec((None, *shape[1:]) if shape else (), model.input_dtype)

    config = model.get_build_config() or {}
    if "shapes_dict" in config:
        specs = keras.tree.map_shape_structure(spec, config["shapes_dict"])
        return (), {key.removesuffix("_shape"): each for key, each in specs.items()}
    if "input_shape" not in config:
        raise InvalidArgument(
            f"Could not clone model {model.name!r}: expected a model with known inputs, got one "
            "that was built without shapes. Pass example=, a batch."
        )
    return (keras.tree.map_shape_structure(spec, config["input_shape"]),), {}


def _build(
    copy: keras.layers.Layer, model: keras.layers.Layer, arguments: Arguments, name: str
) -> None:
    """Builds a copy like its original."""
    if not of_keras(type(model), "build_from_config"):
        copy.build_from_config(model.get_build_config())
        return
    args, kwargs = tf.nest.map_structure(_symbolic, arguments)
    try:
        copy(*args, **kwargs)
    except Exception as error:
        raise InvalidArgument(
            f"Could not build the copy of {name}: expected one that takes the model's inputs, got: "
            f"{reason(error).rstrip('.')}. Pass example=, a batch."
        ) from error


def _symbolic(leaf: object) -> Any:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return leaf
    return keras.KerasTensor(leaf.shape, keras.backend.standardize_dtype(leaf.dtype))


class ClonedFunction(tf.Module):
    """A function with its own variables, as returned by `clone_network`.

    It is called like the original, and returns the same. Gradients flow through it;
    `variables` and `trainable_variables` are its own, with the names and flags of the original's.
    `tf.saved_model.save`, `tf.train.Checkpoint` and another `clone_network` accept it.

    Args:
        function: a tf.function or ConcreteFunction.
        state: its variables.

    Attributes:
        function: the called function.
        state: its tf.Variables, in the order in which the function uses them first.
    """

    def __init__(self, function: Traceable, state: Sequence[tf.Variable]) -> None:
        super().__init__()
        self.function = function
        self.state = list(state)
        # TensorFlow saves functions in attributes: a SavedModel of it can be called as well.
        self.__dict__["__call__"] = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the original returns, computed with its own variables."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ClonedFunction with {len(self.state)} variables>"


def _clone_function(
    network: object, initializer: Initializer | None, example: Nest, name: str | None
) -> ClonedFunction:
    """Clones a ConcreteFunction, tf.function, or object that calls one, see `clone_network`."""
    function = _traceable(network)
    shown = f"function {name or getattr(function, '__name__', None) or 'network'!r}"
    concretes = _concretes(function, example, shown)
    state = _state(concretes, shown)
    copy = _saved_and_loaded(function, state, shown)
    pairs = list(zip(state, copy.state, strict=True))
    for original, copied in zip(concretes, _traces_of(copy.function), strict=True):
        pairs += captured_pairs(original, copied, shown)
    check_pairs(pairs, shown)
    if initializer is not None:
        draw(copy.state, initializer, shown)
    return copy


def _traceable(network: object) -> Traceable:
    """The tf.function or ConcreteFunction of an object."""
    for function in (network, getattr(network, "__call__", None)):  # noqa: B004 - its value
        if isinstance(function, tf.types.experimental.PolymorphicFunction | _CONCRETE):
            return function
    return tf.function(network)


def _concretes(function: Traceable, example: Nest, name: str) -> list[ConcreteFunction]:
    try:
        if example is not None and not isinstance(function, _CONCRETE):
            function.get_concrete_function(*(example if isinstance(example, tuple) else (example,)))
        concretes = _traces_of(function)
    except Exception as error:
        got = "none" if example is None else f"{example!r:.80}"
        raise InvalidArgument(
            f"Could not trace {name}: expected a function that can be called with its example, got "
            f"{got}: {reason(error).rstrip('.')}. Pass example=, a batch, and keep the owner of "
            "the function."
        ) from error
    if not concretes:
        raise InvalidArgument(
            f"Could not clone {name}: expected a traced function, got one that was never called. "
            f"Pass example=, a batch of its inputs."
        )
    for concrete in concretes:
        refuse_python(concrete, name)
    return concretes


def _traces_of(function: Traceable) -> list[ConcreteFunction]:
    if isinstance(function, _CONCRETE):
        return [function]
    # No public name lists the traces of a tf.function. Saving uses this one.
    return list(function._list_all_concrete_functions_for_serialization())


def _state(concretes: Sequence[ConcreteFunction], name: str) -> list[tf.Variable]:
    """The variables of functions, each once."""
    variables: dict[int, tf.Variable] = {}
    for concrete in concretes:
        for capture in Trace(concrete).captures:
            if capture.variable is not None:
                variables.setdefault(id(capture.variable), capture.variable)
            elif capture.is_state:
                raise InvalidArgument(
                    f"Could not clone {name}: expected variables as its state, got {capture.name}, "
                    f"which can't be copied. Call it before the function, and pass its result."
                )
    return list(variables.values())


def _saved_and_loaded(
    function: Traceable, state: Sequence[tf.Variable], name: str
) -> ClonedFunction:
    """Through a SavedModel in memory: the public way to a graph with gradients and own state."""
    path = f"ram://pastnet-{uuid.uuid4().hex}"
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    logger = tf.get_logger()
    level = logger.level
    # Without the line that saving prints for each folder.
    logger.setLevel(max(level, logging.WARNING))
    try:
        tf.saved_model.save(ClonedFunction(function, state), path, options=options)
        loaded = tf.saved_model.load(path)
    except Exception as error:
        raise InvalidArgument(
            f"Could not clone {name}: expected a function that can be saved as a SavedModel, got: "
            f"{reason(error).rstrip('.')}. Use all variables in the function itself, not only in a "
            "gradient."
        ) from error
    finally:
        logger.setLevel(level)
        if tf.io.gfile.exists(path):
            tf.io.gfile.rmtree(path)
    return ClonedFunction(loaded.function, loaded.state)
