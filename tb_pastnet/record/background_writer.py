"""The thread that writes what a sink hands over, lineage by lineage.

A signal handler may interrupt the training thread anywhere, and wait for what is written. So the
training thread takes no lock here that it might hold already: it appends to a `deque`, puts tokens
into a `SimpleQueue`, and waits on a lock that only one marker has. The writing thread holds `_busy`
while it writes, and logs later: if something else keeps it, the thread that waits writes instead.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from tb_pastnet.record.batch import Group, Record
from tb_pastnet.record.changes import Change
from tb_pastnet.record.failures import DeferredFailures
from tb_pastnet.record.lineage_writer import LineageWriter

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

MOST_ATTEMPTS = 3
"""How often the same records are packed, if that raises, before they are dropped."""

_FAULT_SECONDS = 0.25

_TAKEOVER_SECONDS = 0.05
"""After this time a thread that waits writes by itself, unless the writing thread is writing."""


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
    # Held until it is done. A lock, not an event: any thread can release it.
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
class Begin:
    """A place in the queue: what follows belongs to another lineage, and this one is closed."""

    writer: LineageWriter
    offered: int  # of the lineage that ends, as the next two
    thinned: int
    failures: Mapping[str, int]


Item = Record | Change | FlushMarker | Begin


class BackgroundWriter:
    """A queue of records, changes, markers and lineages, and the thread that writes them in order.

    A group that could not be written is kept and written again as a whole, in a new segment and
    later each time; the server recognises copies by their sequence numbers.

    Args:
        failures: counts failures; they are logged while nothing is written.

    Attributes:
        items: what waits; only the thread that writes takes from it.
        taken: bytes of records and changes taken from it so far.
        losses: how often a record or a change was lost.
        thread: the thread.
    """

    def __init__(self, failures: DeferredFailures) -> None:
        self.items: deque[Item] = deque()
        self.taken: dict[type, int] = {Record: 0, Change: 0}
        self.losses = 0
        self._failures = failures
        # A token for each item; True: what waits is to be written, or tried again, at once.
        self._wake: SimpleQueue[bool] = SimpleQueue()
        # Markers that aren't done; put here before they are queued.
        self._markers: list[FlushMarker] = []
        # What can't be written by then, of `time.monotonic`, is dropped.
        self._end_at = self._give_up_at = float("inf")
        # State of the thread that holds the lock, normally the writing thread.
        self._busy = threading.Lock()
        self._busy_thread = 0
        self._writer: LineageWriter | None = None
        self._written_before = 0
        self._cpu_seconds = self._cpu_begun = 0.0
        self._ended = self._switching = False
        self.thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self.thread.start()

    @property
    def written(self) -> int:
        """Records that are written, or were thinned."""
        batch = None if self._writer is None else self._writer.batch
        return self._written_before + (0 if batch is None else batch.packed + batch.thinned)

    def put(self, item: Item) -> None:
        """Queues an item."""
        if isinstance(item, FlushMarker):
            self._markers.append(item)
        self.items.append(item)
        self._wake.put(isinstance(item, FlushMarker | Begin))

    def give_up(self, seconds: float) -> None:
        """Drops what can't be written within some seconds from now."""
        self._end_at = time.monotonic()
        self._give_up_at = self._end_at + seconds

    def reach(self, marker: FlushMarker, timeout: float) -> bool:
        """Waits until a marker is done; if no thread writes meanwhile, this one does."""
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
        self._failures.log()
        return marker.written

    # From here on: the thread that holds the lock, normally the writing thread.

    def _run(self) -> None:
        while not self._ended:
            try:
                self._wait()
                with self._busy:
                    self._process()
                self._failures.log()
            except Exception as error:
                # Our own fault; a failure without a record may repeat at once.
                self._failures.add("Could not prepare records", error)
                time.sleep(_FAULT_SECONDS)
        try:
            self._failures.log()
        except Exception:
            return

    def _wait(self) -> None:
        """Waits for the next item, or until a block is due."""
        if not self.items:
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
            while self.items and not (until is not None and until.done):
                item = self.items.popleft()
                try:
                    if not self._handle(item, patient=until is None):
                        self.items.appendleft(item)
                        break
                except BaseException as error:
                    # Our own fault loses this record, which then counts as dropped.
                    self.losses += 1
                    self._recover(item)
                    if not isinstance(error, Exception):
                        raise  # of a signal handler
                    self._failures.add("Could not prepare records", error)
            writer = self._writer
            if until is None and writer is not None and writer.seconds_until_write() == 0.0:
                self._write(writer)
        finally:
            self._cpu_seconds += time.thread_time() - self._cpu_begun
            self._busy_thread = 0

    def _handle(self, item: Item, *, patient: bool) -> bool:
        """Handles an item; False if that needs more patience."""
        if isinstance(item, FlushMarker):
            self._reach(item, patient=patient or item.last)
        elif isinstance(item, Begin):
            return self._switch(item, patient=patient)
        elif self._writer is not None:
            self._take(self._writer, item, patient=patient)
        return True

    def _take(self, writer: LineageWriter, item: Record | Change, *, patient: bool) -> None:
        self.taken[type(item)] += item.nbytes
        if not writer.take(item, late=time.monotonic() >= self._give_up_at):
            self.losses += 1
            self._failures.add("Could not write all records in the time that was left at the end")
        if patient and writer.batch.nbytes > QUEUE_BYTES:
            # Nothing more is taken until this is written; meanwhile the queue fills.
            self._pause(writer.seconds_until_write())
            self._write(writer)
        elif patient and writer.seconds_until_write() == 0.0:
            self._write(writer)

    def _recover(self, item: Item) -> None:
        """What is still to be done for an item whose handling failed."""
        if isinstance(item, Change) and self._writer is not None:
            self._writer.retry(item)
        elif isinstance(item, FlushMarker):
            self._finish(item, written=False)
        elif isinstance(item, Begin) and self._writer is not item.writer:
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

    def _switch(self, begin: Begin, *, patient: bool) -> bool:
        """Closes the lineage so far, and continues with the next one; False if it isn't written."""
        self._switching = True
        if self._writer is not None:
            self._writer.end(begin.failures)
            if not self._close(begin.offered, begin.thinned, closed=True, patient=patient):
                if not patient:
                    return False
                self.losses += 1
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
                self._failures.add("Could not prepare records", error)
                continue
            if written or not (closed and patient):
                break
            # Records were dropped: once more, to account for them.
        return written

    def _write(self, writer: LineageWriter, *, closed: bool = False, patient: bool = True) -> bool:
        """Writes what waits, trying again until it is written or there is no time left.

        A thread that isn't `patient` tries once; then all of it still waits.
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
                self._failures.add("Could not prepare records", error)
        writer.batch.drop()
        self.losses += 1
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
        ends = any(isinstance(item, Begin) for item in tuple(self.items)) or self._switching
        return (self._end_at + self._give_up_at) / 2 if ends else self._give_up_at

    def _try_write(self, writer: LineageWriter, group: Group) -> bool:
        try:
            writer.write(group, self._cpu_seconds + time.thread_time() - self._cpu_begun)
        except Exception as error:
            self._failures.add("Could not write records", error)
            return False
        return True
