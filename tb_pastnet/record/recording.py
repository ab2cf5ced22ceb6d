"""The recording loop of all Recorders: when to record, and into which log."""

from __future__ import annotations

import os
import weakref
from typing import TypeVar

from tb_pastnet.core.account import NO_OPTIMIZER_STEP
from tb_pastnet.core.counted import size_text
from tb_pastnet.core.parallel import fork_aware_pid
from tb_pastnet.format.limits import MAX_STEP
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.alerts import Alerts
from tb_pastnet.record.call_guard import CallGuard, guarded
from tb_pastnet.record.ending import TrainingEnd, program_failed
from tb_pastnet.record.expectations import Expectations
from tb_pastnet.record.failures import LOGGER, NO_STEP, NOT_COUNTED, WENT_BACK, Failures, noted
from tb_pastnet.record.lineage import Lineage, Recorded
from tb_pastnet.record.log_arguments import check_logdir
from tb_pastnet.record.mask_tracker import Flags, MaskTracker
from tb_pastnet.record.measuring import Measuring
from tb_pastnet.record.options import Options
from tb_pastnet.record.overhead_timer import COPIES, MASKS, OTHER, metered
from tb_pastnet.record.scalars import Scalars
from tb_pastnet.record.schedule import RULE, Action, Schedule
from tb_pastnet.record.sink import AT_EXIT, Sink
from tb_pastnet.record.source import Probing, Source
from tb_pastnet.record.summary_line import nothing_recorded, say, summary_line

Own = TypeVar("Own", bound="Recording")


class Recording:
    """Follows the steps of a training, and writes a record when one is due.

    Nothing here raises into training or waits for the disk: failures are logged once per cause and
    counted. Of the workers of a strategy, only the chief writes; in the others, whose values are
    the same, nothing is measured, and no method does anything.

    Attributes:
        records: how many were made.
        alerts: the reaction to violations.
        ending: what is known of the end of the training.
        reported: whether `summary` has been shown; else `close` prints it.

    Raises:
        InvalidArgument: `logdir` is no path, or the directory of a lineage; or
            `on_violation="stop"`, and other processes train the same network.
        UnwritableLog: the log directory can't be made or written.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        source: Source,
        schedule: Schedule,
        tracker: MaskTracker,
        failures: Failures,
        options: Options,
        probe: Probing | None = None,
    ) -> None:
        logdir = check_logdir(logdir)
        self._source = source
        self._schedule = schedule
        self.meter = self._timer = schedule.timer
        self._tracker = tracker
        self._measuring = Measuring(source, schedule, tracker, failures, probe)
        self._failures = failures
        self.alerts = Alerts(options.on_violation, failures, source.workers)
        self._expected = Expectations(options.expect, source.network.weights, tracker)
        self._scalars = options.log and Scalars(options.log, source.network, failures)
        self.records = 0
        self._newest = -1  # the step of the newest record of the lineage
        self._guard, self.ending = CallGuard(), TrainingEnd()
        self._begun = self._closed = self._complete = self._refused = False
        self._went_back = self._said = self.reported = False
        # Calls of `record` that followed no step, as far as that is known.
        self._stepless_calls = 0
        self._pid = fork_aware_pid()
        self._writes = source.writes
        if self._writes:
            self._measuring.begin(schedule.last)
            recorded = Recorded(source, schedule, tracker, failures, probe, options)
            self._lineage = Lineage.first(logdir, recorded)
            self._sink = Sink(failures, self.ending, self._lineage.exit_seconds)
            weakref.finalize(self, self._sink.end, float("inf")).atexit = False

    @property
    def notes(self) -> Failures:
        """The failures so far, and how often each occurred."""
        return self._failures

    @property
    def overhead(self) -> Overhead:
        """The recording overhead since this lineage began, without bytes.

        The log has it too: see https://tb-pastnet.github.io/tb_pastnet/benchmarks/overhead.html.
        """
        return self._timer.totals.overhead()

    @property
    def summary(self) -> str:
        """What was recorded, in a line for the terminal; "" if another process reports it."""
        if not self._writes:
            return ""
        home, tracker = self._lineage.run.run, self._tracker
        if not self.records or self._is_stepless:
            steps, every = self._timer.totals.steps, self._schedule.every
            return nothing_recorded(home, steps, every, self._stepless_calls)
        cost = self.overhead
        proven = "; ".join(filter(None, [str(tracker.verified), self._expected.summary]))
        return summary_line(home, self.records, proven, tracker.violations, tracker.sparsity, cost)

    @property
    def last_step(self) -> int | None:
        """The last step that was seen; None before the first."""
        return self._schedule.last

    @property
    def has_ended(self) -> bool:
        """Whether the newest record is one of the end, after that of the last step.

        If training continues, call `restart(last_step)` first.
        """
        return self._newest > (self._schedule.now or 0)

    @property
    def _is_stepless(self) -> bool:
        """Whether `record` was called, but never after a step."""
        return self._stepless_calls > 0 and not self._timer.totals.steps

    @property
    def _idle(self) -> bool:
        """Whether there is nothing to do, or another process does it."""
        return self._closed or not self._writes or fork_aware_pid() != self._pid

    @metered("Could not make a record", attempt="_passed")
    def record(self, step: int | None = None) -> None:
        """Call this after each update: it makes a record when one is due.

        Args:
            step: the number of the update, from 0 to 2 ** 53. Others are counted, and not recorded.
                None: in PyTorch calls that follow an update are counted, in Keras it is the number
                of updates of the optimizer; elsewhere nothing is recorded, which is logged once.
        """
        number = self._next_step() if step is None else step
        if number is None:
            self._failures.add(NOT_COUNTED)
        elif step is not None or number != self.last_step:  # without an update it is the last one
            self.follow(number)

    def _next_step(self) -> int | None:
        """The step of a call of `record` that names none; None if nothing counts."""
        return self._source.updates()

    def _passed(self, step: int | None = None, *, flags: bool = True) -> bool:
        """Moves to a step at which nothing is due, if nothing but its number has changed.

        Args:
            step: of the call; None as for `record`.
            flags: whether to look for frozen and pruned weights, too.
        """
        begun = self._timer.clock()
        if step is None:
            step = self._next_step()
        # Little is asked: this runs at each step. Closed, or in a fork, nothing comes of it.
        schedule = self._schedule
        if type(step) is not int or step >= schedule.quiet_until or self._guard.thread:
            return False
        if not (self._tracker.unchanged(flags=flags) and schedule.passes(step)):
            return False
        self._timer.totals.steps += 1
        self._timer.passed(begun)
        return True

    @guarded("Could not make a record")
    def follow(self, step: int) -> None:
        """What `record` does, for callers that time it themselves: the callback at each step."""
        if self._closed:
            self._refused = True
            self._failures.add("Could not make a record: the Recorder is closed, make a new one")
        if self._idle:
            return
        step = int(step)
        if not 0 <= step <= MAX_STEP:
            self._failures.add(NO_STEP)
            return
        self._schedule.now = step
        try:
            self._advance(step)
        finally:
            if not self._tracker.has_looked():
                self._observe(quick=True)
            self._timer.turn(OTHER)

    @noted("Could not follow the executions")
    def follow_executions(self) -> None:
        """Says that `record` is called after each execution, even if that makes several steps."""
        self._schedule.sees_all = True

    @metered("Could not look at held weights")
    @guarded("Could not look at held weights")
    def observe(self) -> None:
        """Looks at `trainable` flags before an update, in case they changed since the last one.

        `PastNetCallback` calls it at the beginning of each epoch. In your own loop you need it only
        if you set `trainable` without compiling again and want an alert at once. `record` checks
        the flags of layers after each step, those of single variables after each record.
        """
        if not self._idle:
            self._observe()

    @noted("Could not note the last step")
    def expect_end(self, step: int) -> None:
        """Announces the last step of a training, for a record of it."""
        self._schedule.expect_end(int(step))

    @metered("Could not copy the past values")
    @guarded("Could not copy the past values")
    def sync(self) -> None:
        """Makes the current values the past ones, for `past="epoch"`.

        Call it after each epoch, after the `record` of its last step.
        """
        if not self._idle:
            self._copy(self._schedule.sync())

    @metered("Could not begin a new lineage")
    @guarded("Could not begin a new lineage")
    def restart(self, initial_step: int) -> None:
        """Starts a new lineage because training starts again, or goes back to a checkpoint.

        Args:
            initial_step: the step of the current values.
        """
        if not self._idle:
            self._restart(int(initial_step))

    @metered("Could not write records", otherwise=False)
    def flush(self, timeout: float = 5.0, *, closed: bool = False) -> bool:
        """Waits until all records so far are written, those before a restart included.

        A signal handler may call it, even in the middle of `record`.

        Args:
            timeout: seconds to wait at most.
            closed: whether training ends here, as far as is known; the log may still continue.

        Returns:
            True if they are: then they are safe from kill -9. That covers each record whose call
            had returned. Also True in a worker that doesn't write. False if some aren't written yet
            (these are tried again) or were dropped since the last flush (these are counted). After
            `close`, whether all was written by then, and nothing was to be recorded since.
        """
        if self._idle:
            return (self._complete and not self._refused) or not self._writes
        alone = self._guard.run(self._tell_rest, closed=closed)
        written = self._sink.flush(timeout, closed=closed, within=not alone)
        if closed:
            # Until more is recorded, another process may continue the run.
            self._lineage.lock.release()
            self._say_nothing_recorded()
        return written

    @noted("Could not hand over what is left")
    def _tell_rest(self, *, closed: bool) -> None:
        if closed:
            self._look_last()
            if self._newest >= 0:
                self._tell_contradictions(ended=self.ending.normal)
        self._tell_late()
        if closed:
            self._timer.rest()

    @metered("Could not close the log")
    def close(self, timeout: float | None = None) -> None:
        """Records weights that changed after the last record, and writes what waits.

        Called while an exception is handled, it notes that training hasn't ended normally. When the
        program ends, waiting records are written, too. A signal handler may call it, even
        in the middle of `record`: then only what waits is written.

        Args:
            timeout: seconds to wait at most. None: 2, and for a store `exit_timeout`.
        """
        AT_EXIT.discard(self._close_at_exit)
        if self._idle:
            return
        self.ending.look()
        self._guard.run(self._tell_rest, closed=True)
        self._closed = True
        self._tracker.close()
        self._complete = self._sink.close(timeout)
        self._say_nothing_recorded()
        if self._begun:
            self._say_what_was()
        else:
            self._lineage.close()
        self._lineage.lock.release()

    @noted("Could not close the log at the end of the program")
    def close_at_exit(self) -> None:
        """Keeps this Recorder until the program ends, which closes it, or until `close`."""
        AT_EXIT.add(self._close_at_exit)

    def _close_at_exit(self) -> None:
        self.ending.failed = program_failed()
        self.close()

    def _say_what_was(self) -> None:
        """Ends a training with a line in the terminal: not in what the program itself prints."""
        if self.records and not (self.reported or self._is_stepless):
            self.reported = True
            say(self.summary)

    def _say_nothing_recorded(self) -> None:
        is_told = self.records and not self._is_stepless
        if (self._begun or self._stepless_calls) and not (is_told or self._said):
            self._said = True
            LOGGER.warning("%s", self.summary)

    def __enter__(self: Own) -> Own:
        return self

    def __repr__(self) -> str:
        home = self._lineage.run.run if self._writes else "another process writes"
        told = f"every={self._schedule.every}, records={self.records}, last_step={self.last_step}"
        told += f", memory={size_text(self.overhead.memory)!r}"
        return f"{type(self).__name__}({home!r}, {told})"

    def __exit__(self, *error: object) -> None:
        self.ending.failed = any(error)
        self.close()

    def _advance(self, step: int) -> None:
        if self._begun and self._schedule.passes(step):
            self._timer.totals.steps += 1
            self._tell_masks(self._sink, step)
            return
        goes_back = self._schedule.goes_back(step)
        if goes_back or step <= self._newest:
            # The values that this step came from are unknown, so it has nothing to compare with.
            if goes_back and not self._went_back:
                self._went_back = True
                LOGGER.warning(WENT_BACK, step, self._schedule.last)
            self._restart(step)
            return
        if not self._begun:
            start = self._schedule.last
            self._begin(resumed=(step - 1 if start is None else start) > 0)
        self._timer.totals.steps += 1
        action = self._schedule.advance(step)
        try:
            if action.record:
                self._record(self._sink, step, action)
            elif action.thinned:
                self._leave_out(self._sink, step, action)
            else:
                self._tell_masks(self._sink, step)
        finally:
            # Even if no record could be made: the next one needs its past.
            if action.copy is not None and not self._schedule.knows(action.copy):
                self._copy(action.copy)

    def _begin(self, *, resumed: bool) -> None:
        self._lineage.begin(self._sink, resumed=resumed)
        self._begun = True

    def _record(self, sink: Sink, step: int, action: Action, *, announced: bool = False) -> None:
        """Makes a record; `announced`: masks and violations of this step were handed over."""
        self._lineage.lock.take()
        if action.note:
            self._failures.add(action.note)
        if not announced:
            self._tracker.make()
        self._measuring.moved = None
        try:
            sequence = sink.reserve()
            # Before the record in which they are in force, which would be wrong without them.
            if not announced:
                self._tell_masks(sink, step, due=True)
            groups = len(self._lineage.groups)
            record = self._measuring.measure(sequence, step, action, sink, groups)
            if action.copy == action.compare:
                self._schedule.copied(action.compare)
            if not (action.stored or announced or self._measuring.flags_changed):
                self._measuring.leave_out(step, sink, record)
            elif self._measuring.offer(sink, record):
                self.records += 1
                self._newest = step
            elif self._closed:
                self._refused = True
                self._failures.add("Could not make a record: the Recorder was closed meanwhile")
            else:
                self._failures.add("Could not keep up with the records: the queue was full")
        finally:
            if not announced:
                self._tell_violations(sink, step, self._measuring.moved)
            self._source.release()
            self._schedule.finished()
        if self._scalars is not None:
            self._scalars.tell(record, self._tracker, self.overhead)

    def _leave_out(self, sink: Sink, step: int, action: Action) -> None:
        """Leaves out a record, but neither masks nor violations; with these the rule doesn't."""
        self._tracker.make()
        try:
            self._tell_masks(sink, step, due=True)
        finally:
            news = self._tell_violations(sink, step)
            self._source.release()
        if action.thinned == RULE and (news or self._measuring.flags_changed):
            self._record(sink, step, action, announced=True)
        else:
            self._measuring.leave_out(step, sink)

    def _copy(self, number: int) -> None:
        with self._timer.part(COPIES):
            self._source.copy(number)
        self._schedule.copied(number)

    # Each of these turns the clock to its own part; whatever comes next turns it on.

    def _observe(self, *, quick: bool = False) -> None:
        self._timer.turn(MASKS)
        self._tracker.observe(quick=quick)

    def _tell_violations(
        self, sink: Sink, step: int, moved: Flags | None = None, *, due: bool = True
    ) -> bool:
        self._timer.turn(MASKS)
        violations = self._tracker.hand_violations(sink, step, moved, due=due)
        if violations:
            self.alerts.tell(violations)
        if due and self._expected.all:
            self._tell_contradictions()
        return bool(violations)

    @noted("Could not check what is expected")
    def _tell_contradictions(self, *, ended: bool = False) -> None:
        if contradicted := self._expected.check(ended=ended):
            self.alerts.contradict(contradicted)

    def _tell_masks(self, sink: Sink, step: int, *, due: bool = False) -> None:
        self._timer.turn(MASKS)
        self._tracker.hand_masks(sink, step, due=due)

    @noted("Could not look at the weights at the end")
    def _look_last(self) -> None:
        """Records what changed after the last record: by averages, the best weights, more steps."""
        last = self._schedule.last
        if not self._begun and self._stepless_calls:
            self._record_start(max(self._schedule.start or 0, 0))
        if not self._begun or last is None or self._is_stepless:
            return
        step, end = self._schedule.end(self._newest)
        has_records = self._newest >= 0
        if step <= MAX_STEP and has_records and self._source.has_changed(end.compare):
            again = self._measuring.take_back(self._sink, step)
            if again:  # masks were looked at when it was due
                self._tell_violations(self._sink, step, due=False)
            self._record(self._sink, step, end, announced=again)
        else:
            self._tell_violations(self._sink, last, due=False)
            if has_records:
                self.records += self._measuring.end(self._sink, self._newest)
            self._source.release()

    def _record_start(self, step: int) -> None:
        """Records the values of a training that never made a step, and notes that."""
        self._begin(resumed=step > 0)
        self._failures.count(NO_OPTIMIZER_STEP, times=self._stepless_calls)
        self._record(self._sink, step, Action(True, 0, None, None))

    @noted("Could not record masks")
    def _tell_late(self) -> None:
        """Writes the rest: masks that changed after the last step are in force from the next."""
        if self._begun and self._schedule.last is not None:
            step = max(self._schedule.last, self._newest)
            self._tracker.hand_late_violations(self._sink, step)
            self._tell_masks(self._sink, step + 1, due=True)

    def _restart(self, step: int) -> None:
        self.ending.begin()
        if self._begun:
            self._begun = False  # if the next can't be begun yet, the next step begins it
            self._timer.restart()
            self._newest = -1
            self._lineage = self._lineage.next()
            self._tracker.begin()
            self._begin(resumed=step > 0)
        self._measuring.begin(step)
        copy = self._schedule.restart(step)
        if copy is not None:
            self._copy(copy)
