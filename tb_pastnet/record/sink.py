"""The path of a record out of the training thread: a bounded queue, and a writing thread.

One queue serves all lineages of a Recorder, in order, so that an acknowledgement covers them all.
`offer` never waits: if the queue is full, the record is dropped, and counted, because its sequence
number is missing. Changes of masks and violations use the same queue. They don't count as records:
neither the thinning nor the records' bound of the queue drops one.

A group of messages that could not be written is kept and written again as a whole, in a new segment
and later each time; the server recognises copies by their sequence numbers.

A signal handler may call everything here, in the middle of any call, also of its own. Therefore the
training thread takes no lock that it might hold already: it appends to a `deque`, puts tokens into
a `SimpleQueue`, and waits on a lock that only one mark has. The writing thread holds `_busy` while
it writes, and logs after it: if something else keeps it, the thread that waits writes by itself.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - its end is registered before ours
import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from tb_pastnet.core.parallel import fork_aware_pid
from tb_pastnet.core.violation import Violation
from tb_pastnet.record import run_lock
from tb_pastnet.record.batch import Group, Record
from tb_pastnet.record.changes import Change, MaskUpdate
from tb_pastnet.record.failures import DeferredFailures, Failures
from tb_pastnet.record.lineage_writer import LineageWriter

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

CHANGE_BYTES = 256 << 20
"""Changes of masks and violations that may wait for the disk; one call's always may."""

MOST_ATTEMPTS = 3
"""How often the same records are packed, if that raises, before they are dropped."""

EXIT_SECONDS = 2.0
"""How long the program waits at its end for a disk."""

_FAULT_SECONDS = 0.25

_TAKEOVER_SECONDS = 0.05
"""After this time a thread that waits writes by itself, unless the writing thread is writing."""

_OPEN: list[Sink] = []
"""Sinks that aren't closed. The end of the program closes them, all at once."""


def _held() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class FlushMarker:
    """A place in the queue: everything before it is to be written now.

    Attributes:
        done: whether it was reached, or writing failed before it.
        written: whether everything before it is written, if it is done.
    """

    offered: int
    thinned: int
    closed: bool
    last: bool = False
    done: bool = False
    written: bool = False
    # Held until it is done. A lock, not an event: it can be released whoever holds what.
    _gate: Any = field(default_factory=_held)

    def finish(self, *, written: bool) -> None:
        """Wakes the threads that wait for it."""
        if not self.done:
            self.written = written
            self.done = True
            self._gate.release()

    def wait(self, seconds: float) -> bool:
        """Waits until it is done, or some seconds; whether it is."""
        if not self.done and self._gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            self._gate.release()  # the next one who waits
        return self.done


@dataclass(eq=False)
class _Begin:
    """A place in the queue: what follows belongs to another lineage, and this one is closed."""

    writer: LineageWriter
    offered: int  # of the lineage that ends, as the next two
    thinned: int
    failures: Mapping[str, int]


_Item = Record | Change | FlushMarker | _Begin


class Sink:
    """Writes the records of a training in the background.

    In a forked process it does nothing: the files stay the parent's.

    Args:
        failures: counts and logs failures.
        exit_seconds: how long `close` waits, and the end of the program.
        queue_bytes: records that may wait.
        change_bytes: changes of masks, and violations, that may wait.

    Attributes:
        deferred: counts the failures of the writing thread.
    """

    def __init__(
        self,
        failures: Failures,
        exit_seconds: float = EXIT_SECONDS,
        queue_bytes: int = QUEUE_BYTES,
        change_bytes: int = CHANGE_BYTES,
    ) -> None:
        self._failures = failures
        self.deferred = DeferredFailures(failures)
        self.exit_seconds = exit_seconds
        self._items: deque[_Item] = deque()
        # A token for each item; True: what waits is to be written, or tried again, at once.
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._limits: dict[type, int] = {Record: queue_bytes, Change: change_bytes}
        # Bytes put in and taken out. Each is changed by one thread at a time.
        self._in: dict[type, int] = {Record: 0, Change: 0}
        self._out: dict[type, int] = {Record: 0, Change: 0}
        # Markers in the queue that aren't done; put here before they are queued.
        self._markers: list[FlushMarker] = []
        # Whether a record or a change was lost; the waiting thread resets it.
        self._lost = False
        self._pid = fork_aware_pid()
        # State of the training thread.
        self._offered = self._thinned = self._lost_masks = self._offered_before = 0
        self._reserved = False
        self._last: FlushMarker | None = None
        # What can't be written by then, of `time.monotonic`, is dropped.
        self._end_at = self._give_up_at = float("inf")
        # State of whoever holds the lock, normally the writing thread.
        self._busy = threading.Lock()
        self._busy_thread = 0
        self._writer: LineageWriter | None = None
        self._written_before = 0
        self._cpu_seconds = self._cpu_begun = 0.0
        self._ended = self._switching = False
        self._thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self._thread.start()
        _OPEN.append(self)

    def begin(self, writer: LineageWriter) -> None:
        """Ends the lineage so far, and begins one; records of both are written in order."""
        if not self._idle:
            ended = self._offered, self._thinned, self._failures.counts()
            self._append(_Begin(writer, *ended), urgent=True)
            self._offered_before += self._offered
            self._offered = self._thinned = self._lost_masks = 0

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
        record = record._replace(thinned=self._thinned)
        if self._idle or not self._put(record):
            return False
        self._reserved = False
        # A signal handler may have closed it meanwhile: then nobody takes this.
        return self._last is None or not any(item is record for item in tuple(self._items))

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
        written = self._await(self._mark(closed=closed), timeout)
        lost = self._lost
        if not within:
            lost, self._reserved = lost or self._reserved, False
        self._lost = False
        return written and not lost

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
        written = self._await(last, timeout) and not self._lost
        if last.done and self in _OPEN:
            _OPEN.remove(self)
        return written

    def end(self, timeout: float) -> FlushMarker:
        """Closes without waiting, and without a lock: a garbage collection may call it."""
        if self._last is None:
            # Even if no thread waits, there is some time to try again.
            self._end_at = time.monotonic()
            self._give_up_at = self._end_at + max(timeout, self.exit_seconds) / 2
            self._last = self._mark(closed=True, last=True)
        return self._last

    def log_dropped(self) -> None:
        """Logs how many records weren't written, at the end of the program."""
        written = self._written_before
        if self._writer is not None:
            written += self._writer.batch.packed + self._writer.batch.thinned
        lost = self._offered_before + self._offered - written
        if lost and not (self._last is not None and self._last.written):
            self._failures.add(
                f"Dropped {lost} records that could not be written within "
                f"{self.exit_seconds:g} seconds"
            )

    @property
    def alive(self) -> bool:
        """Whether it isn't closed, or still writes; not in a forked process."""
        return self._thread.is_alive()

    @property
    def _idle(self) -> bool:
        """Whether it is closed, or that of another process."""
        return self._last is not None or fork_aware_pid() != self._pid

    def _append(self, item: _Item, *, urgent: bool = False) -> None:
        self._items.append(item)
        self._wake.put(urgent)

    def _put(self, item: Record | Change) -> bool:
        """Queues an item, unless too many bytes of its kind wait."""
        kind = type(item)
        waiting = self._in[kind] - self._out[kind]
        if waiting > 0 and waiting + item.nbytes > self._limits[kind]:
            return False
        self._in[kind] += item.nbytes
        self._append(item)
        return True

    def _change(self, change: Change) -> bool:
        if self._idle or self._put(change):
            return True
        self._lost = True
        self._failures.add("Could not keep up with masks and violations: the queue was full")
        return False

    def _mark(self, *, closed: bool, last: bool = False) -> FlushMarker:
        marker = FlushMarker(self._offered, self._thinned, closed, last)
        self._markers.append(marker)
        self._append(marker, urgent=True)
        return marker

    def _await(self, marker: FlushMarker, timeout: float) -> bool:
        """Waits until a marker is done; if nobody writes meanwhile, this thread does."""
        deadline = time.monotonic() + timeout
        while not (marker.done or self._ended):
            left = deadline - time.monotonic()
            # In the middle of a write that this very thread makes, waiting would last for ever.
            if left <= 0 or self._busy_thread == threading.get_ident():
                break
            if not marker.wait(min(left, _TAKEOVER_SECONDS)) and self._busy.acquire(blocking=False):
                try:
                    self._process(until=marker)
                finally:
                    self._busy.release()
        self.deferred.log()
        return marker.written

    # From here on: whoever holds the lock, normally the writing thread.

    def _run(self) -> None:
        while not self._ended:
            try:
                self._wait()
                with self._busy:
                    self._process()
            except Exception as error:
                # Our own fault; a failure without a record may repeat at once.
                self.deferred.add("Could not prepare records", error)
                time.sleep(_FAULT_SECONDS)
            self.deferred.log()

    def _wait(self) -> None:
        """Waits for the next item, or until a block is due."""
        if not self._items:
            wait = None if self._writer is None else self._writer.seconds_until_write()
            with contextlib.suppress(Empty):
                self._wake.get(timeout=wait)
        with contextlib.suppress(Empty):
            while True:
                self._wake.get_nowait()

    def _pause(self, seconds: float | None) -> None:
        """Waits some seconds, less if something is to be written at once."""
        until = time.monotonic() + (seconds or 0.0)
        urgent = False
        with contextlib.suppress(Empty):
            while not urgent and (left := until - time.monotonic()) > 0:
                urgent = self._wake.get(timeout=left)

    def _process(self, until: FlushMarker | None = None) -> None:
        """Handles what is queued, at most up to a marker, and writes what is due."""
        self._busy_thread = threading.get_ident()
        self._cpu_begun = time.thread_time()
        try:
            while self._items and not (until is not None and until.done):
                item = self._items.popleft()
                try:
                    if not self._handle(item, patient=until is None):
                        self._items.appendleft(item)
                        break
                except BaseException as error:
                    # Our own fault loses this record, which then counts as dropped.
                    self._lost = True
                    self._recover(item)
                    if not isinstance(error, Exception):
                        raise  # of a signal handler
                    self.deferred.add("Could not prepare records", error)
            writer = self._writer
            if until is None and writer is not None and writer.seconds_until_write() == 0.0:
                self._write(writer)
        finally:
            self._cpu_seconds += time.thread_time() - self._cpu_begun
            self._busy_thread = 0

    def _handle(self, item: _Item, *, patient: bool) -> bool:
        """Handles an item; False if that needs more patience."""
        if isinstance(item, FlushMarker):
            self._reach(item, patient=patient or item.last)
        elif isinstance(item, _Begin):
            return self._switch(item, patient=patient)
        elif self._writer is not None:
            self._take(self._writer, item, patient=patient)
        return True

    def _take(self, writer: LineageWriter, item: Record | Change, *, patient: bool) -> None:
        self._out[type(item)] += item.nbytes
        if not writer.take(item, late=time.monotonic() >= self._give_up_at):
            self._lost = True
            self.deferred.add("Could not write all records in the time that was left at the end")
        if patient and writer.batch.nbytes > QUEUE_BYTES:
            # Nothing more is taken until this is written; meanwhile the queue fills.
            self._pause(writer.seconds_until_write())
            self._write(writer)
        elif patient and writer.seconds_until_write() == 0.0:
            self._write(writer)

    def _recover(self, item: _Item) -> None:
        """What is still to be done for an item whose handling failed."""
        if isinstance(item, Change) and self._writer is not None:
            self._writer.retry(item)
        elif isinstance(item, FlushMarker):
            self._finish(item, written=False)
        elif isinstance(item, _Begin) and self._writer is not item.writer:
            self._replace(item.writer)

    def _reach(self, marker: FlushMarker, *, patient: bool) -> None:
        account = marker.offered, marker.thinned
        written = self._close(*account, closed=marker.closed, patient=patient)
        if marker.last and self._writer is not None:
            self._writer.segments.close()
        self._finish(marker, written=written)

    def _finish(self, marker: FlushMarker, *, written: bool) -> None:
        if marker in self._markers:
            self._markers.remove(marker)
        self._ended = self._ended or marker.last
        marker.finish(written=written)

    def _switch(self, begin: _Begin, *, patient: bool) -> bool:
        """Closes the lineage so far, and goes on with the next one; False if it isn't written."""
        self._switching = True
        if self._writer is not None:
            self._writer.end(begin.failures)
            if not self._close(begin.offered, begin.thinned, closed=True, patient=patient):
                if not patient:
                    return False
                self._lost = True
            self._writer.segments.close()
        self._replace(begin.writer)
        return True

    def _replace(self, writer: LineageWriter) -> None:
        before, self._writer, self._switching = self._writer, writer, False
        if before is not None:
            writer.follow(before)
            self._cpu_seconds, self._cpu_begun = 0.0, time.thread_time()
            self._written_before += before.batch.packed + before.batch.thinned

    def _close(self, offered: int, thinned: int, *, closed: bool, patient: bool) -> bool:
        """Writes what waits and the account up to here; whether all of it is written."""
        writer = self._writer
        if writer is None:
            return True
        written = False
        for _ in range(MOST_ATTEMPTS):
            try:
                writer.batch.reach(offered, thinned)
                if closed:
                    writer.batch.restore_last()
                written = self._write(writer, closed=closed, patient=patient)
            except Exception as error:
                self.deferred.add("Could not prepare records", error)
                continue
            if written or not (closed and patient):
                break
            # Records were dropped: once more, to account for them.
        return written

    def _write(self, writer: LineageWriter, *, closed: bool = False, patient: bool = True) -> bool:
        """Writes what waits, trying again until it is written or there is no time left.

        A thread that isn't `patient` tries once; then all of it goes on waiting.
        """
        for _ in range(MOST_ATTEMPTS):
            try:
                group = writer.pack(closed=closed)
                if group is None:
                    return True
                if self._keep_writing(writer, group, patient=patient):
                    writer.done(group)
                    return True
                if not patient:
                    return False
                break
            except Exception as error:
                self.deferred.add("Could not prepare records", error)
        writer.batch.drop()
        self._lost = True
        return False

    def _keep_writing(self, writer: LineageWriter, group: Group, *, patient: bool) -> bool:
        shortest, longest = writer.segments.retry_seconds
        wait = shortest
        while not self._try_write(writer, group):
            for waiting in tuple(self._markers):
                if not waiting.last:
                    waiting.finish(written=False)
            if not patient or time.monotonic() > self._deadline():
                return False
            # While this waits the queue fills, and what doesn't fit in it is dropped.
            self._pause(wait if self._give_up_at == float("inf") else shortest / 5)
            wait = min(2 * wait, longest)
        return True

    def _deadline(self) -> float:
        """When what can't be written is dropped; half of the time is for the newest lineage."""
        ends = any(isinstance(item, _Begin) for item in tuple(self._items)) or self._switching
        return (self._end_at + self._give_up_at) / 2 if ends else self._give_up_at

    def _try_write(self, writer: LineageWriter, group: Group) -> bool:
        try:
            writer.write(group, self._cpu_seconds + time.thread_time() - self._cpu_begun)
        except Exception as error:
            self.deferred.add("Could not write records", error)
            return False
        return True


def _close_all() -> None:
    begin = time.monotonic()
    own = [sink for sink in _OPEN if sink._pid == fork_aware_pid()]
    for sink in own:
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
