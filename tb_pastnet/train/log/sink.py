"""The way of a record out of the training thread: a bounded queue, and a thread that writes.

`offer` never waits: where the queue is full the record is dropped, and counted, because its
sequence number is missing. A group of messages that could not be written is kept and written again
as a whole, in a new segment and later each time; the server tells copies by their sequence numbers.

Changes of masks and violations take the same way. They don't count as records: neither the thinning
nor the records' bound of the queue drops one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from tb_pastnet.core.violation import Violation
from tb_pastnet.train.log.batch import Batch, Group, Offer
from tb_pastnet.train.log.changes import Change, MaskOffer
from tb_pastnet.train.log.events import Message, message_event
from tb_pastnet.train.log.notes import Notes
from tb_pastnet.train.log.segments import Segments

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

CHANGE_BYTES = 256 << 20
"""Changes of masks and violations that may wait for the disk; one call's always may."""

BLOCK_SECONDS = 2.0
"""A block is written at this age even if it isn't full, so that the tab follows the training."""

CLOSE_SECONDS = 2.0
_RETRY_SECONDS = (0.25, 30.0)


class _Mark:
    """A place in the queue: everything before it is to be written now."""

    def __init__(self, offered: int, *, closed: bool, last: bool) -> None:
        self.offered = offered
        self.closed = closed
        self.last = last
        self.written = False
        self.done = threading.Event()

    def settle(self, *, written: bool) -> None:
        if not self.done.is_set():
            self.written = written
            self.done.set()


class Sink:
    """Writes the records of one lineage in the background.

    Its methods are for one thread, the one that trains. In a process forked from it they do
    nothing: the parent's files stay the parent's.

    Args:
        segments: where to write.
        batch: packs the records.
        describe: makes the description for a new segment, from the first step and the event's.
        notes: failures are counted here.
        queue_bytes: bound of the records in the queue.
        change_bytes: bound of the changes in the queue.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Callable[[int, int], Message],
        notes: Notes,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
    ) -> None:
        self._segments = segments
        self._batch = batch
        self._describe = describe
        self._notes = notes
        self._limit = queue_bytes
        self._change_limit = change_bytes
        self._queue: SimpleQueue[Offer | Change | _Mark] = SimpleQueue()
        self._marks: list[_Mark] = []
        self._offered = 0
        self._lost = False
        # Each is written by one thread only, so that no lock is needed: put in, and taken out.
        self._bytes_in = 0
        self._bytes_out = 0
        self._changes_in = 0
        self._changes_out = 0
        self._lost_masks = 0
        self._first_step: int | None = None
        self._described_step = 0
        self._oldest = 0.0
        self._wake = threading.Event()
        self._stopping = False
        self._give_up_at = 0.0
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def offer(self, make: Callable[[int], Offer]) -> bool:
        """Hands over a record without waiting.

        Args:
            make: makes the offer from its sequence number.

        Returns:
            Whether it was taken; False where the queue is full, or the sink closed.
        """
        if self._stopping or os.getpid() != self._pid:
            return False
        sequence = self._offered
        self._offered = sequence + 1
        lost, self._lost = self._lost, True
        item = make(sequence)
        size = item.values.nbytes
        waiting = self._bytes_in - self._bytes_out
        if waiting > 0 and waiting + size > self._limit:
            return False
        self._queue.put(item)
        self._bytes_in += size
        self._lost = lost
        return True

    def masks(self, step: int, offers: Sequence[MaskOffer]) -> None:
        """Hands over masks that changed, without waiting. They are complete and never thinned.

        Args:
            step: the first step whose record they are in force in, not smaller than before.
            offers: one for each mask. Too many bytes that wait are given up and noted; the reader
                sees that numbers of changes are missing.
        """
        if not self._put(Change(step, masks=tuple(offers), lost=self._lost_masks)):
            self._lost_masks += len(offers)
        elif offers:
            self._lost_masks = 0

    def violations(self, step: int, violations: Sequence[Violation]) -> None:
        """Hands over held weights that moved, without waiting.

        Args:
            step: of the record that shows them, not smaller than before.
            violations: those that are new or go on; each replaces the one of the same channel and
                beginning.
        """
        self._put(Change(step, violations=tuple(violations)))

    def flush(self, timeout: float = 5.0, *, closed: bool = False) -> bool:
        """Waits until everything handed over so far is written.

        Args:
            timeout: seconds to wait at most.
            closed: whether the training ends here, as far as it is known.

        Returns:
            True where it is: it survives the end of the process, however it ends. False also where
            a record or a change was dropped since the last flush.
        """
        if self._stopping or os.getpid() != self._pid:
            return False
        written = self._mark(timeout, closed=closed)
        lost, self._lost = self._lost, False
        return written and not lost

    def close(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Writes what waits and the final account, and ends the thread.

        Args:
            timeout: seconds to wait at most; what isn't written by then is given up.

        Returns:
            Whether everything was written.
        """
        atexit.unregister(self.close)
        if self._stopping or os.getpid() != self._pid:
            return False
        self._give_up_at = time.monotonic() + timeout / 2
        self._stopping = True
        return self._mark(timeout, closed=True, last=True)

    def _put(self, change: Change) -> bool:
        """Whether a change was taken, or there was nothing to take."""
        if self._stopping or os.getpid() != self._pid or not (change.masks or change.violations):
            return True
        waiting = self._changes_in - self._changes_out
        size = change.nbytes
        if waiting > 0 and waiting + size > self._change_limit:
            self._lost = True
            self._notes.add("Could not keep up with masks and violations: the queue was full")
            return False
        self._changes_in += size
        self._queue.put(change)
        return True

    def _mark(self, timeout: float, *, closed: bool, last: bool = False) -> bool:
        mark = _Mark(self._offered, closed=closed, last=last)
        self._marks.append(mark)
        self._queue.put(mark)
        self._wake.set()
        mark.done.wait(timeout)
        return mark.written

    def _run(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=self._patience())
            except Empty:
                item = None
            try:
                self._handle(item)
            except Exception as error:
                # A fault of ours costs the records at hand, which then count as dropped.
                self._notes.add("Could not prepare records", error)
                self._lost = True
            if isinstance(item, _Mark):
                self._marks.remove(item)
                item.settle(written=False)
                if item.last:
                    self._segments.close()
                    return

    def _handle(self, item: Offer | Change | _Mark | None) -> None:
        if isinstance(item, _Mark):
            if item.closed:
                self._batch.restore_last()
            item.settle(written=self._write(item))
            return
        if item is not None:
            self._take(item)
        if self._batch.full or self._patience() == 0.0:
            self._write()

    def _take(self, item: Offer | Change) -> None:
        if self._first_step is None:
            self._first_step = max(item.step, 0)
        if self._batch.empty:
            self._oldest = time.monotonic()
        if isinstance(item, Offer):
            self._bytes_out += item.values.nbytes
            self._batch.add(item)
        else:
            self._changes_out += item.nbytes
            self._batch.changes.add(item)

    def _patience(self) -> float | None:
        if self._batch.empty:
            return None
        return max(0.0, self._oldest + BLOCK_SECONDS - time.monotonic())

    def _write(self, mark: _Mark | None = None) -> bool:
        closed = mark is not None and mark.closed
        if self._first_step is None or (self._batch.empty and not closed):
            return True
        offered = mark.offered if mark is not None else 0
        group = self._batch.take(offered=offered, closed=closed, notes=self._notes.counts())
        wait, longest = _RETRY_SECONDS
        while not self._try_write(group):
            for waiting in tuple(self._marks):
                if not waiting.last:
                    waiting.settle(written=False)
            if self._stopping and time.monotonic() > self._give_up_at:
                self._batch.give_up(group)
                return False
            # While this waits the queue fills, and what doesn't fit in it is dropped.
            self._wake.wait(_RETRY_SECONDS[0] / 5 if self._stopping else wait)
            self._wake.clear()
            wait = min(2 * wait, longest)
        return True

    def _try_write(self, group: Group) -> bool:
        now = time.time()
        # The description has a tag of its own, whose steps must not decrease either.
        self._described_step = step = max(self._described_step, group.messages[0].step)
        first = self._first_step
        if first is None:
            return True
        try:
            self._segments.write(
                lambda: message_event(self._describe(first, step), now),
                b"".join(message_event(message, now) for message in group.messages),
            )
        except Exception as error:
            self._notes.add("Could not write records", error)
            return False
        return True
