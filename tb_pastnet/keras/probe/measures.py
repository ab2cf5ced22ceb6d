"""The measures of `format.function_change` in TensorFlow: float64 sums, on the outputs' device.

Whether an output predicts classes depends on its activation, or else on the compiled loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.core.names import snake_case

_BINARY = {
    "categorical_crossentropy": False,
    "sparse_categorical_crossentropy": False,
    "categorical_focal_crossentropy": False,
    "binary_crossentropy": True,
    "binary_focal_crossentropy": True,
}
"""Crossentropies, and whether each element is a separate decision."""


class Classes(NamedTuple):
    """How an output predicts classes.

    Its last axis lists the classes, or each element is a separate decision between two. Each row
    along the last axis, or each element, counts as a sample.
    """

    binary: bool  # each element is a separate decision
    logits: bool  # not probabilities yet


_SOFTMAX, _SIGMOID = Classes(binary=False, logits=False), Classes(binary=True, logits=False)


class Pair(NamedTuple):
    """The outputs at one place: numeric tensors that count as one; a single one may decide."""

    current: Sequence[tf.Tensor]
    past: Sequence[tf.Tensor]
    classes: Classes | None = None


def changes(pairs: Sequence[Pair]) -> tf.Tensor:
    """How far outputs are from the past ones: `MEASURES`, float64 (places, 4).

    NaN: all if an output isn't finite, the last two without classes.
    """
    # All places together: networks have hundreds, and the graph has to be compiled.
    norm, past_norm, delta, product = tf.unstack(
        tf.stack([_sums(pair.current, pair.past) for pair in pairs]), axis=1
    )
    zero, unit, nan = (tf.constant(value, tf.float64) for value in (0.0, 1.0, float("nan")))
    relative = tf.where(delta > 0, delta / past_norm, zero)
    cosine = tf.where((norm > 0) | (past_norm > 0), zero, unit)
    cosine = tf.where((norm > 0) & (past_norm > 0), product / norm / past_norm, cosine)
    decided = [
        (nan, nan)
        if pair.classes is None
        else _decided(pair.current[0], pair.past[0], pair.classes)
        for pair in pairs
    ]
    values = tf.stack([relative, cosine, *map(tf.stack, zip(*decided, strict=True))], axis=1)
    return tf.where(tf.math.is_finite(norm + past_norm)[:, None], values, nan)


def _sums(current: Sequence[tf.Tensor], past: Sequence[tf.Tensor]) -> tf.Tensor:
    """Norms of both and of their difference, and the product; non-finite values propagate."""
    y, y_past = _row(current), _row(past)
    if any(tensor.dtype == tf.float64 for tensor in current):
        # Squares of large float64 values overflow; no measure depends on the scale.
        largest = tf.reduce_max(tf.abs(tf.concat([y, y_past], 0)))
        usable = (largest > 0) & tf.math.is_finite(largest)
        scale = tf.where(usable, largest, tf.ones_like(largest))
        y, y_past = y / scale, y_past / scale
    # This operation doesn't compute the squares first.
    norms = [tf.math.reduce_euclidean_norm(side, [0]) for side in (y, y_past, y - y_past)]
    return tf.stack([*norms, tf.reduce_sum(y * y_past, [0])])


def _row(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    flat = [tf.reshape(tf.cast(tensor, tf.float64), [-1]) for tensor in tensors]
    return flat[0] if len(flat) == 1 else tf.concat(flat, 0)


def _decided(current: tf.Tensor, past: tf.Tensor, classes: Classes) -> tuple[tf.Tensor, tf.Tensor]:
    """Divergence, and the share of predictions that differ."""
    log, log_past = _logarithms(current, classes), _logarithms(past, classes)
    p_past = tf.exp(log_past)
    # NaN stays NaN: it isn't 0.
    terms = tf.where(tf.equal(p_past, 0), tf.zeros_like(p_past), p_past * (log_past - log))
    divergence = tf.reduce_mean(tf.reduce_sum(terms, -1))
    differ = tf.not_equal(_decision(current, classes), _decision(past, classes))
    return divergence, tf.reduce_mean(tf.cast(differ, tf.float64))


def _logarithms(output: tf.Tensor, classes: Classes) -> tf.Tensor:
    """Logarithms of the probabilities (…, classes)."""
    y = tf.cast(output, tf.float64)
    if classes.binary:
        sides = (tf.math.log_sigmoid(y), tf.math.log_sigmoid(-y))
        if not classes.logits:
            sides = (tf.math.log(y), tf.math.log1p(-y))
        return tf.stack(sides, -1)
    if classes.logits:
        return tf.nn.log_softmax(y)
    # As in Keras: in half precision they don't add up to 1.
    return tf.math.log(y) - tf.math.log(tf.reduce_sum(y, -1, keepdims=True))


def _decision(output: tf.Tensor, classes: Classes) -> tf.Tensor:
    if classes.binary:
        return tf.cast(output, tf.float64) > (0.0 if classes.logits else 0.5)
    return tf.argmax(output, -1)


def classes_of(layers: Iterable[keras.layers.Layer], loss: object) -> Classes | None:
    """How an output of these layers, compiled with a loss, predicts classes; None if it doesn't.

    It does if it has a softmax or sigmoid, whatever the loss is, or else with a crossentropy. The
    classes are along the last axis: a softmax over another axis doesn't count.
    """
    for layer in layers:
        classes = _by_activation(layer)
        if classes is not None:
            return classes
    return _by_loss(loss)


def loss_of(model: object, index: int, names: Sequence[str], count: int) -> Any:
    """The loss of one of `count` outputs, as passed to `compile`; None if there is none."""
    loss = getattr(model, "loss", None) if getattr(model, "compiled", False) else None
    if isinstance(loss, Mapping) and any(name in loss for name in names):
        return next(loss[name] for name in names if name in loss)
    if not isinstance(loss, Mapping | list | tuple):
        return loss
    flat = tf.nest.flatten(loss)
    return flat[index] if len(flat) == count else None


def _by_activation(layer: keras.layers.Layer) -> Classes | None:
    if isinstance(layer, keras.layers.RNN):
        return None  # its activation isn't the last operation
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
