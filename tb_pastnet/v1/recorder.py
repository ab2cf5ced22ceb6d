"""Records a TF1-style graph in the user's own loop, or in a MonitoredTrainingSession."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.core.arguments import answered, names_of
from tb_pastnet.core.checks import check_rate
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import called_functions, needed
from tb_pastnet.keras.keras_source import KerasSource
from tb_pastnet.keras.model.weights import AxisOverrides
from tb_pastnet.keras.types import RateSource
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.masks.commands import wrong_masks
from tb_pastnet.record.options import Options, TrainerOptions
from tb_pastnet.record.overhead_timer import OverheadTimer, metered
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.v1.graph.layers import Chosen, network_in
from tb_pastnet.v1.graph.session import GraphSession
from tb_pastnet.v1.graph.writes import written
from tb_pastnet.v1.masks.graph_audit import GraphAudit
from tb_pastnet.v1.masks.graph_masks import Masks


@answered
class Recorder(Recording):
    """Records per channel how far a graph's variables are from their past values, for the tab.

    It works like `pastnet.Recorder`, with the same log format. Its ops are built at once, so make
    it before the graph is finalized, but after the network is built: TensorFlow derives the seed of
    a random op from the number of ops before it. Past values are variables in no collection, which
    no Saver saves. Begin with `restart(step)` when the variables have their values. After
    construction nothing here raises into training or changes a value: failures are logged once per
    cause, and counted. Methods take the session in which the variables have their values; None: the
    default session.

    Args:
        logdir: the run's directory, local or on one of TensorFlow's file systems.
        every: a record is due when `step // every` grows, at the first step, and at the last if
            `expect_end` announces it.
        past: what weights are compared with: "previous" (one step before), "record" (the previous
            record), "epoch" (the last call of `sync`), "initial" (at `restart`), or k (k steps
            before).
        variables: the exact name of a scope; names, patterns or variables; a mapping of names to
            variables. None: all that are trained, and moving averages of their layers.
        channel_axis: corrections of channel axes by name, for example `{"mix/w": 0}`. The default
            comes from the ops that read a variable: MatMul, convolutions, lookups.
        learning_rate: a number, a tensor, a variable, or a function without arguments.
        masks: each change of them is recorded when it happens.
        follows: weights that are moved on purpose by anything but an optimizer, such as a target
            network, as names or patterns, or as a mapping from these to the weights that they
            follow.
        expect: what should happen to weights, such as `{"base.*": "frozen"}`, as for
            `pastnet.Recorder`.
        config: hyperparameters to note in the log, a flat mapping such as `{"lr": 0.1, "seed": 7}`:
            `pastnet.read` and `report --json` give them back.
        audit: whether each record compares weights held by the masks bitwise with their earlier
            values.
        budget: a limit of the recording overhead as a share of training, as for `pastnet.Recorder`.
        on_violation: what to do when held weights have moved: "log", a line for each variable and
            cause, or a function that is called with a list of new violations, or of
            contradictions of `expect`, each with a `text`.
        log: a function that is called with the numbers of each record, a dictionary of floats, and
            its step, like `wandb.log`.
        exit_timeout: seconds that the program waits at its end for a store.
        graph: a tf.Graph; None: that of the masks, or the default graph.

    Raises:
        InvalidArgument: the graph is finalized, there is nothing to record, or `every`, `past`, an
            axis, the learning rate, the masks or `budget` is invalid.
        UnknownName: a name fits no variable, or several.
        UnwritableLog: the log directory can't be made or written.

    Example:
        >>> import tempfile
        >>> import tensorflow.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session().as_default() as session:
        ...     kernel = tf.get_variable("dense/kernel", initializer=tf.ones((3, 2)))
        ...     train = kernel.assign_add(tf.ones((3, 2)))
        ...     recorder = Recorder(tempfile.mkdtemp(), every=1)
        ...     session.run(tf.global_variables_initializer())
        ...     recorder.restart(0)
        ...     for step in range(1, 4):
        ...         _ = session.run(train)
        ...         recorder.record(step)
        ...     recorder.flush()
        True
        >>> recorder.close()
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Chosen = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        masks: Masks | None = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
        graph: tf.Graph | None = None,
    ) -> None:
        check_logdir(logdir)
        options, failures = Options.of(locals()), Failures()
        schedule = options.schedule()
        if not isinstance(masks, Masks | None):
            raise wrong_masks("record masks of a graph", f"a {type(masks).__name__}")
        self._site = GraphSession(graph) if masks is None else masks.site.of(graph)
        self._masks = masks
        # Variables without values in a new session begin in it.
        self._session: Any = lambda: None
        network = network_in(self._site, variables, channel_axis, follows)
        self._origin = cache(network.origin)
        state, audited = None if masks is None else masks.state, None
        if audit and masks is not None:
            compared = GraphAudit(network.weights, masks.state, masks.witness)
            audited = Audit(compared, lambda: state)
        tracker = MaskTracker(network.weights, lambda: state, audited, self._origin, failures)
        rate = rate_in(self._site, learning_rate)
        source = KerasSource(network, rate, schedule.copies, self._site)
        super().__init__(logdir, source, schedule, tracker, failures, options)

    @metered("Could not make a record")
    def record(self, step: int | None = None, session: tf.Session | None = None) -> None:
        """Call this after each update with its number: it makes a record when one is due.

        In a session without a call of `restart`, the first call replaces it.
        """
        # Even at other steps, because masks may have changed.
        with self._site.using(session), self._site.at_once():
            if step is None or self._site.current is self._session():
                super().record(step)
            else:
                super().restart(step)

    @metered("Could not begin a new lineage")
    def restart(self, initial_step: int, session: tf.Session | None = None) -> None:
        """Begins at the step of the current values: a new lineage if training went back."""
        with self._site.using(session):
            super().restart(initial_step)

    @metered("Could not copy the past values")
    def sync(self, session: tf.Session | None = None) -> None:
        """Makes the current values the past ones, for `past="epoch"`.

        Call it after each epoch, after the `record` of its last step.
        """
        with self._site.using(session):
            super().sync()

    @metered("Could not close the log")
    def close(self, timeout: float | None = None, session: tf.Session | None = None) -> None:
        """Writes waiting records, within `timeout` seconds, and the final account; also at exit."""
        with self._site.using(session):
            super().close(timeout)

    def _look_last(self) -> None:
        """See `Recording`: as long as the session is open."""
        session = self._site.current
        if session is not None and session is self._session() and not session._closed:
            super()._look_last()

    def _restart(self, step: int) -> None:
        with self._site.at_once():
            if self._masks is not None:
                self._masks.refresh()
            super()._restart(step)
            if self._site.current is not self._session():
                self._copy(0)
                self._session = weakref.ref(self._site.current)
            self._origin()


def rate_in(site: GraphSession, source: RateSource) -> Callable[[int], float]:
    """Makes a function of the step that returns the learning rate; raises InvalidArgument."""
    check_rate(source)
    if source is None:
        return lambda _: float("nan")
    if isinstance(source, int | float):
        return lambda _: float(source)
    if callable(source) and not hasattr(source, "dtype"):
        return lambda _: float(source())
    try:
        with site.building():
            rate = _scalar(source)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            "Could not record the learning rate: expected a number, a scalar tensor or variable "
            f"of the graph, or a function, got {source!r:.80}. The rate can't be read from an "
            "optimizer: pass the one that you gave it."
        ) from error
    operations = needed([rate])
    functions = called_functions(site.graph, operations.values())
    writers = [name for name, each in operations.items() if written(each, functions)]
    if writers:
        raise InvalidArgument(
            "Could not record the learning rate: expected a tensor that only reads, got one that "
            f"needs {writers[0]!r}, so each record would run that. Build the rate outside of "
            "tf.control_dependencies, or pass a function."
        )
    read = site.fetch(lambda: rate)
    return lambda _: float(read())


def _scalar(source: RateSource) -> Any:
    value = tf.convert_to_tensor(source)
    if value.dtype == tf.string:
        raise TypeError(value.dtype)
    return tf.reshape(tf.cast(value, tf.float32), ())


@answered
class RecorderHook(tf.train.SessionRunHook):
    """Records the steps of a MonitoredTrainingSession, by its global step.

    Losses and weights are bit-identical with and without it. If the session is made again after a
    failure, or from a checkpoint, a new lineage continues at the restored step.

    Its arguments are those of `pastnet.v1.Recorder`, which is made when the session begins.

    Attributes:
        recorder: the Recorder, None before the session begins.

    Raises:
        InvalidArgument: `every`, `past` or `budget` is invalid. Arguments that concern the graph
            are checked when the session begins.

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
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Chosen = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        masks: Masks | None = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        self._logdir = check_logdir(logdir)
        self._options = TrainerOptions.of(locals())
        self.recorder: Recorder | None = None
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
        self.recorder = Recorder(self._logdir, **self._options.only(*names_of(type(self))[1:]))
        self.recorder.follow_executions()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Takes the first past values, or begins a new lineage."""
        step = self._step_in(session)
        if self.recorder is not None and step is not None:
            self.recorder.restart(step, session)
            self.recorder.ending.enter()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Makes a record if one is due."""
        session = run_context.session
        step = self._step_in(session)
        # With the same step it made no update, as in an evaluation.
        if self.recorder is not None and step not in (None, self.recorder.last_step):
            self.recorder.record(step, session)
            if self.recorder.alerts.stops:
                run_context.request_stop()

    def end(self, session: tf.Session) -> None:
        """Writes waiting records, and closes the log."""
        if self.recorder is not None:
            self.recorder.ending.leave()
            self.recorder.close(session=session)

    @property
    def _timer(self) -> OverheadTimer | None:
        return None if self.recorder is None else self.recorder.meter

    @metered("Could not read the global step")
    def _step_in(self, session: tf.Session) -> Any:
        return None if self.recorder is None else int(session.run(self._step))
