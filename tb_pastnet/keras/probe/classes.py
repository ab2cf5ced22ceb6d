"""Which outputs decide between classes: by the activation, else by the compiled loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.core.names import snake_case
from tb_pastnet.keras.probe.measures import Classes

_BINARY = {
    "categorical_crossentropy": False,
    "sparse_categorical_crossentropy": False,
    "categorical_focal_crossentropy": False,
    "binary_crossentropy": True,
    "binary_focal_crossentropy": True,
}
"""Crossentropies, and whether each element is a decision of its own."""

_SOFTMAX, _SIGMOID = Classes(binary=False, logits=False), Classes(binary=True, logits=False)


def classes_of(layers: Iterable[keras.layers.Layer], loss: object) -> Classes | None:
    """How an output of these layers decides that is compiled with a loss, None for none.

    A softmax or sigmoid says that it does, whatever the loss is; without one, a crossentropy says
    so. The classes lie along the last axis: a softmax over another one isn't taken for such.
    """
    for layer in layers:
        classes = _by_activation(layer)
        if classes is not None:
            return classes
    return _by_loss(loss)


def loss_of(model: object, index: int, names: Sequence[str], count: int) -> Any:
    """The loss of one of `count` outputs as it was given to `compile`; None where there is none."""
    loss = getattr(model, "loss", None) if getattr(model, "compiled", False) else None
    if isinstance(loss, Mapping) and any(name in loss for name in names):
        return next(loss[name] for name in names if name in loss)
    if not isinstance(loss, Mapping | list | tuple):
        return loss
    flat = tf.nest.flatten(loss)
    return flat[index] if len(flat) == count else None


def _by_activation(layer: keras.layers.Layer) -> Classes | None:
    if isinstance(layer, keras.layers.RNN):
        return None  # its activation isn't what comes last
    if isinstance(layer, keras.layers.Softmax):
        return _SOFTMAX if layer.axis == -1 else None
    activation = getattr(layer, "activation", None)
    if activation is keras.activations.softmax:
        return _SOFTMAX
    return _SIGMOID if activation is keras.activations.sigmoid else None


def _by_loss(loss: object) -> Classes | None:
    if isinstance(loss, keras.losses.Loss):
        names = [kind.__name__ for kind in type(loss).__mro__]
    else:
        names = [loss if isinstance(loss, str) else getattr(loss, "__name__", "")]
    kinds = [_BINARY[name] for name in map(snake_case, names) if name in _BINARY]
    if not kinds:
        return None
    config = loss.get_config() if isinstance(loss, keras.losses.Loss) else {}
    if config.get("axis", -1) != -1:
        return None
    return Classes(kinds[0], bool(config.get("from_logits", False)))
