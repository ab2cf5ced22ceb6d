"""Clones networks of Keras: whole models, and parts between symbolic tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.compare import Between, used_variables
from tb_pastnet.keras.clones.config import of_keras
from tb_pastnet.keras.clones.layer_copies import Copier
from tb_pastnet.keras.clones.layer_state import (
    Initializer,
    assign,
    copy_flags,
    draw,
    layer_pairs,
    listed,
    take_over,
)
from tb_pastnet.keras.clones.proof import check_pairs
from tb_pastnet.keras.clones.symbolic import part_between
from tb_pastnet.keras.graphs.callable_network import Arguments, source_of
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.model.walk import tf_variable


class Values(NamedTuple):
    """What values a copy begins with.

    Attributes:
        copied: whether they are those of the original.
        initializer: draws others; None: as the copy was made.
    """

    copied: bool
    initializer: Initializer | None


def clone_tensors(inputs: Any, outputs: Any, values: Values, name: str | None) -> Any:
    """Clones the network between symbolic tensors.

    Args:
        inputs: one KerasTensor, or a nest of them.
        outputs: likewise.
        values: to begin with.
        name: of the new model.

    Returns:
        A keras.Model.

    Raises:
        InvalidArgument: see `clone_network`.
    """
    part = part_between(inputs, outputs)
    copier = Copier()
    copy = copier.model(part, name)
    _finish(_Clone("the network", Between(part), copy, _specs(part.inputs)), copier, values)
    return copy


def clone_model(model: Any, values: Values, example: Any, name: str | None) -> Any:
    """Clones a built model or layer.

    Args:
        model: of Keras.
        values: to begin with.
        example: a batch, or a tuple of arguments.
        name: of the new model; None: that of the old one.

    Returns:
        A model or layer of the same class.

    Raises:
        InvalidArgument: see `clone_network`.
    """
    source = source_of(model)
    arguments = _arguments(model, example)
    copier = Copier()
    copy = copier.operation(model)
    if name is not None:
        copy.name = name
    if not copy.built or len(copy.variables) < len(model.variables):
        _build(copy, model, arguments, source.name)
    _finish(_Clone(source.name, model, copy, arguments), copier, values)
    return copy


class _Clone(NamedTuple):
    name: str
    original: Any
    copy: Any
    arguments: Arguments


def _finish(clone: _Clone, copier: Copier, values: Values) -> None:
    """Proves that a copy is one, and gives it its values."""
    layers = layer_pairs(copier.pairs, clone.name)
    lists = listed(layers, clone.name)
    take_over(layers, all_of_it=values.copied)
    copy_flags(layers)
    networks = (clone.original, clone.copy)
    used = used_variables(networks, copier.pairs, clone.arguments, clone.name)
    # What is used tells its own place; what isn't goes by the order in which layers list it.
    known = {id(one) for one, _ in used}
    pairs = check_pairs([*used, *(one for one in lists if id(one[0]) not in known)], clone.name)
    if values.copied:
        assign(pairs)
        return
    assign((tf_variable(one), tf_variable(two)) for one, two in copier.loose)
    if values.initializer is not None:
        trained = [tf_variable(one) for one in clone.copy.trainable_variables]
        draw(trained, values.initializer, clone.name)


def _arguments(model: Any, example: Any) -> Arguments:
    """What a model can be traced with."""
    if example is not None:
        return (example if isinstance(example, tuple) else (example,)), {}
    if isinstance(model, keras.Function):
        return _specs(model.input)
    if getattr(model, "inputs", None):
        return _specs(model.inputs[0])
    # It was built with shapes; their dtype is the one that it computes with.
    config = model.get_build_config() or {}
    if "shapes_dict" in config:
        shapes = {key.removesuffix("_shape"): one for key, one in config["shapes_dict"].items()}
        return (), {key: _shaped(one, model.input_dtype) for key, one in shapes.items()}
    if "input_shape" not in config:
        raise InvalidArgument(
            f"Could not clone model {model.name!r}: expected to know what it is called with, got a "
            f"model that was built without shapes. Pass example=, a batch."
        )
    return (_shaped(config["input_shape"], model.input_dtype),), {}


def _shaped(shape: Any, dtype: str) -> Any:
    """TensorSpecs of a nest of shapes."""
    if isinstance(shape, dict):
        return {key: _shaped(one, dtype) for key, one in shape.items()}
    if all(one is None or isinstance(one, int) for one in shape):
        return tf.TensorSpec((None, *shape[1:]) if shape else (), dtype)
    return [_shaped(one, dtype) for one in shape]


def _specs(tensors: Any) -> Arguments:
    return (keras.tree.map_structure(_spec, tensors),), {}


def _spec(tensor: Any) -> Any:
    if tensor.sparse:
        return tf.SparseTensorSpec(tensor.shape, tensor.dtype)
    if getattr(tensor, "ragged", False):
        return tf.RaggedTensorSpec(tensor.shape, tensor.dtype)
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _build(copy: Any, model: Any, arguments: Arguments, name: str) -> None:
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


def _symbolic(leaf: Any) -> Any:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return leaf
    return keras.KerasTensor(leaf.shape, keras.backend.standardize_dtype(leaf.dtype))
