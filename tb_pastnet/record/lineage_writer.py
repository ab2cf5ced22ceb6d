"""What the writing thread does with one lineage: records into messages, and messages into files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from tb_pastnet.format.compared import encode_compared
from tb_pastnet.format.tags import TAG_COMPARED, TAG_TIMELINE
from tb_pastnet.record.audit.compared_account import ComparedAccount
from tb_pastnet.record.batch import Batch, Group, Record
from tb_pastnet.record.changes import Change
from tb_pastnet.record.failures import DeferredFailures
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.segments import Segments

Describe = Callable[[int, int], Sequence[Message]]
"""The messages that open a file, from the first step of the lineage, at a step."""


class LineageWriter:
    """Packs and writes the records of one lineage; for the thread that holds the sink's lock.

    Args:
        segments: its files.
        batch: collects its records.
        describe: makes the head of each file.
        totals: the recording overhead so far.
        failures: counts failures; they are logged later.
        compared: what was compared so far; None: it isn't written.

    Attributes:
        noted: failures that are in an account that is written, of this lineage or an earlier one.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Describe,
        totals: OverheadTotals,
        failures: DeferredFailures,
        compared: ComparedAccount | None = None,
    ) -> None:
        self.segments = segments
        self.batch = batch
        self._describe = describe
        self._totals = totals
        self._failures = failures
        self._compared = compared
        self.noted: Mapping[str, int] = {}
        self._noted_before: Mapping[str, int] = {}
        self._noting: Mapping[str, int] = {}
        self._counted: Mapping[str, int] | None = None
        self._first_step: int | None = None
        # Whether the newest account says that training ended normally, and the one being written.
        self._closed = self._closing = False
        self._described_step = 0
        self._oldest = 0.0

    def follow(self, before: LineageWriter) -> None:
        """Takes over what no account of the lineage before has: its lost records, its failures."""
        self.batch.carried = before.batch.unaccounted
        self.noted = self._noted_before = before.noted

    def end(self, failures: Mapping[str, int]) -> None:
        """Another lineage has begun; later failures than these are noted there."""
        self._counted = failures

    def take(self, item: Record | Change, since: float, *, late: bool) -> bool:
        """Takes the next record or change, which waits since a time of `time.monotonic`.

        False for a record without time left to write it.
        """
        if self._first_step is None:
            self._first_step = max(item.step, 0)
        if self.batch.empty:
            self._oldest = since
        if isinstance(item, Change):
            self.batch.changes.add(item)
            if item.sketches is not None:
                self.batch.sketch(item.sketches[0], item.step, item.sketches[1])
        elif late:
            return False
        else:
            self.batch.add(item)
        return True

    def retry(self, change: Change) -> None:
        """Takes a change that couldn't be taken, or counts it as lost."""
        try:
            self.batch.changes.add(change)
        except Exception as error:
            self._failures.add("Could not prepare changes of masks", error)
            self.batch.changes.lose(change)

    def seconds_until_write(self) -> float | None:
        """Until waiting records are due to be written; None if none waits."""
        if self.batch.empty:
            return None
        return self.segments.wait(time.monotonic() - self._oldest, full=self.batch.full)

    def pack(self, *, closed: bool | None) -> Group | None:
        """Packs what waits, until `done`; None if there is nothing to write.

        `closed`: whether training ends normally here, or doesn't; None: it continues.
        """
        if self._first_step is None and not (closed and self.batch.carried):
            return None
        # An account may have said that it had ended, before another `fit`.
        if self.batch.empty and not (closed or (closed is False and self._closed)):
            return None
        self._closing = bool(closed)
        self._noting = self._failures.counts() if self._counted is None else self._counted
        notes = {
            text: count - self._noted_before.get(text, 0)
            for text, count in self._noting.items()
            if count > self._noted_before.get(text, 0)
        }
        return self.batch.pack(closed=self._closing, notes=notes)

    def done(self, group: Group) -> None:
        """The group that was packed last is written."""
        self.batch.done(group)
        if group.messages[-1].tag == TAG_TIMELINE:
            self.noted, self._closed = self._noting, self._closing

    def write(self, group: Group, cpu_seconds: float) -> None:
        """Writes a group; if it raises, the group isn't readable: call it again.

        Args:
            group: from `pack`.
            cpu_seconds: processor time of writing so far.
        """
        wall_time = time.time()
        first = self._first_step or 0
        # The description has its own tag, whose steps must not decrease either.
        self._described_step = step = max(self._described_step, group.messages[0].step)
        events = [message_event(message, wall_time) for message in group.messages]
        self.segments.write(
            lambda: b"".join(
                message_event(message, wall_time) for message in self._describe(first, step)
            ),
            lambda written: self._body(group, events, wall_time, written, cpu_seconds),
        )

    def _body(
        self, group: Group, events: list[bytes], wall_time: float, written: int, cpu_seconds: float
    ) -> bytes:
        """All events of a group; before its timeline what was compared so far, and the overhead."""
        last = group.messages[-1]
        if last.tag == TAG_TIMELINE:
            try:
                events = [*events[:-1], *self._comparisons(last.step, wall_time), events[-1]]
            except Exception as error:
                self._failures.add("Could not write what was compared", error)
            try:
                size = written + sum(map(len, events))
                place = self.batch.lineage, last.step, wall_time
                events = [*events[:-1], self._totals.event(*place, size, cpu_seconds), events[-1]]
            except Exception as error:
                self._failures.add("Could not write the recording overhead", error)
        return b"".join(events)

    def _comparisons(self, step: int, wall_time: float) -> Iterator[bytes]:
        if self._compared is not None:
            compared, lineage = self._compared.snapshot(), self.batch.lineage
            sealed = encode_compared(compared, tag=TAG_COMPARED, step=step, lineage=lineage)
            yield message_event(Message(TAG_COMPARED, step, sealed), wall_time)
