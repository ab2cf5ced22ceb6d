"""Records a TF1-style graph while a MonitoredTrainingSession trains it."""

from __future__ import annotations

import os
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.weights import AxisOverrides
from tb_pastnet.keras.types import RateSource, Session
from tb_pastnet.record import schedule
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.overhead_timer import OverheadTimer, metered
from tb_pastnet.v1.graph.layers import Chosen
from tb_pastnet.v1.masks.graph_masks import Masks
from tb_pastnet.v1.recorder import Recorder


class RecorderHook(tf.train.SessionRunHook):
    """Records the steps of a MonitoredTrainingSession, by its global step.

    Losses and weights are bit-identical with and without it. Where the session is made anew after a
    failure, or from a checkpoint, a new lineage goes on at the step that was restored.

    Args:
        logdir: the run's directory.
        variables: as of `pastnet.v1.Recorder`, which is made when the session begins; and so are
            the others.
        every: a record is due where `global step // every` grows.
        past: what it is compared with; see there.
        channel_axis: corrections of channel axes by name.
        learning_rate: a number, a tensor, a variable, or a function without arguments.
        masks: each change of them is recorded when it happens.
        audit: whether each record compares what the masks hold bitwise with what it was.
        budget: a share of the training's time that recording may take.

    Attributes:
        recorder: the Recorder, None before the session begins.

    Raises:
        InvalidArgument: `every`, `past` or `budget` can't be used. What concerns the graph is
            checked when the session begins.

    Example:
        >>> import tempfile
        >>> with tf.Graph().as_default():
        ...     kernel = tf.get_variable("dense/kernel", initializer=tf.ones((3, 2)))
        ...     step = tf.train.get_or_create_global_step()
        ...     optimizer = tf.train.GradientDescentOptimizer(0.5)
        ...     train = optimizer.minimize(tf.reduce_sum(kernel), step)
        ...     hook = RecorderHook(tempfile.mkdtemp(), every=1, learning_rate=0.5)
        ...     with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        ...         for _ in range(3):
        ...             session.run(train)
        >>> hook.recorder.last_step
        3
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        variables: Chosen = None,
        every: int = 10,
        past: str | int = "previous",
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        masks: Masks | None = None,
        audit: bool = True,
        budget: float | None = None,
    ) -> None:
        schedule.check(every, past, budget)
        self.recorder: Recorder | None = None
        self._settings = logdir, variables, every, past, channel_axis, learning_rate, masks, audit
        self._budget = budget
        self._step: Any = None
        self._failures = Failures()

    def begin(self) -> None:
        """Builds the ops."""
        self._step = tf.train.get_global_step()
        if self._step is None:
            raise InvalidArgument(
                "Could not record a session: expected a global step in its graph, got none. Call "
                "tf.train.get_or_create_global_step(), and pass it to minimize()."
            )
        self.recorder = Recorder(*self._settings, budget=self._budget)

    def after_create_session(self, session: Session, coord: Any) -> None:
        """Takes the first past values, or begins a new lineage."""
        self._tell(session, begin=True)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Records where that is due."""
        self._tell(run_context.session, begin=False)

    def end(self, session: Session) -> None:
        """Writes what waits, and closes the log."""
        if self.recorder is not None:
            self.recorder.close(session=session)

    @property
    def _timer(self) -> OverheadTimer | None:
        return None if self.recorder is None else self.recorder.meter

    @metered()
    def _tell(self, session: Session, *, begin: bool) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        try:
            step = int(session.run(self._step))
        except Exception as error:
            self._failures.add("Could not read the global step", error)
            return
        if begin:
            recorder.restart(step, session)
        elif step != recorder.last_step:
            # Else it made no update, as an evaluation does.
            recorder.record(step, session)
