"""Networks whose variables a tf.distribute.Strategy keeps on several devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import tf_variable


def primary(variable: Any) -> Any:
    """The variable itself, or the first of its copies, which are all equal.

    Args:
        variable: a keras.Variable or a tf.Variable.

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


def differs(variable: Any) -> bool:
    """Whether a tf.Variable has another value in each replica, which are summed when it is read."""
    if not isinstance(variable, tf.distribute.DistributedValues):
        return False
    return bool(variable.synchronization == tf.VariableSynchronization.ON_READ)


def copies(variable: Any) -> tuple[Any, ...]:
    """Of a tf.Variable, all that a strategy has made of it; or itself."""
    if not isinstance(variable, tf.distribute.DistributedValues):
        return (variable,)
    made: tuple[Any, ...] = variable.distribute_strategy.experimental_local_results(variable)
    return made


def replicated() -> bool:
    """Whether this is one of several replicas that run the same."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)


def refuse_copies(name: str, past: Iterable[Any]) -> None:
    """Refuses past values that a strategy has copied, as it does within its scope.

    Args:
        name: of the network.
        past: its shadow variables.

    Raises:
        InvalidArgument: they were made within `strategy.scope()`.
    """
    if any(isinstance(one, tf.distribute.DistributedValues) for one in past):
        raise InvalidArgument(
            f"Could not make a past network of {name}: expected one copy of its variables, got "
            f"one a replica. Make it, or its PastVariables, outside of strategy.scope()."
        )
