"""The path of a record out of the training thread: a bounded queue, and a writer thread.

`offer` never waits: if the queue is full, the record is dropped, and counted, because its sequence
number is missing. Changes of masks and violations use the same queue. They don't count as records:
neither the thinning nor the records' bound of the queue drops one.

A group of messages that could not be written is kept and written again as a whole, in a new segment
and later each time; the server recognises copies by their sequence numbers.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - its end is registered before ours
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from tb_pastnet.core.parallel import fork_aware_pid
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.tags import TAG_TIMELINE
from tb_pastnet.record.batch import Batch, Group, Record
from tb_pastnet.record.changes import Change, MaskUpdate
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.segments import Segments

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

CHANGE_BYTES = 256 << 20
"""Changes of masks and violations that may wait for the disk; one call's always may."""

MOST_ATTEMPTS = 3
"""How often the same records are packed, if that raises, before they are dropped."""

_FAULT_SECONDS = 0.25

_OPEN: list[Sink] = []
"""Sinks that aren't closed. The end of the program closes them, all at once."""


@dataclass(eq=False)
class Mark:
    """A place in the queue: everything before it is to be written now; `done` is set afterwards."""

    offered: int
    thinned: int
    closed: bool
    last: bool = False
    written: bool = False
    done: threading.Event = field(default_factory=threading.Event)

    def settle(self, *, written: bool) -> None:
        """Wakes the threads that wait for it."""
        if not self.done.is_set():
            self.written = written
            self.done.set()


class Sink:
    """Writes the records of one lineage in the background; its public methods are for one thread.

    In a forked process they do nothing: the files stay the parent's.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Callable[[int, int], Sequence[Message]],
        failures: Failures,
        totals: OverheadTotals,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
        *,
        earlier: Mapping[str, int] | None = None,
    ) -> None:
        self._failures = failures
        # Counted in the lineages before, which have noted them.
        self._earlier = earlier
        self._queue: SimpleQueue[Record | Change | Mark] = SimpleQueue()
        self._limits: dict[type, int] = {Record: queue_bytes, Change: change_bytes}
        # Bytes put in and taken out. Each is written by one thread only, and so needs no lock.
        self._in: dict[type, int] = {Record: 0, Change: 0}
        self._out: dict[type, int] = {Record: 0, Change: 0}
        # Marks in the queue that aren't settled; put here before they are queued.
        self._marks: list[Mark] = []
        # Whether a record or a change was lost; the waiting thread resets it.
        self._lost = False
        self._wake = threading.Event()
        self._pid = fork_aware_pid()
        # State of the training thread.
        self._offered = self._thinned = self._lost_masks = 0
        self._reserved = False
        self._last: Mark | None = None
        # What can't be written by then, of `time.monotonic`, is dropped.
        self._give_up_at = float("inf")
        # State of the writer thread.
        self._segments = segments
        self._batch = batch
        self._describe = describe
        self._totals = totals
        self._first_step: int | None = None
        self._described_step = 0
        self._oldest = 0.0
        self._thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self._thread.start()
        _OPEN.append(self)

    def reserve(self) -> int:
        """The number of the next record, which counts as dropped unless `offer` takes it."""
        sequence = self._offered
        if not self._idle:
            self._offered += 1
            if self._reserved:
                self._lost = True
            self._reserved = True
        return sequence

    def offer(self, record: Record) -> bool:
        """Hands over the last reserved record, without waiting. False: it is dropped."""
        if self._idle or not self._put(record._replace(thinned=self._thinned)):
            return False
        self._reserved = False
        return True

    def thin(self) -> None:
        """Counts a record that the budget left out; the next record carries the count."""
        if not self._idle:
            self._offered += 1
            self._thinned += 1

    def masks(self, step: int, updates: Sequence[MaskUpdate]) -> None:
        """Hands over masks that changed, without waiting. They are complete and never thinned.

        `step` is the first whose record they are in force in, not smaller than before. Changes
        beyond a number of waiting bytes are dropped and noted; the reader finds their numbers
        missing.
        """
        if updates:
            taken = self._change(Change(step, masks=tuple(updates), lost=self._lost_masks))
            self._lost_masks = 0 if taken else self._lost_masks + len(updates)

    def violations(self, step: int, violations: Sequence[Violation]) -> None:
        """Hands over held weights that moved, without waiting; newer entries replace older."""
        if violations:
            self._change(Change(step, violations=tuple(violations)))

    def flush(self, timeout: float = 5.0, *, closed: bool = False) -> bool:
        """Waits until everything handed over so far is written, safe from kill -9.

        False even if only a record or a change was dropped since the last flush.
        """
        if self._idle:
            return False
        written = self._reached(self._mark(closed=closed), timeout)
        lost = self._lost or self._reserved
        self._lost = self._reserved = False
        return written and not lost

    def close(self, timeout: float | None = None) -> bool:
        """Writes waiting records and the final account, ends the thread; whether all is written.

        None waits as long as at the end of the program. What isn't written by then is dropped.
        Called again, it waits again.
        """
        if timeout is None:
            timeout = self._segments.exit_seconds
        if fork_aware_pid() != self._pid or (self._last is not None and self._last.done.is_set()):
            return False
        last = self.end(timeout)
        written = self._reached(last, timeout) and not self._lost
        if last.done.is_set() and self in _OPEN:
            _OPEN.remove(self)
        return written

    def end(self, timeout: float) -> Mark:
        """Closes without waiting, and without a lock: a garbage collection may call it."""
        if self._last is None:
            # Even if no thread waits, there is some time to try again.
            self._give_up_at = time.monotonic() + max(timeout, self._segments.exit_seconds) / 2
            self._last = self._mark(closed=True, last=True)
        return self._last

    def tell_lost(self) -> None:
        """Logs how many records weren't written, at the end of the program."""
        lost = self._offered - self._batch.packed - self._batch.thinned
        if lost and not (self._last is not None and self._last.written):
            self._failures.add(
                f"Dropped {lost} records that could not be written within "
                f"{self._segments.exit_seconds:g} seconds"
            )

    @property
    def alive(self) -> bool:
        """Whether it isn't closed, or still writes; not in a forked process."""
        return self._thread.is_alive()

    @property
    def _idle(self) -> bool:
        """Whether it is closed, or that of another process."""
        return self._last is not None or fork_aware_pid() != self._pid

    def _put(self, item: Record | Change) -> bool:
        """Queues an item, unless too many bytes of its kind wait."""
        kind = type(item)
        waiting = self._in[kind] - self._out[kind]
        if waiting > 0 and waiting + item.nbytes > self._limits[kind]:
            return False
        self._in[kind] += item.nbytes
        self._queue.put(item)
        return True

    def _change(self, change: Change) -> bool:
        if self._idle or self._put(change):
            return True
        self._lost = True
        self._failures.add("Could not keep up with masks and violations: the queue was full")
        return False

    def _mark(self, *, closed: bool, last: bool = False) -> Mark:
        mark = Mark(self._offered, self._thinned, closed, last)
        self._marks.append(mark)
        self._queue.put(mark)
        return mark

    def _reached(self, mark: Mark, timeout: float) -> bool:
        self._wake.set()
        if self._thread.is_alive():
            mark.done.wait(timeout)
        return mark.written

    # From here on: the writer thread.

    def _run(self) -> None:
        item: Record | Change | Mark | None = None
        while not (isinstance(item, Mark) and item.last):
            item = None
            try:
                try:  # noqa: SIM105 - what fails behind `get` would lose the item
                    item = self._queue.get(timeout=self._patience())
                except Empty:
                    pass
                self._handle(item)
            except Exception as error:
                # Our own fault loses this record, which then counts as dropped.
                self._failures.add("Could not prepare records", error)
                self._lost = True
                if isinstance(item, Change):
                    self._take_again(item)
                elif isinstance(item, Mark):
                    with contextlib.suppress(Exception):
                        item.settle(written=False)
                elif item is None:
                    time.sleep(_FAULT_SECONDS)  # a failure without a record may repeat at once

    def _take_again(self, change: Change) -> None:
        try:
            self._batch.changes.add(change)
        except Exception as error:
            self._failures.add("Could not prepare changes of masks", error)
            self._batch.changes.lose(change)

    def _handle(self, item: Record | Change | Mark | None) -> None:
        if isinstance(item, Mark):
            self._reach(item)
            return
        if item is not None:
            self._take(item)
        if self._batch.nbytes > QUEUE_BYTES:
            # Nothing more is taken until this is written; meanwhile the queue fills.
            self._wake.wait(self._patience())
            self._wake.clear()
            self._write()
        elif self._patience() == 0.0:
            self._write()

    def _reach(self, mark: Mark) -> None:
        written = False
        for _ in range(MOST_ATTEMPTS):
            try:
                self._batch.reach(mark.offered, mark.thinned)
                if mark.closed:
                    self._batch.restore_last()
                written = self._write(mark)
            except Exception as error:
                self._failures.add("Could not prepare records", error)
                continue
            if written or not mark.closed:
                break
            # Records were dropped: once more, to account for them.
        mark.settle(written=written)
        self._marks.remove(mark)
        if mark.last:
            self._segments.close()

    def _take(self, item: Record | Change) -> None:
        if self._first_step is None:
            self._first_step = max(item.step, 0)
        if self._batch.empty:
            self._oldest = time.monotonic()
        self._out[type(item)] += item.nbytes
        if isinstance(item, Change):
            self._batch.changes.add(item)
        elif time.monotonic() < self._give_up_at:
            self._batch.add(item)
        else:
            self._lost = True
            self._failures.add("Could not write all records in the time that was left at the end")

    def _patience(self) -> float | None:
        if self._batch.empty:
            return None
        return self._segments.wait(time.monotonic() - self._oldest, full=self._batch.full)

    def _write(self, mark: Mark | None = None) -> bool:
        closed = mark is not None and mark.closed
        if self._first_step is None or (self._batch.empty and not closed):
            return True
        for _ in range(MOST_ATTEMPTS):
            try:
                notes = self._failures.counts(self._earlier)
                group = self._batch.pack(closed=closed, notes=notes)
                if self._keep_writing(group):
                    self._batch.done(group)
                    return True
                break
            except Exception as error:
                self._failures.add("Could not prepare records", error)
        self._batch.drop()
        self._lost = True
        return False

    def _keep_writing(self, group: Group) -> bool:
        shortest, longest = self._segments.retry_seconds
        wait = shortest
        while not self._try_write(group):
            for waiting in tuple(self._marks):
                if not waiting.last:
                    waiting.settle(written=False)
            if time.monotonic() > self._give_up_at:
                return False
            # While this waits the queue fills, and what doesn't fit in it is dropped.
            self._wake.wait(wait if self._give_up_at == float("inf") else shortest / 5)
            self._wake.clear()
            wait = min(2 * wait, longest)
        return True

    @noted("Could not write records", otherwise=False)
    def _try_write(self, group: Group) -> bool:
        wall_time = time.time()
        first = self._first_step or 0
        # The description has its own tag, whose steps must not decrease either.
        self._described_step = step = max(self._described_step, group.messages[0].step)
        events = [message_event(message, wall_time) for message in group.messages]
        self._segments.write(
            lambda: b"".join(
                message_event(message, wall_time) for message in self._describe(first, step)
            ),
            lambda written: self._body(group, events, wall_time, written),
        )
        return True

    def _body(self, group: Group, events: list[bytes], wall_time: float, written: int) -> bytes:
        """All events of a group, with the recording overhead so far before its timeline."""
        last = group.messages[-1]
        if last.tag == TAG_TIMELINE:
            try:
                size = written + sum(map(len, events))
                cost = self._totals.event(self._batch.lineage, last.step, wall_time, size)
                events = [*events[:-1], cost, events[-1]]
            except Exception as error:
                self._failures.add("Could not write the recording overhead", error)
        return b"".join(events)


def _close_all() -> None:
    begin = time.monotonic()
    own = [sink for sink in _OPEN if sink._pid == fork_aware_pid()]
    for sink in own:
        sink.end(sink._segments.exit_seconds)
    for sink in own:
        left = begin + sink._segments.exit_seconds - time.monotonic()
        sink.close(max(0.001, left))
        sink.tell_lost()
        if sink in _OPEN:
            _OPEN.remove(sink)  # this may be called again, and waits for each once


def _close_before_pools() -> None:
    """Closes sinks while drivers of stores can still look up hosts, in a pool of threads.

    Python ends its pools before `atexit`, and before it waits for threads that still train.
    """
    others = {*threading.enumerate()} - {threading.main_thread()}
    if all(thread.daemon for thread in others):
        _close_all()


atexit.register(_close_all)
with contextlib.suppress(AttributeError, RuntimeError):
    threading._register_atexit(_close_before_pools)  # type: ignore[attr-defined]
