"""Learning rates, from what a user of a graph has at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.types import RateSource
from tb_pastnet.v1.graph.session import GraphSession


def rate_in(site: GraphSession, source: RateSource) -> Callable[[int], float]:
    """Makes a function of the step that gives the learning rate.

    Raises:
        InvalidArgument: it is something else.

    Example:
        >>> with tf.Graph().as_default(), tf.Session().as_default():
        ...     rate_in(GraphSession(), 2 * tf.constant(0.25))(7)
        0.5
    """
    if source is None:
        return lambda _: float("nan")
    if isinstance(source, int | float):
        return lambda _: float(source)
    if callable(source) and not hasattr(source, "dtype"):
        return lambda _: float(source())
    try:
        read = site.fetch(lambda: _scalar(source))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not record the learning rate: expected a number, a scalar tensor or variable "
            f"of the graph, or a function, got {source!r:.80}. An optimizer doesn't tell its rate: "
            f"pass what you gave it."
        ) from error
    return lambda _: float(read())


def _scalar(source: RateSource) -> Any:
    value = tf.convert_to_tensor(source)
    if value.dtype == tf.string:
        raise TypeError(value.dtype)
    return tf.reshape(tf.cast(value, tf.float32), ())
