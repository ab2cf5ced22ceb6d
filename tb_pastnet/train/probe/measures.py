"""The measures of `core.function_change` in TensorFlow: float64 sums, where the outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class Classes(NamedTuple):
    """How an output decides between classes.

    Its last axis lists the classes, or each element is a decision of its own between two. Each
    row along the last axis, or each element, counts as a sample.

    Attributes:
        binary: whether each element decides on its own.
        logits: whether it isn't probabilities yet.
    """

    binary: bool
    logits: bool


def change(current: Sequence[Any], past: Sequence[Any], classes: Classes | None = None) -> Any:
    """How far outputs are from the past ones.

    Args:
        current: numeric tensors; several count as one.
        past: as many of the same shapes.
        classes: of a single output; None where it doesn't decide.

    Returns:
        float64 (4,), in the order of `core.function_change.MEASURES`. NaN: all where an output
        isn't finite, the last two without classes.

    Example:
        >>> y, before = tf.constant([[3.0, 4.0]]), tf.constant([[3.0, 0.0]])
        >>> change([y], [before]).numpy()[:2].round(3).tolist()
        [1.333, 0.6]
        >>> change([y], [before], Classes(binary=False, logits=True)).numpy()[3].item()
        1.0
    """
    ys, befores = _doubles(current, past)
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(y)) for y in (*ys, *befores)])
    pairs = list(zip(ys, befores, strict=True))
    norm, before = (tf.sqrt(_total([y * y for y in side])) for side in (ys, befores))
    delta = tf.sqrt(_total([tf.square(y - b) for y, b in pairs]))
    one, nan = tf.ones((), tf.float64), tf.constant(float("nan"), tf.float64)
    relative = tf.where(delta > 0, delta / before, 0 * one)
    product = _total([y * b for y, b in pairs]) / norm / before
    zeros = tf.where((norm > 0) | (before > 0), 0 * one, one)
    cosine = tf.where((norm > 0) & (before > 0), product, zeros)
    decided = (nan, nan) if classes is None else _decided(current[0], past[0], classes)
    return tf.where(finite, tf.stack([relative, cosine, *decided]), nan)


def _doubles(current: Sequence[Any], past: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    ys, befores = ([tf.cast(y, tf.float64) for y in side] for side in (current, past))
    if all(y.dtype != tf.float64 for y in current):
        return ys, befores
    # Squares of large float64 values overflow; none of the measures depends on the scale.
    largest = [tf.reduce_max(tf.abs(y)) for y in (*ys, *befores) if y.shape.num_elements() != 0]
    scale = tf.reduce_max(largest) if largest else tf.ones((), tf.float64)
    scale = tf.where((scale > 0) & tf.math.is_finite(scale), scale, tf.ones_like(scale))
    return [y / scale for y in ys], [y / scale for y in befores]


def _total(values: Sequence[Any]) -> Any:
    return tf.add_n([tf.reduce_sum(value) for value in values])


def _decided(current: Any, past: Any, classes: Classes) -> tuple[Any, Any]:
    """Divergence, and the share of decisions that differ."""
    log, log_before = _logarithms(current, classes), _logarithms(past, classes)
    before = tf.exp(log_before)
    # NaN stays NaN: it isn't 0.
    terms = tf.where(tf.equal(before, 0), tf.zeros_like(before), before * (log_before - log))
    divergence = tf.reduce_mean(tf.reduce_sum(terms, -1))
    differ = tf.not_equal(_decision(current, classes), _decision(past, classes))
    return divergence, tf.reduce_mean(tf.cast(differ, tf.float64))


def _logarithms(output: Any, classes: Classes) -> Any:
    """Logarithms of the probabilities (…, classes)."""
    y = tf.cast(output, tf.float64)
    if classes.binary:
        sides = (tf.math.log_sigmoid(y), tf.math.log_sigmoid(-y))
        if not classes.logits:
            sides = (tf.math.log(y), tf.math.log1p(-y))
        return tf.stack(sides, -1)
    if classes.logits:
        return tf.nn.log_softmax(y)
    # As Keras does: of half precision they don't add up to 1.
    return tf.math.log(y) - tf.math.log(tf.reduce_sum(y, -1, keepdims=True))


def _decision(output: Any, classes: Classes) -> Any:
    if classes.binary:
        return tf.cast(output, tf.float64) > (0.0 if classes.logits else 0.5)
    return tf.argmax(output, -1)
