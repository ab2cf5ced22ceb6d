"""Networks whose variables a tf.distribute.Strategy keeps on several devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import tf_variable


def primary(variable: keras.Variable | tf.Variable) -> Any:
    """The variable itself, or the first of its copies, which are all equal.

    Raises:
        InvalidArgument: its copies differ until they are read.
    """
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


def replicated() -> bool:
    """Whether this is one of several replicas that run the same."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)


def refuse_copies(name: str, past: Iterable[tf.Variable]) -> None:
    """Refuses shadow variables of a network that a strategy has copied.

    Raises:
        InvalidArgument: they were made within `strategy.scope()`.
    """
    if any(isinstance(shadow, tf.distribute.DistributedValues) for shadow in past):
        raise InvalidArgument(
            f"Could not make a past network of {name}: expected one copy of its variables, got "
            f"one a replica. Make it, or its PastVariables, outside of strategy.scope()."
        )
