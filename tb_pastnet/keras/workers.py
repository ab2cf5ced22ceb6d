"""The workers of a MultiWorkerMirroredStrategy: which one writes, and whether they agree."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.types import Strategy, Tensor, Variable

PATIENCE = 300.0
"""Seconds in which all workers have to call the same command."""

_CHIEFS = (None, "", "chief", "master")


def writes(variables: Iterable[Any]) -> bool:
    """Whether this process is the one that writes a log of some variables: the chief.

    Of the workers of one strategy that is the one whose task is "chief", or worker 0 where there is
    none, as TensorFlow itself has it. A process without other workers always writes.
    """
    strategies = (getattr(variable, "distribute_strategy", None) for variable in variables)
    resolvers = (getattr(strategy, "cluster_resolver", None) for strategy in strategies)
    return all(_is_chief(resolver) for resolver in resolvers if resolver is not None)


def check_agreed(variable: Variable, subject: str, *masks: Any) -> None:
    """Waits for the other workers of a variable, and compares what they are about to set."""
    strategy = getattr(variable, "distribute_strategy", None)
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    try:
        prints = _gathered(strategy, _print(subject, masks))
    except tf.errors.OpError as error:
        raise InvalidArgument(
            f"Could not set {subject}: expected all workers to do so within {PATIENCE:.0f} s, got "
            f"no answer ({type(error).__name__}). Call what changes masks in every worker."
        ) from error
    if len(set(prints)) > 1:
        raise InvalidArgument(
            f"Could not set {subject}: expected the same in all workers, got {len(set(prints))} "
            f"different ones in {len(prints)} replicas. Seed what draws masks alike in every "
            f"worker."
        )


def _is_chief(resolver: Any) -> bool:
    kind = resolver.task_type
    if kind == "worker":
        alone = not {"chief", "master"} & set(resolver.cluster_spec().jobs)
        return alone and resolver.task_id == 0
    return kind in _CHIEFS


def _print(subject: str, masks: Iterable[Any]) -> int:
    digest = hashlib.blake2b(subject.encode(), digest_size=8)
    for mask in masks:
        digest.update(np.packbits(mask).tobytes())
    return int.from_bytes(digest.digest(), "little", signed=True)


@lru_cache(maxsize=1)
def _gather(strategy: Strategy, patience: float) -> Callable[[Any], Any]:
    """Tells all replicas a number of each, in one order; compiled, as that is 30 times faster."""
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=patience)

    def replica(number: Tensor) -> Any:
        # Only an operation of the replica has its device.
        own = tf.identity(number)[tf.newaxis]
        return tf.distribute.get_replica_context().all_gather(own, axis=0, options=options)

    gathered: Callable[[Any], Any] = tf.function(
        lambda number: strategy.run(replica, (number,)), autograph=False
    )
    return gathered


def _gathered(strategy: Strategy, number: int) -> list[int]:
    gathered = _gather(strategy, PATIENCE)(tf.constant(number, tf.int64))
    numbers: list[int] = strategy.experimental_local_results(gathered)[0].numpy().tolist()
    return numbers
