"""Variables of our own, which no tf.distribute.Strategy shall copy."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import tensorflow as tf

Made = TypeVar("Made")


def outside_strategy(make: Callable[[], Made]) -> Made:
    """Makes variables as outside of `strategy.scope()`: one each, and no other worker waits for it.

    Example:
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        >>> with strategy.scope():
        ...     made = outside_strategy(lambda: tf.Variable(1.0)), tf.Variable(1.0)
        >>> [isinstance(one, tf.distribute.DistributedValues) for one in made]
        [False, True]
    """
    if not tf.distribute.has_strategy():
        return make()
    # There is no other public way out of a scope: a thread enters none of those that others are in.
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(make).result()
