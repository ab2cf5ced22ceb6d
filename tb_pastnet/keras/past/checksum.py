"""Checksums of values: small numbers that change with them."""

from __future__ import annotations

import tensorflow as tf

ACROSS = 1024
"""Places in a row of what a checksum is summed of."""


def checksum(value: tf.Tensor) -> tf.Tensor:
    """A number from 0 on that changes with the bits of float32 or float64 and with their order.

    Whole numbers are summed, so it is the same eagerly, in a graph and under XLA. By chance two
    values have the same one in one of 2^63 cases.

    Example:
        >>> a, b = (checksum(tf.constant(pair)) for pair in ([1.0, 2.0], [2.0, 1.0]))
        >>> bool(a == b)
        False
    """
    flat = tf.reshape(value, [-1])
    cut = flat.shape[0] - flat.shape[0] % (2 * ACROSS)
    # Two float32 are read as one number: no copy is made.
    pair = () if value.dtype == tf.float64 else (2,)
    blocks = _spread(tf.bitcast(tf.reshape(flat[:cut], [-1, ACROSS, *pair]), tf.int64))
    if value.dtype == tf.float64:
        rest = _spread(tf.bitcast(flat[cut:], tf.int64))
    else:
        rest = tf.cast(tf.bitcast(flat[cut:], tf.int32), tf.int64)
    # Each place counts with an odd factor of its own.
    total = (
        _weighed(tf.reduce_sum(blocks, 1), 0, 2 * ACROSS)
        + _weighed(tf.reduce_sum(blocks, 0), 1, 2)
        + _weighed(rest, 2 * cut + 1, 2)
    )
    return tf.bitwise.bitwise_and(total, tf.int64.max)


def _spread(bits: tf.Tensor) -> tf.Tensor:
    """Lets the highest bit count lower down too: else two signs that flip would cancel out."""
    return bits + tf.bitwise.right_shift(bits, tf.constant(32, tf.int64))


def _weighed(numbers: tf.Tensor, first: int, step: int) -> tf.Tensor:
    factors = tf.range(first, first + step * numbers.shape[0], step, tf.int64)
    return tf.reduce_sum(numbers * factors)
