"""Finds what TensorFlow trains: the variables of Keras models, of tf.Modules, and bare ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument, UnsupportedBackend
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.walk import Found, full_name, layer_variables, of_layer, once
from tb_pastnet.keras.types import Model, TensorLike, Variable


def find_variables(model: Model) -> list[Found]:
    """Lists the variables of a model in forward order, each shared one once."""
    if isinstance(model, keras.layers.Layer):
        if (backend := keras.backend.backend()) != "tensorflow":
            raise UnsupportedBackend(
                f"Could not record a Keras model: expected the TensorFlow backend, got "
                f"{backend!r}. Train with PastNetCallback, which records on every backend, or set "
                f"KERAS_BACKEND=tensorflow before Keras is imported."
            )
        return layer_variables(model)
    if isinstance(model, tf.Module):
        return once(_of_module(model, ""))
    if isinstance(model, Mapping):
        return once(_of_entry(str(name), value) for name, value in model.items())
    raise InvalidArgument(
        f"Could not record {model!r:.80}: expected a keras.Model, a tf.Module or a mapping of "
        f"names to variables, got {type(model).__name__}. Pass the model itself."
    )


def _of_module(module: Model, path: str) -> Iterator[Found]:
    for name, value in vars(module).items():
        # TensorFlow's own bookkeeping, which names everything once more.
        if not name.startswith("_self_"):
            yield from _of_attribute(module, path, name, value)


def _of_attribute(module: Model, path: str, name: str, value: TensorLike) -> Iterator[Found]:
    below = f"{path}/{name}" if path else name
    if isinstance(value, keras.layers.Layer):
        yield from of_layer(value, below, (), name)
    elif isinstance(value, tf.Module):
        yield from _of_module(value, below)
    elif (variable := tf_variable(value)) is not None:
        yield _plain(path or name, name, variable, value, module)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _of_attribute(module, path, f"{name}/{key}", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _of_attribute(module, path, f"{name}/{number}", item)


def _of_entry(name: str, value: TensorLike) -> Found:
    variable = tf_variable(value)
    if variable is None:
        raise InvalidArgument(
            f"Could not record {name!r}: expected a keras.Variable or a tf.Variable, got "
            f"{type(value).__name__}. Map names to variables."
        )
    layer, _, own = name.strip("/").rpartition("/")
    return _plain(layer or own, own, variable, value, None)


def _plain(layer: str, name: str, variable: Variable, holder: Any, module: Model) -> Found:
    # A tf.Variable's flag is fixed at creation, a Keras layer's may change.
    fixed = holder is variable and not variable.trainable
    return Found(
        layer=layer,
        name=name,
        variable=variable,
        type=type(holder if module is None else module).__name__,
        types=() if module is None else (full_name(type(module)),),
        statistic=fixed or name.startswith("moving_"),
        given=holder,
    )
