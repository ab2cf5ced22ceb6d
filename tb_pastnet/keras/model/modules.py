"""Finds what TensorFlow trains: the variables of Keras models, of tf.Modules, and bare ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.walk import Found, full_name, layer_variables, of_layer, once
from tb_pastnet.keras.types import Model, TensorLike, Variable
from tb_pastnet.keras.versions import is_torch, need_tensorflow, refuse_legacy


def find_variables(model: Model) -> list[Found]:
    """Lists the variables of a model in forward order, each shared one once."""
    refuse_legacy(model)
    if isinstance(model, keras.layers.Layer):
        need_tensorflow("use a Keras model")
        return layer_variables(model)
    if isinstance(model, tf.Module):
        return once(_of_module(model, ""))
    if isinstance(model, Mapping):
        return once(_of_entry(str(name), value) for name, value in model.items())
    raise InvalidArgument(
        f"Could not use {model!r:.80} as model=: expected a keras.Model, a tf.Module or a mapping "
        f"of names to variables, got {type(model).__name__}. {_mend(model)}"
    )


def _mend(model: object) -> str:
    if is_torch(model):
        return "Record a module of PyTorch by pastnet.torch.Recorder."
    if isinstance(model, str | os.PathLike):
        return "Write Recorder(logdir, model), with the model itself."
    if isinstance(model, list | tuple):
        return "Pass the model itself, or {v.path: v for v in model.weights}."
    return "Pass the model itself."


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
