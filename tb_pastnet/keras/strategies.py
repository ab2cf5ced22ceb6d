"""Variables under a tf.distribute.Strategy, which keeps some of them once for each replica."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import tf_variable

Made = TypeVar("Made")


def outside_strategy(make: Callable[[], Made]) -> Made:
    """Makes variables as outside of `strategy.scope()`: one each, and no other worker waits for it.

    Example:
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        >>> with strategy.scope():
        ...     made = outside_strategy(lambda: tf.Variable(1.0)), tf.Variable(1.0)
        >>> [isinstance(variable, tf.distribute.DistributedValues) for variable in made]
        [False, True]
    """
    if not tf.distribute.has_strategy():
        return make()
    # There is no other public way out of a scope: a thread enters none of those that others are in.
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(make).result()


def scope_of(variable: tf.Variable) -> AbstractContextManager[Any]:
    """Where variables of the same distribution are made."""
    strategy = getattr(variable, "distribute_strategy", None)
    return nullcontext() if strategy is None else strategy.scope()


def differs(variable: tf.Variable) -> bool:
    """Whether a tf.Variable has another value in each replica, which are summed when it is read."""
    if not isinstance(variable, tf.distribute.DistributedValues):
        return False
    return bool(variable.synchronization == tf.VariableSynchronization.ON_READ)


def copies(variable: tf.Variable) -> tuple[tf.Variable, ...]:
    """Of a tf.Variable, all that a strategy has made of it; or itself."""
    if not isinstance(variable, tf.distribute.DistributedValues):
        return (variable,)
    return tuple(variable.distribute_strategy.experimental_local_results(variable))


def primary(variable: keras.Variable | tf.Variable) -> Any:
    """The variable itself, or the first of its copies, which are all equal."""
    inner = tf_variable(variable)
    if not isinstance(inner, tf.distribute.DistributedValues):
        return variable
    if differs(inner):
        raise InvalidArgument(
            f"Could not keep the past of {inner.name!r}: expected a variable that is equal in all "
            f"replicas, got one that is summed up when it is read. Make it without "
            f"synchronization=ON_READ."
        )
    return copies(inner)[0]


def replicated() -> bool:
    """Whether this is one of several replicas that run the same."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)
