"""Clones networks of Keras: whole models, and parts between symbolic tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.layer_copies import LayerCopies, of_keras
from tb_pastnet.keras.clones.layer_state import (
    Initializer,
    assign,
    copy_flags,
    draw,
    layer_pairs,
    listed_variables,
    take_over,
)
from tb_pastnet.keras.clones.proof import check_pairs, used_variables
from tb_pastnet.keras.clones.symbolic import PartLayer, part_between
from tb_pastnet.keras.graphs.callable_network import Arguments, callable_network, specs_of
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.model.walk import tf_variable


class Values(NamedTuple):
    """What a copy begins with: copied values, or those of an initializer, or of its layers."""

    copied: bool
    initializer: Initializer | None


def clone_tensors(inputs: Nest, outputs: Nest, values: Values, name: str | None) -> keras.Model:
    """Clones the network between symbolic tensors, see `clone_network`."""
    part = part_between(inputs, outputs)
    copies = LayerCopies()
    copy = copies.model(part, name)
    _finish(_Clone("the network", PartLayer(part), copy, specs_of(part.inputs)), copies, values)
    return copy


def clone_model(
    model: keras.layers.Layer, values: Values, example: Nest, name: str | None
) -> keras.layers.Layer:
    """Clones a built model or layer, see `clone_network`."""
    network = callable_network(model)
    arguments = _arguments(model, example)
    copies = LayerCopies()
    copy = copies.operation(model)
    if name is not None:
        copy.name = name
    if not copy.built or len(copy.variables) < len(model.variables):
        _build(copy, model, arguments, network.name)
    _finish(_Clone(network.name, model, copy, arguments), copies, values)
    return copy


class _Clone(NamedTuple):
    name: str
    original: keras.layers.Layer
    copy: keras.layers.Layer
    arguments: Arguments


def _finish(clone: _Clone, copies: LayerCopies, values: Values) -> None:
    """Proves that a copy is one, and gives it its values."""
    layers = layer_pairs(copies.pairs, clone.name)
    listed = listed_variables(layers, clone.name)
    take_over(layers, saved=values.copied)
    copy_flags(layers)
    networks = (clone.original, clone.copy)
    used = used_variables(networks, copies.pairs, clone.arguments, clone.name)
    # What is used tells its own place; what isn't goes by the order in which layers list it.
    paired = {id(original) for original, _ in used}
    unused = [pair for pair in listed if id(pair[0]) not in paired]
    pairs = check_pairs([*used, *unused], clone.name)
    if values.copied:
        assign(pairs)
        return
    assign((tf_variable(original), tf_variable(copy)) for original, copy in copies.loose)
    if values.initializer is not None:
        trained = [tf_variable(variable) for variable in clone.copy.trainable_variables]
        draw(trained, values.initializer, clone.name)


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
