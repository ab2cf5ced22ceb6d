"""Variables in the replicas of a tf.distribute.Strategy; the worker that writes, and agreement."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any, TypeVar

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.types import Tensor, Variable

Made = TypeVar("Made")

PATIENCE = 300.0
"""Seconds in which all workers have to call the same command."""

_CHIEFS = (None, "", "chief", "master")


def outside_strategy(make: Callable[[], Made]) -> Made:
    """Makes variables outside of `strategy.scope()`: one each, no worker waits."""
    if not tf.distribute.has_strategy():
        return make()
    # There is no other public way out of a scope: a new thread is in none.
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(make).result()


def scope_of(variable: tf.Variable) -> AbstractContextManager[Any]:
    """The scope for variables of the same distribution."""
    strategy = getattr(variable, "distribute_strategy", None)
    return nullcontext() if strategy is None else strategy.scope()


def differs(variable: tf.Variable) -> bool:
    """Whether a tf.Variable has a different value in each replica, summed when it is read."""
    if not isinstance(variable, tf.distribute.DistributedValues):
        return False
    return bool(variable.synchronization == tf.VariableSynchronization.ON_READ)


def copies(variable: tf.Variable) -> tuple[tf.Variable, ...]:
    """All copies that a strategy has made of a tf.Variable; or itself."""
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


def reader(variable: Variable) -> Callable[[], Tensor]:
    """Reads a variable eagerly, only by its operation: the rest of a read takes longer."""
    first = primary(variable)
    if not hasattr(first, "handle"):
        return lambda: tf.convert_to_tensor(variable)
    return partial(tf.raw_ops.ReadVariableOp, resource=first.handle, dtype=first.dtype)


def host(tensor: Tensor) -> npt.NDArray[Any]:
    """The array of a tensor, without a copy if possible."""
    try:
        return np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError):
        return np.asarray(tensor.numpy())


def replicated() -> bool:
    """Whether this is one of several replicas that run the same code."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)


def writes(variables: Iterable[Any]) -> bool:
    """Whether this process is the one that writes a log of some variables: the chief.

    Of the workers of one strategy that is the one with task "chief", or worker 0 without one, as in
    TensorFlow itself. A process without other workers always writes.
    """
    return all(map(_is_chief, _resolvers(variables)))


def workers(variables: Iterable[Any]) -> int:
    """How many processes of one strategy train some variables."""
    clusters = (resolver.cluster_spec() for resolver in _resolvers(variables))
    kinds = ("chief", "master", "worker")
    counts = (sum(len(spec.as_dict().get(kind, ())) for kind in kinds) for spec in clusters)
    return max(counts, default=1)


def _resolvers(variables: Iterable[Any]) -> list[Any]:
    strategies = (getattr(variable, "distribute_strategy", None) for variable in variables)
    distinct = {id(each): each for each in strategies}
    resolvers = (getattr(each, "cluster_resolver", None) for each in distinct.values())
    return [resolver for resolver in resolvers if resolver is not None]


def check_agreed(variable: Variable, subject: str, *masks: Any) -> None:
    """Waits for the other workers of a variable, and compares the masks they are about to set."""
    strategy = getattr(variable, "distribute_strategy", None)
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    digest = hashlib.blake2b(subject.encode(), digest_size=8)
    for mask in masks:
        digest.update(np.packbits(mask).tobytes())
    own = int.from_bytes(digest.digest(), "little", signed=True)
    try:
        gathered = _gather(strategy, PATIENCE)(tf.constant(own, tf.int64))
        prints = strategy.experimental_local_results(gathered)[0].numpy().tolist()
    except tf.errors.OpError as error:
        raise InvalidArgument(
            f"Could not set {subject}: expected all workers to do so within {PATIENCE:.0f} s, got "
            f"no answer ({type(error).__name__}). Change masks in every worker."
        ) from error
    if len(set(prints)) > 1:
        raise InvalidArgument(
            f"Could not set {subject}: expected the same in all workers, got {len(set(prints))} "
            f"different ones in {len(prints)} replicas. Use the same seed for masks in every "
            f"worker."
        )


def _is_chief(resolver: Any) -> bool:
    kind = resolver.task_type
    if kind == "worker":
        alone = not {"chief", "master"} & set(resolver.cluster_spec().jobs)
        return alone and resolver.task_id == 0
    return kind in _CHIEFS


@lru_cache(maxsize=1)
def _gather(strategy: tf.distribute.Strategy, patience: float) -> Callable[[Any], Any]:
    """Sends a number of each replica to all, in one order; compiled, which is 30 times faster."""
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=patience)

    def replica(number: Tensor) -> Any:
        # Only an operation of the replica has its device.
        own = tf.identity(number)[tf.newaxis]
        return tf.distribute.get_replica_context().all_gather(own, axis=0, options=options)

    gathered: Callable[[Any], Any] = tf.function(
        lambda number: strategy.run(replica, (number,)), autograph=False
    )
    return gathered
