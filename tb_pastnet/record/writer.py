"""The thread behind the queue: it packs what comes, writes it, and tries again what failed.

A group of messages that could not be written is kept and written again as a whole, in a new segment
and later each time; the server tells copies by their sequence numbers.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from tb_pastnet.format.tags import TAG_TIMELINE
from tb_pastnet.record.batch import Batch, Group
from tb_pastnet.record.changes import Change
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.overhead_timer import OverheadWriter
from tb_pastnet.record.record import Record
from tb_pastnet.record.segments import Segments

BLOCK_SECONDS = 2.0
"""A block is written at this age even if it isn't full, so that the tab follows the training."""

MOST_ATTEMPTS = 3
"""How often the same records are packed, where that raises, before they are given up."""

_RETRY_SECONDS = (0.25, 30.0)


class Mark:
    """A place in the queue: everything before it is to be written now; `done` is set afterwards."""

    def __init__(self, offered: int, thinned: int, *, closed: bool, last: bool) -> None:
        self.offered = offered
        self.thinned = thinned
        self.closed = closed
        self.last = last
        self.written = False
        self.done = threading.Event()

    def settle(self, *, written: bool) -> None:
        """Tells who waits for it."""
        if not self.done.is_set():
            self.written = written
            self.done.set()


class Writer:
    """Writes the records of one lineage, on a thread of its own.

    Attributes:
        queue: what is to be written.
        marks: those in the queue that aren't settled; put there before they are queued.
        records_out: bytes of records that have left the queue.
        changes_out: bytes of changes that have left the queue.
        lost: whether a record or a change was lost; whoever waits sets it back.
        stopping: what can't be written is given up after `give_up_at`.
        give_up_at: of `time.monotonic`.
        wake: set to try again at once.
        thread: ends behind the last mark.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Callable[[int, int], Message],
        failures: Failures,
        overhead: OverheadWriter | None = None,
    ) -> None:
        self._segments = segments
        self._batch = batch
        self._describe = describe
        self._failures = failures
        self._overhead = overhead
        self._first_step: int | None = None
        self._described_step = 0
        self._oldest = 0.0
        self.queue: SimpleQueue[Record | Change | Mark] = SimpleQueue()
        self.marks: list[Mark] = []
        # Each is written by one thread only, so that no lock is needed.
        self.records_out = 0
        self.changes_out = 0
        self.lost = False
        self.stopping = False
        self.give_up_at = 0.0
        self.wake = threading.Event()
        self.thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        item: Record | Change | Mark | None = None
        while not (isinstance(item, Mark) and item.last):
            item = None
            try:
                try:  # noqa: SIM105 - what fails behind `get` would lose the item
                    item = self.queue.get(timeout=self._patience())
                except Empty:
                    pass
                self._handle(item)
            except Exception as error:
                # A fault of ours costs the record at hand, which then counts as dropped.
                self._failures.add("Could not prepare records", error)
                self.lost = True
                if isinstance(item, Change):
                    self._take_again(item)
                elif isinstance(item, Mark):
                    self._release(item)
                elif item is None:
                    time.sleep(_RETRY_SECONDS[0])  # what fails without one may fail again at once

    def _take_again(self, change: Change) -> None:
        try:
            self._batch.changes.add(change)
        except Exception as error:
            self._failures.add("Could not prepare changes of masks", error)
            self._batch.changes.lose(change)

    def _release(self, mark: Mark) -> None:
        """Lets go who waits for a mark that couldn't be handled."""
        with contextlib.suppress(Exception):
            mark.settle(written=False)

    def _handle(self, item: Record | Change | Mark | None) -> None:
        if isinstance(item, Mark):
            self._reach(item)
            return
        if item is not None:
            self._take(item)
        if self._batch.full or self._patience() == 0.0:
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
            # Records were given up: once more, for the account of that.
        mark.settle(written=written)
        self.marks.remove(mark)
        if mark.last:
            self._segments.close()

    def _take(self, item: Record | Change) -> None:
        if self._first_step is None:
            self._first_step = max(item.step, 0)
        if self._batch.empty:
            self._oldest = time.monotonic()
        if isinstance(item, Record):
            self.records_out += item.values.nbytes
            self._batch.add(item)
        else:
            self.changes_out += item.nbytes
            self._batch.changes.add(item)

    def _patience(self) -> float | None:
        if self._batch.empty:
            return None
        return max(0.0, self._oldest + BLOCK_SECONDS - time.monotonic())

    def _write(self, mark: Mark | None = None) -> bool:
        closed = mark is not None and mark.closed
        if self._first_step is None or (self._batch.empty and not closed):
            return True
        for _ in range(MOST_ATTEMPTS):
            try:
                notes = self._failures.counts()
                group = self._batch.pack(closed=closed, notes=notes)
                if self._keep_writing(group):
                    self._batch.done(group)
                    return True
                break
            except Exception as error:
                self._failures.add("Could not prepare records", error)
        self._batch.drop()
        self.lost = True
        return False

    def _keep_writing(self, group: Group) -> bool:
        wait, longest = _RETRY_SECONDS
        while not self._try_write(group):
            for waiting in tuple(self.marks):
                if not waiting.last:
                    waiting.settle(written=False)
            if self.stopping and time.monotonic() > self.give_up_at:
                return False
            # While this waits the queue fills, and what doesn't fit in it is dropped.
            self.wake.wait(_RETRY_SECONDS[0] / 5 if self.stopping else wait)
            self.wake.clear()
            wait = min(2 * wait, longest)
        return True

    def _try_write(self, group: Group) -> bool:
        try:
            wall_time = time.time()
            first = self._first_step or 0
            # The description has a tag of its own, whose steps must not decrease either.
            self._described_step = step = max(self._described_step, group.messages[0].step)
            events = [message_event(message, wall_time) for message in group.messages]
            self._segments.write(
                lambda: message_event(self._describe(first, step), wall_time),
                lambda written: self._body(group, events, wall_time, written),
            )
        except Exception as error:
            self._failures.add("Could not write records", error)
            return False
        return True

    def _body(self, group: Group, events: list[bytes], wall_time: float, written: int) -> bytes:
        """All events of a group, and before its timeline what recording has cost so far."""
        last = group.messages[-1]
        if self._overhead is not None and last.tag == TAG_TIMELINE:
            try:
                size = written + sum(map(len, events))
                cost = self._overhead.event(last.step, wall_time, size)
                events = [*events[:-1], cost, events[-1]]
            except Exception as error:
                self._failures.add("Could not tell what recording costs", error)
        return b"".join(events)
