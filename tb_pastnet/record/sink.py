"""The way of a record out of the training thread: a bounded queue, before a thread that writes.

`offer` never waits: where the queue is full the record is dropped, and counted, because its
sequence number is missing.

Changes of masks and violations take the same way. They don't count as records: neither the thinning
nor the records' bound of the queue drops one.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Sequence

from tb_pastnet.core.parallel import fork_aware_pid
from tb_pastnet.core.violation import Violation
from tb_pastnet.record.batch import Batch
from tb_pastnet.record.changes import Change, MaskUpdate
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.messages import Message
from tb_pastnet.record.overhead_timer import OverheadWriter
from tb_pastnet.record.record import Record
from tb_pastnet.record.segments import Segments
from tb_pastnet.record.writer import Mark, Writer

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

CHANGE_BYTES = 256 << 20
"""Changes of masks and violations that may wait for the disk; one call's always may."""

CLOSE_SECONDS = 2.0
"""How long an end waits for the disk."""

_OPEN: list[Sink] = []
"""Sinks that aren't closed. The end of the program closes them, all within `CLOSE_SECONDS`."""


class Sink:
    """Writes the records of one lineage in the background.

    Its methods are for one thread, the one that trains. In a process forked from it they do
    nothing: the parent's files stay the parent's.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Callable[[int, int], Message],
        failures: Failures,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
        overhead: OverheadWriter | None = None,
    ) -> None:
        self._failures = failures
        self._limit = queue_bytes
        self._change_limit = change_bytes
        self._offered = 0
        self._thinned = 0
        self._lost = False
        self._reserved = False
        # Each is written by one thread only, so that no lock is needed: put in, and taken out.
        self._records_in = 0
        self._changes_in = 0
        self._lost_masks = 0
        self._last: Mark | None = None
        self._pid = fork_aware_pid()
        self._writer = Writer(segments, batch, describe, failures, overhead)
        _OPEN.append(self)

    def reserve(self) -> int:
        """The number of the next record, which counts as dropped unless `offer` takes it."""
        sequence = self._offered
        if not self._idle:
            self._offered += 1
            self._lost |= self._reserved
            self._reserved = True
        return sequence

    def offer(self, record: Record) -> bool:
        """Hands over the record that was reserved last, without waiting. False: it is dropped."""
        size = record.values.nbytes
        waiting = self._records_in - self._writer.records_out
        if self._idle or (waiting > 0 and waiting + size > self._limit):
            return False
        self._writer.queue.put(record._replace(thinned=self._thinned))
        self._records_in += size
        self._reserved = False
        return True

    def thin(self) -> None:
        """Counts a record that the budget left out; the next one that is handed over tells it."""
        if not self._idle:
            self._offered += 1
            self._thinned += 1

    def masks(self, step: int, updates: Sequence[MaskUpdate]) -> None:
        """Hands over masks that changed, without waiting. They are complete and never thinned.

        Args:
            step: the first step whose record they are in force in, not smaller than before.
            updates: one for each mask. Too many bytes that wait are given up and noted; the reader
                sees that numbers of changes are missing.
        """
        if not self._put(Change(step, masks=tuple(updates), lost=self._lost_masks)):
            self._lost_masks += len(updates)
        elif updates:
            self._lost_masks = 0

    def violations(self, step: int, violations: Sequence[Violation]) -> None:
        """Hands over held weights that moved, without waiting; newer entries replace older."""
        self._put(Change(step, violations=tuple(violations)))

    def flush(self, timeout: float = 5.0, *, closed: bool = False) -> bool:
        """Waits until everything handed over so far is written.

        Returns:
            True where it is: it survives the end of the process, however it ends. False also where
            a record or a change was dropped since the last flush.
        """
        if self._idle:
            return False
        written = self._reached(self._mark(closed=closed), timeout)
        lost = self._lost or self._reserved or self._writer.lost
        self._lost = self._reserved = self._writer.lost = False
        return written and not lost

    def close(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Writes what waits and the final account, and ends the thread.

        Args:
            timeout: seconds to wait at most; what isn't written by then is given up. Called again,
                it waits again.

        Returns:
            Whether everything was written.
        """
        if fork_aware_pid() != self._pid or (self._last is not None and self._last.done.is_set()):
            return False
        last = self._end(timeout)
        written = self._reached(last, timeout)
        if last.done.is_set() and self in _OPEN:
            _OPEN.remove(self)
        return written

    def _end(self, timeout: float) -> Mark:
        if self._last is None:
            # Also where nobody waits there is some time to try again.
            self._writer.give_up_at = time.monotonic() + max(timeout, CLOSE_SECONDS) / 2
            self._writer.stopping = True
            self._last = self._mark(closed=True, last=True)
        return self._last

    @property
    def _idle(self) -> bool:
        """Whether it is closed, or that of another process."""
        return self._last is not None or fork_aware_pid() != self._pid

    def _put(self, change: Change) -> bool:
        """Whether a change was taken, or there was nothing to take."""
        if self._idle or not (change.masks or change.violations):
            return True
        waiting = self._changes_in - self._writer.changes_out
        size = change.nbytes
        if waiting > 0 and waiting + size > self._change_limit:
            self._lost = True
            self._failures.add("Could not keep up with masks and violations: the queue was full")
            return False
        self._changes_in += size
        self._writer.queue.put(change)
        return True

    def _mark(self, *, closed: bool, last: bool = False) -> Mark:
        mark = Mark(self._offered, self._thinned, closed=closed, last=last)
        self._writer.marks.append(mark)
        self._writer.queue.put(mark)
        return mark

    def _reached(self, mark: Mark, timeout: float) -> bool:
        self._writer.wake.set()
        if self._writer.thread.is_alive():
            mark.done.wait(timeout)
        return mark.written


def _close_all() -> None:
    until = time.monotonic() + CLOSE_SECONDS
    own = [sink for sink in _OPEN if sink._pid == fork_aware_pid()]
    for sink in own:
        sink._end(CLOSE_SECONDS)
    for sink in own:
        sink.close(max(0.001, until - time.monotonic()))


atexit.register(_close_all)
