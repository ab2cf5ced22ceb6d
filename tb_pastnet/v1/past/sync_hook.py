"""What a MonitoredTrainingSession does with a past network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow.compat.v1 as tf

from tb_pastnet.core.checks import is_whole
from tb_pastnet.errors import InvalidArgument

if TYPE_CHECKING:
    from tb_pastnet.v1.past.past_graph import PastGraph


class SyncHook(tf.train.SessionRunHook):
    """Syncs a past network every few steps of training, as for a target network.

    After each step that makes the global step pass a multiple of `every`, the past is the network
    of that moment. A session that goes on from a checkpoint keeps to the same steps. For the past
    of one step before use `PastGraph.step()` instead: between two steps, where a hook works, that
    past is the current network.

    Args:
        sync: the operation of `sync_op` or `PastGraph.sync`, or the PastGraph, whose copy it makes.
        every: global steps from sync to sync, at least 1.

    Raises:
        InvalidArgument: `sync` is something else, or `every` isn't a whole number of at least 1.
            In `begin`: the graph has no global step.

    Example:
        >>> from tb_pastnet.v1 import sync_op
        >>> with tf.Graph().as_default():
        ...     weight = tf.get_variable("net/weight", initializer=0.0)
        ...     past = tf.get_variable("past/weight", initializer=0.0)
        ...     hook = SyncHook(sync_op("net", "past"), every=2)
        ...     step = tf.train.get_or_create_global_step()
        ...     train = tf.group(weight.assign_add(1.0), step.assign_add(1))
        ...     with tf.train.MonitoredSession(hooks=[hook]) as session:
        ...         for _ in range(5):
        ...             session.run(train)
        ...         float(session.run(past))
        4.0
    """

    def __init__(self, sync: tf.Operation | PastGraph, every: int = 1) -> None:
        self._sync = getattr(sync, "sync_op", sync)
        self._every = every
        self._global_step: tf.Variable | None = None
        self._last = 0
        if not isinstance(self._sync, tf.Operation):
            raise InvalidArgument(
                f"Could not make a SyncHook: expected the operation of sync_op or a PastGraph, got "
                f"{type(sync).__name__}. Build it with pastnet.v1.sync_op."
            )
        if not is_whole(every) or every < 1:
            raise InvalidArgument(
                f"Could not make a SyncHook: expected every= a whole number of at least 1, got "
                f"{every!r}. Use every=1 to sync after each step."
            )

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step(self._sync.graph)
        if self._global_step is None:
            raise InvalidArgument(
                "Could not sync every few steps: expected a graph with a global step, got none. "
                "Call tf.train.get_or_create_global_step() and pass it to the optimizer's minimize."
            )

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        """Begins to count from the step that the session was made or restored with."""
        self._last = int(session.run(self._global_step))

    def after_run(
        self, run_context: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Syncs where a sync is due."""
        step = int(run_context.session.run(self._global_step))
        if step // self._every > self._last // self._every:
            run_context.session.run(self._sync)
        self._last = step
