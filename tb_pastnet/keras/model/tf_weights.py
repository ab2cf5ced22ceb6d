"""Weights that variables of TensorFlow hold: in Keras models, in tf.Modules, and bare ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.core.subject import KERAS, check_subject
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.walk import Found, full_name, layer_variables, of_layer, once
from tb_pastnet.keras.model.weights import AxisOverrides, FoundWeight, network_of, shown
from tb_pastnet.keras.strategies import differs, host, primary, reader
from tb_pastnet.keras.types import Model, TensorLike, Variable
from tb_pastnet.keras.versions import need_tensorflow, refuse_legacy
from tb_pastnet.record.weight import Array, Network

_WITH_LORA = ("kernel", "embeddings")
"""The weights of layers that LoRA matrices change."""


class TFWeight(FoundWeight):
    """A weight that a variable of TensorFlow holds, or a `GraphWeight`."""

    @staticmethod
    def refusal(variable: Variable) -> str | None:
        """See `FoundWeight`."""
        reason = FoundWeight.refusal(variable)
        if reason is None and differs(variable):
            return "it has another value in each replica"
        return reason

    def read(self) -> Array:
        """See `Weight`. For a layer that owns its masks, the effective value."""
        value: Array = self.variable.numpy()
        return value

    def effective(self) -> Array:
        """See `Weight`: a view, if the values are in this machine's memory."""
        return self.read() if self._reader is None else host(self._reader())

    @cached_property
    def _reader(self) -> Callable[[], Any] | None:
        """Reads the variable eagerly; None if that isn't possible."""
        handle = getattr(primary(self.variable), "handle", None)
        return reader(self.variable) if self.plain and hasattr(handle, "numpy") else None

    @property
    def plain(self) -> bool:
        """See `Weight`."""
        return super().plain and self.masks() is None

    @property
    def trained(self) -> Any:
        """The tf.Variable that an optimizer updates: a layer that owns its masks has it inside."""
        own: Any = self.masks()
        return self.variable if own is None else own.variable


def network(
    model: Model,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
) -> Network[TFWeight]:
    """Lists what is recorded of a model."""
    return network_of(TFWeight, find_variables(model), shown(model), variables, channel_axes)


def find_variables(model: Model) -> list[Found]:
    """Lists the variables of a model in forward order, each shared one once."""
    refuse_legacy(model)
    if isinstance(model, keras.layers.Layer):
        need_tensorflow("use a Keras model")
        return layer_variables(model)
    if isinstance(model, tf.Module):
        return once(_of_module(model, ""))
    check_subject(model, KERAS, "record")
    if isinstance(model, Mapping):
        return once(_of_entry(str(name), value) for name, value in model.items())
    raise InvalidArgument(
        f"Could not use {model!r:.80} as model=: expected a keras.Model, a tf.Module or a mapping "
        f"of names to variables, got {type(model).__name__}. {_mend(model)}"
    )


def _mend(model: object) -> str:
    if isinstance(model, str | os.PathLike):
        return "Pass the model itself, as in Masks(model) and Recorder(logdir, model)."
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
    elif isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _of_attribute(module, path, f"{name}/{key}", item)


def _of_entry(name: str, value: TensorLike) -> Found:
    variable = tf_variable(value)
    if variable is None:
        raise InvalidArgument(
            f"Could not use {name!r} as a variable: expected a keras.Variable or a tf.Variable, "
            f"got {type(value).__name__}. Map names to variables."
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


class LoraWeight:
    """The weight that a layer with LoRA matrices computes with: base + alpha / rank · A B.

    Hu et al. 2021, arXiv:2106.09685. Keras stores base, A and B separately, and none of them shows
    whether the layer learns: the base is frozen.
    """

    def __init__(self, layer: keras.layers.Layer, name: str, base: tf.Variable) -> None:
        self._layer, self._name = layer, name
        self.shape, self.dtype = base.shape, base.dtype

    @property
    def trainable(self) -> bool:
        """Whether updates may change any part of it."""
        parts = (getattr(self._layer, f"lora_{self._name}_{part}") for part in "ab")
        return self._layer.trainable and any(part.trainable for part in parts)

    def numpy(self) -> Any:
        """The current value, as an array."""
        return tf.convert_to_tensor(self).numpy()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        value = getattr(self._layer, self._name)  # Keras adds A B if there are any
        return tf.convert_to_tensor(value, dtype, name=name)


def with_effective(entries: Iterable[Found]) -> Iterator[Found]:
    """Adds the effective weight, `lora_kernel`, after the base of each layer with LoRA matrices."""
    for entry in entries:
        yield entry
        if entry.name not in _WITH_LORA or not getattr(entry.owner, "lora_enabled", False):
            continue
        if entry.variable.dtype.is_floating:
            weight = LoraWeight(entry.owner, entry.name, entry.variable)
            name = f"lora_{entry.name}"
            yield replace(
                entry,
                name=name,
                variable=weight,
                given=weight,
                paths=(),
                rule=entry.name,
                computed=True,
            )
