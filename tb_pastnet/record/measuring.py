"""Makes records: statistics of all weights, and other facts of that step."""

from __future__ import annotations

import time
from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import KEPT, MOVED, OF_PAST, TRAINABLE
from tb_pastnet.core.thinning import has_sketch
from tb_pastnet.record.batch import Record
from tb_pastnet.record.failures import Failures, reason_of
from tb_pastnet.record.follow_measures import FollowMeasures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.memory import warn_of_memory
from tb_pastnet.record.overhead_timer import PROBE, RECORDS
from tb_pastnet.record.schedule import Action, Schedule
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.source import Probing, Sketches, Source
from tb_pastnet.record.standing import Standing

Moved = npt.NDArray[np.floating]

_UNKNOWN: Moved = np.array([np.nan])  # of all channels


class Measuring:
    """Measures the records of a recorder, on the training thread.

    Attributes:
        sketched: whether the newest record has a sketch.
        left_out: the step of the newest due record if that is left out, else -1.
        moved: which weights have changed at the record in the making; None: it isn't known.
    """

    def __init__(
        self,
        source: Source,
        schedule: Schedule,
        tracker: MaskTracker,
        failures: Failures,
        probe: Probing | None,
    ) -> None:
        self._source, self._schedule, self._tracker = source, schedule, tracker
        self._failures, self._probe = failures, probe
        self._timer = schedule.timer
        self._probe_reasons: dict[type[Exception], str] = {}
        self._widths = np.array([weight.axis.channels for weight in source.network.weights])
        self._standing = Standing(source, failures)
        self._follows = FollowMeasures(source.network, failures) if source.network.follows else None
        self._has_sketches = bool(source.network.sketched)
        self.sketched = self._begun = False
        self.left_out = -1
        self.moved: npt.NDArray[np.bool_] | None = None
        # What has moved since the last record that was kept, if one since then wasn't.
        self._unkept: Moved | None = None
        # What may change and be trained, at the last record that was kept, and at the newest.
        self._flags: Hashable = None
        self._measured_flags: Hashable = None
        # The newest record, if it was measured and isn't stored.
        self._unstored: Record | None = None

    def begin(self, step: int | None) -> None:
        """Begins a lineage with the current values, of a step if that is known."""
        self._count_memory()
        if not self._begun:
            warn_of_memory(self._source.nbytes, self._tracker.nbytes)
        self._begun = True
        self._standing.begin()
        self._source.forget()
        self._unkept = self._flags = self._unstored = None
        self.left_out = -1
        if self._follows is not None:
            self._follows.begin(step)

    def measure(self, sequence: int, step: int, action: Action, sink: Sink, groups: int) -> Record:
        """Measures a record, and makes the current values the past if the same copy is due.

        Args:
            sequence: its number.
            step: its step.
            action: what is due.
            sink: takes why weights are idle.
            groups: how many groups of weights have their own learning rate.
        """
        self.moved = None
        has_past = action.past_step is not None
        # Before the past values are replaced.
        probes = has_past and self._probe is not None
        probes = probes and sequence % self._schedule.probe_every == 0
        function = self._moved_outputs(action.compare) if probes else None
        with self._timer.part(RECORDS):
            unkept = self._unkept
            # If this fails, the next comparison may not know what has moved until now.
            self._unkept = _UNKNOWN if unkept is None else _either(_UNKNOWN, unkept)
            values = self._source.compare(action.compare, replace=action.copy == action.compare)
            if not has_past:
                values[OF_PAST] = np.nan
            if unkept is not None:
                values[MOVED] = _either(values[MOVED], unkept)
            self._unkept = values[MOVED]
            values[KEPT], free = self._tracker.shares()
            flags = self._source.trainable()
            self._measured_flags = self._tracker.version, tuple(flags)
            values[TRAINABLE] = free * np.array(flags, np.float32).repeat(self._widths)
            rate, of_groups = self._learning_rates(step, groups)
            past_step = step if action.past_step is None else action.past_step
            made = sequence, step, past_step, time.time(), rate, values, function
            follows = None
            if self._follows is not None:
                follows = self._follows.measure(step, self._schedule.start)
            self.sketched = self._has_sketches and (action.last or has_sketch(sequence))
            sketches = self.sketches() if self.sketched else None
            record = Record(*made, sink.thinned, of_groups, follows, sketches)
            self._standing.hand(sink, record)
            self.moved = self._standing.moved
            if sequence & (sequence - 1) == 0:  # now and then: copies are made when first needed
                self._count_memory()
            return record

    def _count_memory(self) -> None:
        self._timer.totals.memory = self._source.nbytes + self._tracker.nbytes

    def offer(self, sink: Sink, record: Record) -> bool:
        """Hands over the newest record; False: it is dropped."""
        moved = record.values[MOVED]
        # If this fails, it isn't known whether the next record has to say that.
        self._unkept = np.where(moved == 1, np.nan, moved)
        if not sink.offer(record):
            self._unkept = moved
            return False
        self._unkept, self._flags, self._unstored = None, self._measured_flags, None
        self.left_out = -1
        return True

    @property
    def flags_changed(self) -> bool:
        """Whether masks, or what may be trained, are others than at the last record kept."""
        return self._flags != (self._tracker.version, tuple(self._source.trainable()))

    def leave_out(self, step: int, sink: Sink, record: Record | None = None) -> None:
        """Counts a due record that is left out; if it was measured, only its sketch is stored."""
        sink.thin(reserved=record is not None)
        self._unstored, self.left_out = record, step
        self.sketched = record is not None and record.sketches is not None
        if record is not None:
            sink.sketches(step, record.sketches)

    def take_back(self, sink: Sink, step: int) -> bool:
        """Whether the newest due record was left out at this step: it isn't any more then."""
        is_left_out = self.left_out == step
        if is_left_out:
            sink.take_back()
        return is_left_out

    def end(self, sink: Sink, newest: int) -> int:
        """Hands over what a log has to end with: a measured record, and a sketch of its weights.

        Args:
            sink: takes them.
            newest: the step of the newest record that is stored.

        Returns:
            How many records: 1 if the newest was left out.
        """
        record, self._unstored = self._unstored, None
        if record is not None:
            sink.take_back()
            sequence = sink.reserve()
            again = record._replace(sequence=sequence, thinned=sink.thinned, sketches=None)
            if not self.offer(sink, again):
                return 0
        if not self.sketched:
            sink.sketches(newest if record is None else record.step, self.sketches())
            self.sketched = True
        return int(record is not None)

    def sketches(self) -> Sketches | None:
        """The sketches of the current weights; None if there are none, or they can't be made."""
        try:
            return self._source.sketches()
        except Exception as error:
            self._failures.add("Could not sketch the weights", error)
            return None

    def _moved_outputs(self, number: int) -> npt.NDArray[np.float32] | None:
        if self._probe is None:
            return None
        try:
            with self._timer.part(PROBE):
                return self._probe.values(self._source.past(number))
        except Exception as error:
            # By class: the reason may contain values that differ each time.
            text = self._probe_reasons.setdefault(type(error), reason_of(error))
            self._failures.add(f"Could not evaluate the probe: {text}")
            return None

    def _learning_rates(self, step: int, groups: int) -> tuple[float, tuple[float, ...]]:
        unknown = float("nan")
        try:
            return self._source.learning_rate(step), tuple(self._source.group_rates())
        except Exception as error:
            self._failures.add("Could not read the learning rate", error)
            return unknown, (unknown,) * groups


def _either(first: Moved, second: Moved) -> Moved:
    """Whether channels moved in one of two periods: 1, 0, or NaN if unknown."""
    return np.where((first == 1) | (second == 1), 1, first + second)
