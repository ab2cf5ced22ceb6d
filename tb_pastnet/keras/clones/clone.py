"""Clones networks: whole models of Keras, parts between symbolic tensors, and functions."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.clone_function import clone_function
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
from tb_pastnet.keras.clones.proof import Pair, check_pairs, used_variables
from tb_pastnet.keras.clones.symbolic import PartLayer, part_between
from tb_pastnet.keras.graphs.callable_network import (
    Arguments,
    callable_network,
    functions_of,
    specs_of,
)
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.model.walk import tf_variable


def clone_network(
    inputs: Nest,
    outputs: Nest = None,
    *,
    weights: str = "copy",
    initializer: Initializer | None = None,
    example: Nest = None,
    name: str | None = None,
) -> Any:
    """Clones a network, given its tensors, the model, or a function, with variables of its own.

    Neither code that built it nor a saved file is needed. The copy computes the same and shares no
    state with the original: train it, save it, or delete the original. A copy that uses a variable
    of the original is refused. Layers are also traced beside the original, and the graphs compared
    operation by operation: what isn't the same is refused too.

    - Symbolic tensors: the layers between `inputs` and `outputs` are made again from their configs,
      a shared layer once. Classes and functions of the user needn't be registered. `trainable`
      flags, vocabularies, and statistics stay as they are.
    - A keras.Model or layer that is built: the same for all of it. It isn't compiled.
    - A tf.function, a ConcreteFunction, a function of a loaded SavedModel, or a module that is
      called as one: its graphs are copied with their gradients, its layers are unknown.

    Args:
        inputs: one KerasTensor or a list or dict of them, also intermediate ones; or the model or
            function.
        outputs: KerasTensors likewise; None for a model or function.
        weights: "copy": the values of all variables. "fresh": drawn anew by the layers' own
            initializers; what `adapt` learned is kept, masks and frozen values too.
        initializer: with weights="fresh": draws the trainable variables, as a keras initializer or
            a function of `shape` and `dtype`. A function has no layers, and so it has to be given;
            all other variables are then copied.
        example: a batch, or a tuple of arguments, as tensors or tf.TensorSpecs: for a tf.function
            that wasn't called yet, and a subclassed model that takes other dtypes than its own.
        name: of the new model.

    Returns:
        A keras.Model for KerasTensors, the same class for a model, a `ClonedFunction` for a
        function.

    Raises:
        InvalidArgument: an input is lacking or isn't needed, an output can't be reached, the model
            isn't built, a layer can't be made from its config, or computes something else then,
            other state than variables is used by a function, or a variable of it was deleted.

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
    _check_values(weights, initializer)
    if not tf.executing_eagerly():
        raise InvalidArgument(
            "Could not clone a network: expected to run eagerly, got a call inside of a "
            "tf.function. Clone it before, and call the clone there."
        )
    if outputs is not None:
        return _clone_tensors(inputs, outputs, name, weights, initializer)
    if isinstance(inputs, keras.layers.Layer):
        return _clone_model(inputs, example, name, weights, initializer)
    if not callable(inputs):
        raise _unknown(inputs)
    if weights == "fresh" and initializer is None:
        raise InvalidArgument(
            "Could not clone a function with fresh weights: expected an initializer, got none. A "
            "function has no layers that know theirs: pass initializer=, such as "
            "keras.initializers.GlorotUniform()."
        )
    return clone_function(inputs, initializer, example, name)


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
            "Could not clone a network: expected outputs beside the inputs, got none. Pass the "
            "KerasTensors that the network ends with."
        )
    hint = "symbolic tensors, such as model.inputs and model.outputs, or a function"
    if functions := functions_of(given):
        hint = f"one of its functions: {', '.join(functions)}"
    return InvalidArgument(
        f"Could not clone a network: expected KerasTensors, a keras.Model or a function, got a "
        f"{type(given).__name__}. Pass {hint}."
    )


def _clone_tensors(
    inputs: Nest, outputs: Nest, name: str | None, weights: str, initializer: Initializer | None
) -> keras.Model:
    part = part_between(inputs, outputs)
    copies = LayerCopies()
    copy = copies.model(part, name)
    networks = (PartLayer(part), copy)
    _finish("the network", networks, specs_of(part.inputs), copies, weights, initializer)
    return copy


def _clone_model(
    model: keras.layers.Layer,
    example: Nest,
    name: str | None,
    weights: str,
    initializer: Initializer | None,
) -> keras.layers.Layer:
    network = callable_network(model)
    arguments = _arguments(model, example)
    copies = LayerCopies()
    copy = copies.operation(model)
    if name is not None:
        copy.name = name
    if not copy.built or len(copy.variables) < len(model.variables):
        _build(copy, model, arguments, network.name)
    _finish(network.name, (model, copy), arguments, copies, weights, initializer)
    return copy


def _finish(
    name: str,
    networks: Pair,
    arguments: Arguments,
    copies: LayerCopies,
    weights: str,
    initializer: Initializer | None,
) -> None:
    """Proves that a copy is one, and gives it its values."""
    layers = layer_pairs(copies.pairs, name)
    listed = listed_variables(layers, name)
    take_over(layers, saved=weights == "copy")
    copy_flags(layers)
    used = used_variables(networks, copies.pairs, arguments, name)
    # What is used tells its own place; what isn't goes by the order in which layers list it.
    paired = {id(original) for original, _ in used}
    unused = [pair for pair in listed if id(pair[0]) not in paired]
    pairs = check_pairs([*used, *unused], name)
    if weights == "copy":
        assign(pairs)
        return
    assign((tf_variable(original), tf_variable(copy)) for original, copy in copies.loose)
    if initializer is not None:
        trained = [tf_variable(variable) for variable in networks[1].trainable_variables]
        draw(trained, initializer, name)


def _arguments(model: keras.layers.Layer, example: Nest) -> Arguments:
    """What a model can be traced with."""
    if example is not None:
        return (example if isinstance(example, tuple) else (example,)), {}
    if isinstance(model, keras.Function):
        return specs_of(model.input)
    if getattr(model, "inputs", None):
        return specs_of(model.inputs[0])
    # It was built with shapes; their dtype is the one that it computes with.
    config = model.get_build_config() or {}
    if "shapes_dict" in config:
        shapes = {key.removesuffix("_shape"): each for key, each in config["shapes_dict"].items()}
        return (), {key: _shaped(each, model.input_dtype) for key, each in shapes.items()}
    if "input_shape" not in config:
        raise InvalidArgument(
            f"Could not clone model {model.name!r}: expected to know what it is called with, got a "
            f"model that was built without shapes. Pass example=, a batch."
        )
    return (_shaped(config["input_shape"], model.input_dtype),), {}


def _shaped(shape: Any, dtype: str) -> Any:
    """TensorSpecs of a nest of shapes."""
    if isinstance(shape, dict):
        return {key: _shaped(each, dtype) for key, each in shape.items()}
    if all(each is None or isinstance(each, int) for each in shape):
        return tf.TensorSpec((None, *shape[1:]) if shape else (), dtype)
    return [_shaped(each, dtype) for each in shape]


def _build(
    copy: keras.layers.Layer, model: keras.layers.Layer, arguments: Arguments, name: str
) -> None:
    """Builds a copy as its original was."""
    if not of_keras(type(model), "build_from_config"):
        copy.build_from_config(model.get_build_config())
        return
    args, kwargs = tf.nest.map_structure(_symbolic, arguments)
    try:
        copy(*args, **kwargs)
    except Exception as error:
        raise InvalidArgument(
            f"Could not build the copy of {name}: expected one that takes what the model was built "
            f"with, got: {reason(error).rstrip('.')}. Pass example=, a batch."
        ) from error


def _symbolic(leaf: object) -> Any:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return leaf
    return keras.KerasTensor(leaf.shape, keras.backend.standardize_dtype(leaf.dtype))
