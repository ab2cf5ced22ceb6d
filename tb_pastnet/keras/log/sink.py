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

from tb_pastnet.core.violation import Violation
from tb_pastnet.keras.log.batch import Batch, Offer
from tb_pastnet.keras.log.changes import Change, MaskOffer
from tb_pastnet.keras.log.costs import Costs
from tb_pastnet.keras.log.events import Message
from tb_pastnet.keras.log.notes import Notes
from tb_pastnet.keras.log.segments import Segments
from tb_pastnet.keras.log.writer import Mark, Writer
from tb_pastnet.keras.process import pid

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

    Args:
        segments: where to write.
        batch: packs the records.
        describe: makes the description for a new segment, from the first step and the event's.
        notes: failures are counted here.
        queue_bytes: bound of the records in the queue.
        change_bytes: bound of the changes in the queue.
        costs: what recording costs; None: the log doesn't tell.
    """

    def __init__(
        self,
        segments: Segments,
        batch: Batch,
        describe: Callable[[int, int], Message],
        notes: Notes,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
        costs: Costs | None = None,
    ) -> None:
        self._notes = notes
        self._limit = queue_bytes
        self._change_limit = change_bytes
        self._offered = 0
        self._thinned = 0
        self._lost = False
        # Each is written by one thread only, so that no lock is needed: put in, and taken out.
        self._records_in = 0
        self._changes_in = 0
        self._lost_masks = 0
        self._last: Mark | None = None
        self._pid = pid()
        self._writer = Writer(segments, batch, describe, notes, costs)
        _OPEN.append(self)

    def offer(self, make: Callable[[int], Offer]) -> bool:
        """Hands over a record without waiting.

        Args:
            make: makes the offer from its sequence number.

        Returns:
            Whether it was taken; False where the queue is full, or the sink closed.
        """
        if self._idle:
            return False
        sequence = self._offered
        self._offered = sequence + 1
        lost, self._lost = self._lost, True
        item = make(sequence)._replace(thinned=self._thinned)
        size = item.values.nbytes
        waiting = self._records_in - self._writer.records_out
        if waiting > 0 and waiting + size > self._limit:
            return False
        self._writer.queue.put(item)
        self._records_in += size
        self._lost = lost
        return True

    def thin(self) -> None:
        """Counts a record that the budget left out; the next one that is handed over tells it."""
        if not self._idle:
            self._offered += 1
            self._thinned += 1

    def drop(self) -> None:
        """Counts a record that couldn't be made."""
        if not self._idle:
            self._offered += 1
            self._lost = True

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
        if self._idle:
            return False
        written = self._reached(self._mark(closed=closed), timeout)
        lost = self._lost or self._writer.lost
        self._lost = self._writer.lost = False
        return written and not lost

    def close(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Writes what waits and the final account, and ends the thread.

        Args:
            timeout: seconds to wait at most; what isn't written by then is given up. Called again,
                it waits again.

        Returns:
            Whether everything was written.
        """
        if pid() != self._pid or (self._last is not None and self._last.done.is_set()):
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
        return self._last is not None or pid() != self._pid

    def _put(self, change: Change) -> bool:
        """Whether a change was taken, or there was nothing to take."""
        if self._idle or not (change.masks or change.violations):
            return True
        waiting = self._changes_in - self._writer.changes_out
        size = change.nbytes
        if waiting > 0 and waiting + size > self._change_limit:
            self._lost = True
            self._notes.add("Could not keep up with masks and violations: the queue was full")
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
    mine = [sink for sink in _OPEN if sink._pid == pid()]
    for sink in mine:
        sink._end(CLOSE_SECONDS)
    for sink in mine:
        sink.close(max(0.001, until - time.monotonic()))


atexit.register(_close_all)
