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


class Pair(NamedTuple):
    """The outputs at one place.

    Attributes:
        current: numeric tensors; several count as one.
        past: as many of the same shapes.
        classes: of a single output; None where it doesn't decide.
    """

    current: Sequence[Any]
    past: Sequence[Any]
    classes: Classes | None = None


def changes(pairs: Sequence[Pair]) -> Any:
    """How far outputs are from the past ones.

    Args:
        pairs: at least one place.

    Returns:
        float64 (places, 4), in the order of `core.function_change.MEASURES`. NaN: all where an
        output isn't finite, the last two without classes.

    Example:
        >>> y, before = tf.constant([[3.0, 4.0]]), tf.constant([[3.0, 0.0]])
        >>> changes([Pair([y], [before])]).numpy()[0, :2].round(3).tolist()
        [1.333, 0.6]
        >>> logits = Classes(binary=False, logits=True)
        >>> changes([Pair([y], [before], logits)]).numpy()[0, 3].item()
        1.0
    """
    # All places together: networks have hundreds, and the graph has to be compiled.
    norm, before, delta, product = tf.unstack(
        tf.stack([_sums(*pair[:2]) for pair in pairs]), axis=1
    )
    zero, one, nan = (tf.constant(value, tf.float64) for value in (0.0, 1.0, float("nan")))
    relative = tf.where(delta > 0, delta / before, zero)
    both, either = (norm > 0) & (before > 0), (norm > 0) | (before > 0)
    cosine = tf.where(both, product / norm / before, tf.where(either, zero, one))
    decided = [
        (nan, nan)
        if pair.classes is None
        else _decided(pair.current[0], pair.past[0], pair.classes)
        for pair in pairs
    ]
    values = tf.stack([relative, cosine, *map(tf.stack, zip(*decided, strict=True))], axis=1)
    return tf.where(tf.math.is_finite(norm + before)[:, None], values, nan)


def _sums(current: Sequence[Any], past: Sequence[Any]) -> Any:
    """Norms of both and of their difference, and the product; what isn't finite shows in them."""
    y, before = _row(current), _row(past)
    if any(one.dtype == tf.float64 for one in current):
        y, before = _scaled(y, before)
    # This operation doesn't make the squares first.
    norms = [tf.math.reduce_euclidean_norm(side, [0]) for side in (y, before, y - before)]
    return tf.stack([*norms, tf.reduce_sum(y * before, [0])])


def _row(tensors: Sequence[Any]) -> Any:
    flat = [tf.reshape(tf.cast(one, tf.float64), [-1]) for one in tensors]
    return flat[0] if len(flat) == 1 else tf.concat(flat, 0)


def _scaled(y: Any, before: Any) -> tuple[Any, Any]:
    # Squares of large float64 values overflow; no measure depends on the scale.
    largest = tf.reduce_max(tf.abs(tf.concat([y, before], 0)))
    usable = (largest > 0) & tf.math.is_finite(largest)
    scale = tf.where(usable, largest, tf.ones_like(largest))
    return y / scale, before / scale


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
