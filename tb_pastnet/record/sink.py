"""The path of a record out of the training thread: a bounded queue, and a thread that writes.

One queue serves all lineages of a Recorder, in order: an acknowledgement covers them all. `offer`
never waits: if the queue is full, the record is dropped, and counted, because its sequence number
is missing. Changes of masks and violations use the same queue. They don't count as records: neither
the thinning nor the records' bound of the queue drops one.

A signal handler may call everything here, in the middle of any call, its own included.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - its end is registered before ours
import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from tb_pastnet.core.parallel import fork_aware_pid
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.standing import StandingChange
from tb_pastnet.record import run_lock
from tb_pastnet.record.background_writer import (
    QUEUE_BYTES,
    BackgroundWriter,
    Begin,
    FlushMarker,
)
from tb_pastnet.record.batch import Record
from tb_pastnet.record.changes import Change, MaskUpdate
from tb_pastnet.record.ending import TrainingEnd, program_failed
from tb_pastnet.record.failures import DeferredFailures, Failures
from tb_pastnet.record.lineage_writer import LineageWriter
from tb_pastnet.record.source import Sketches

CHANGE_BYTES = 256 << 20
"""Changes of masks and violations that may wait for the disk; one call's always may."""

EXIT_SECONDS = 2.0
"""How long the program waits at its end for a disk."""

AT_EXIT: set[Callable[[], object]] = set()
"""What ends recording at the end of the program, before sinks are closed."""

_OPEN: list[Sink] = []
"""Sinks that aren't closed. The end of the program closes them, all at once."""


class Sink:
    """Writes the records of a training in the background.

    In a forked process it does nothing: the files stay the parent's.

    Args:
        failures: counts and logs failures.
        ending: of the training, whose last account says whether it was normal.
        exit_seconds: how long `close` waits, and the end of the program.
        queue_bytes: records that may wait.
        change_bytes: changes of masks, and violations, that may wait.

    Attributes:
        deferred: counts the failures of the writing thread.
        thinned: records of the lineage that were left out so far.
    """

    def __init__(
        self,
        failures: Failures,
        ending: TrainingEnd,
        exit_seconds: float = EXIT_SECONDS,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
    ) -> None:
        self._failures, self.ending = failures, ending
        self.deferred = DeferredFailures(failures)
        self.exit_seconds = exit_seconds
        self._background = BackgroundWriter(self.deferred)
        self._limits: dict[type, int] = {Record: queue_bytes, Change: change_bytes}
        self._pid = fork_aware_pid()
        self._offered = self.thinned = self._lost_masks = self._offered_before = 0
        # Records and changes lost here, and all losses that a flush has reported.
        self._losses = self._reported = 0
        self._reserved = False
        self._last: FlushMarker | None = None
        _OPEN.append(self)

    def begin(self, writer: LineageWriter) -> None:
        """Ends the lineage so far, and begins one; records of both are written in order."""
        if not self._idle:
            ended = self._offered, self.thinned, self._failures.counts()
            self._background.put(Begin(writer, *ended))
            self._offered_before += self._offered
            self._offered = self.thinned = self._lost_masks = 0

    def reserve(self) -> int:
        """The number of the next record, which counts as dropped unless `offer` takes it."""
        sequence = self._offered
        if not self._idle:
            self._offered += 1
            if self._reserved:
                self._losses += 1
            self._reserved = True
        return sequence

    def offer(self, record: Record) -> bool:
        """Hands over the last reserved record, without waiting. False: it is dropped."""
        if self._idle or not self._put(record):
            return False
        self._reserved = False
        # A signal handler may have closed it meanwhile: then this stays where it is.
        return self._last is None or not any(
            item is record for item in tuple(self._background.items)
        )

    def thin(self, *, reserved: bool = False) -> None:
        """Counts a record that is left out: the last `reserved` one, or another.

        The next record carries the count.
        """
        if self._idle:
            return
        self.thinned += 1
        if reserved:
            self._reserved = False
        else:
            self._offered += 1

    def take_back(self) -> None:
        """The newest record that was left out is stored after all: `reserve` gives its number."""
        if not self._idle:
            self.thinned -= 1
            self._offered -= 1

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

    def standing(self, step: int, changes: Sequence[StandingChange]) -> bool:
        """Hands over why variables are idle, without waiting; False: it is dropped."""
        return not changes or self._change(Change(step, standing=tuple(changes)))

    def sketches(self, step: int, sketches: Sketches | None) -> None:
        """Hands over the sketches of the newest due record, which has none, of that step."""
        if sketches is not None and self._offered:
            self._change(Change(step, sketches=(self._offered - 1, sketches)))

    def flush(self, timeout: float = 5.0, *, closed: bool = False, within: bool = False) -> bool:
        """Waits until everything handed over so far is written, safe from kill -9.

        Args:
            timeout: seconds to wait at most.
            closed: whether training ends here, as far as is known.
            within: whether a record may be in the making, on this thread or another.

        Returns:
            False even if only a record or a change was dropped since the last flush.
        """
        if self._idle:
            return False
        # Each call compares with its own beginning: a signal handler may flush in the middle of it.
        before = self._reported
        ended = self.ending.normal if closed else None
        written = self._background.reach(self._mark(ended), timeout)
        if self._reserved and not within:
            self._losses, self._reserved = self._losses + 1, False
        losses = self._all_losses
        self._reported = max(self._reported, losses)
        return written and losses == before

    def close(self, timeout: float | None = None) -> bool:
        """Writes waiting records and the final account, ends the thread; whether all is written.

        None waits as long as at the end of the program. What isn't written by then is dropped.
        Called again, it waits again.
        """
        if timeout is None:
            timeout = self.exit_seconds
        if fork_aware_pid() != self._pid:
            return False
        last = self.end(timeout)
        written = self._background.reach(last, timeout)
        written = written and self._all_losses == self._reported
        if last.done and self in _OPEN:
            _OPEN.remove(self)
        return written

    def end(self, timeout: float) -> FlushMarker:
        """Closes without waiting, and without a lock: a garbage collection may call it."""
        if self._last is None:
            # Even if no thread waits, there is some time to try again.
            self._background.give_up(max(timeout, self.exit_seconds) / 2)
            self._last = self._mark(self.ending.normal, last=True)
        return self._last

    def log_dropped(self) -> None:
        """Logs how many records weren't written, at the end of the program."""
        lost = self._offered_before + self._offered - self._background.written
        if lost and not (self._last is not None and self._last.written):
            self._failures.add(
                f"Dropped {lost} records that could not be written within "
                f"{self.exit_seconds:g} seconds"
            )

    @property
    def alive(self) -> bool:
        """Whether it isn't closed, or still writes; not in a forked process."""
        return self._background.thread.is_alive()

    @property
    def _all_losses(self) -> int:
        return self._losses + self._background.losses

    @property
    def _idle(self) -> bool:
        """Whether it is closed, or that of another process."""
        return self._last is not None or fork_aware_pid() != self._pid

    def _put(self, item: Record | Change) -> bool:
        """Queues an item, unless too many bytes of its kind wait."""
        kind, size = type(item), item.nbytes
        waiting = self._background.waiting(kind)
        if waiting > 0 and waiting + size > self._limits[kind]:
            return False
        self._background.put(item, size)
        return True

    def _change(self, change: Change) -> bool:
        if self._idle or self._put(change):
            return True
        self._losses += 1
        self._failures.add("Could not keep up with masks and violations: the queue was full")
        return False

    def _mark(self, closed: bool | None, *, last: bool = False) -> FlushMarker:
        marker = FlushMarker(self._offered, self.thinned, closed, last)
        self._background.put(marker)
        return marker


def _close_all() -> None:
    for close in [*AT_EXIT]:
        close()
    begin = time.monotonic()
    own = [sink for sink in _OPEN if sink._pid == fork_aware_pid()]
    for sink in own:
        sink.ending.failed = program_failed()
        sink.end(sink.exit_seconds)
    for sink in own:
        left = begin + sink.exit_seconds - time.monotonic()
        sink.close(max(0.001, left))
        sink.log_dropped()
        if sink in _OPEN:
            _OPEN.remove(sink)  # this may be called again, and waits for each once
    run_lock.release_all()


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
