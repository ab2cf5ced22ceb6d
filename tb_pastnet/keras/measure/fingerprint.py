"""The fingerprint of `core.fingerprint` by operations of TensorFlow."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.core import fingerprint
from tb_pastnet.core.axes import ChannelAxis

_PIECE = 1 << 21
"""Words that are taken at once: they are 16 MiB as int64, and so are their products."""

_WORDS = {1: tf.int8, 2: tf.int16}


def fingerprints(value: Any, axis: ChannelAxis) -> Any:
    """The fingerprint of each channel of a tensor or variable, on its device.

    Args:
        value: of a known shape and any dtype but float8, whose bits TensorFlow doesn't show.
        axis: how it splits into channels.

    Returns:
        A tensor, uint64 (channels,), see `core.fingerprint.fingerprints`.
    """
    values, axes = tf.reshape(value, axis.view), len(axis.axes)
    shape = [axis.view[at] for at in axis.order]
    each = -(-values.dtype.size // 4)
    sums: dict[tuple[int, ...], Any] = {}  # of consecutive channels
    for box in fingerprint.boxes(shape, range(len(shape)), _PIECE // each):
        factors = fingerprint.factors((*shape[axes:], each), (*box[axes:], slice(0, each)))
        piece = values[tuple(box[axis.order.index(at)] for at in range(len(shape)))]
        words = tf.reshape(_words_of(tf.transpose(piece, axis.order)), (-1, len(factors)))
        found = tf.reduce_sum(tf.cast(words, tf.int64) * factors, axis=1)
        first = tuple(part.start for part in box[:axes])
        sums[first] = found + sums.get(first, 0)
    none = tf.zeros(axis.channels, tf.int64)
    return tf.bitcast(tf.concat([*sums.values()], 0) if sums else none, tf.uint64)


def _words_of(piece: Any) -> Any:
    if piece.dtype == tf.bool:
        return tf.cast(piece, tf.int8)
    return tf.bitcast(piece, _WORDS.get(piece.dtype.size, tf.int32))
