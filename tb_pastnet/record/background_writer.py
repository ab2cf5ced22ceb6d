"""The thread that writes what a sink hands over, lineage by lineage.

A signal handler may interrupt the training thread anywhere, and wait for what is written. So the
training thread takes no lock here that it might hold already: it appends to a `deque`, puts tokens
into a `SimpleQueue`, and waits on a lock that only one marker has. The writing thread holds `_busy`
while it writes, and logs later: if something else keeps it, the thread that waits writes instead.

Both threads share the interpreter, so the writing thread sleeps until a block is complete, and so
takes several records at once. While training makes records it sleeps with a timeout: none waits
longer than it may. When nothing has come within that time it sleeps until the next one.
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

from tb_pastnet.record.batch import BLOCK_RECORDS, Group, Record, quantized
from tb_pastnet.record.changes import Change
from tb_pastnet.record.failures import DeferredFailures
from tb_pastnet.record.lineage_writer import LineageWriter

QUEUE_BYTES = 64 << 20
"""Records that may wait for the disk; one record always may."""

WAKING_BYTES = 1 << 20
"""So much that waits wakes the writing thread, even if a block isn't complete.

Floats wait in twice the memory of codes: this is a record of 32,768 channels. To write it takes
milliseconds, a hundred times as long as to wake a thread.
"""

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
        closed: whether training ends normally here, or doesn't; None: it continues.
        done: whether it was reached, or writing failed before it.
        written: whether everything before it is written, if it is done.
    """

    offered: int
    thinned: int
    closed: bool | None
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
        put_in: bytes of records and changes put into it so far.
        taken: those taken from it.
        losses: how often a record or a change was lost.
        thread: the thread.
    """

    def __init__(self, failures: DeferredFailures) -> None:
        self.items: deque[Item] = deque()
        self.put_in: dict[type, int] = {Record: 0, Change: 0}
        self.taken: dict[type, int] = {Record: 0, Change: 0}
        self.losses = 0
        self._failures = failures
        # A token wakes the writing thread.
        self._wake: SimpleQueue[None] = SimpleQueue()
        # So many items wake it; 0 while it is awake.
        self._wakes_at = 0
        # No item that waits was put in before.
        self._since = 0.0
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
        self._ended = self._switching = self._took = False
        self.thread = threading.Thread(target=self._run, name="tb_pastnet", daemon=True)
        self.thread.start()

    @property
    def written(self) -> int:
        """Records that are written, or were thinned."""
        batch = None if self._writer is None else self._writer.batch
        return self._written_before + (0 if batch is None else batch.packed + batch.thinned)

    def put(self, item: Item, size: int | None = None) -> None:
        """Queues an item, and wakes the writing thread if it is time.

        Args:
            item: a record, a change, or a mark between them.
            size: of a record or a change, in bytes.
        """
        if not self.items:
            self._since = time.monotonic()
        if size is not None:
            # In this order: a signal handler between them would be forgotten.
            self.put_in[type(item)] += size
        elif isinstance(item, FlushMarker):
            self._markers.append(item)
        self.items.append(item)
        if size is None or (self._wakes_at and self._enough):
            self._wake.put(None)

    def waiting(self, kind: type) -> int:
        """Bytes of the records, or of the changes, that wait."""
        return self.put_in[kind] - self.taken[kind]

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

    @property
    def _enough(self) -> bool:
        """Whether what waits is enough to wake the writing thread."""
        size = sum(self.put_in.values()) - sum(self.taken.values())
        return len(self.items) >= self._wakes_at or size > WAKING_BYTES

    def _wait(self) -> None:
        """Sleeps until something is due, or enough waits."""
        lately, self._took = self._took, False
        self._wakes_at = BLOCK_RECORDS if lately else 1
        wait = self._seconds_until_due(lately=lately)
        # Items that were queued before the threshold was set put no token.
        if not self._enough:
            self._pause(wait)
        self._wakes_at = 0
        with contextlib.suppress(Empty):
            while True:
                self._wake.get_nowait()

    def _seconds_until_due(self, *, lately: bool) -> float | None:
        """Until something is due; None: nothing is as long as nothing comes."""
        writer = self._writer
        wait = None if writer is None else writer.seconds_until_write()
        if writer is None or wait is not None or not lately:
            return wait
        # An item that is queued from now on is due then at the earliest.
        return writer.segments.wait(
            time.monotonic() - self._since if self.items else 0.0, full=False
        )

    def _pause(self, seconds: float | None) -> None:
        """Waits some seconds, less if it is woken; None: until then."""
        with contextlib.suppress(Empty):
            self._wake.get(timeout=seconds)

    def _process(self, until: FlushMarker | None = None) -> None:
        """Handles what is queued, at most up to a marker, and writes what is due."""
        self._busy_thread = threading.get_ident()
        self._cpu_begun = time.thread_time()
        # Later items are handled the next time: first these are written, if they are due.
        begun, count = time.monotonic(), len(self.items)
        since = self._since
        try:
            for _ in range(count):
                if until is not None and until.done:
                    break
                self._quantize_next()
                item = self.items.popleft()
                try:
                    if not self._handle(item, since, patient=until is None):
                        self.items.appendleft(item)
                        break
                except BaseException as error:
                    # Our own fault loses this record, which then counts as dropped.
                    self.losses += 1
                    self._recover(item)
                    if not isinstance(error, Exception):
                        raise  # of a signal handler
                    self._failures.add("Could not prepare records", error)
            if until is None:
                self._since = begun
                self._write_due()
        finally:
            self._cpu_seconds += time.thread_time() - self._cpu_begun
            self._busy_thread = 0

    def _quantize_next(self) -> None:
        """Quantises the next records that are alike, all at once, in their places."""
        try:
            records = self._alike()
            if len(records) > 1:
                for place, record in enumerate(quantized(records)):
                    self.taken[Record] += records[place].nbytes - record.nbytes
                    self.items[place] = record
        except Exception as error:
            # Each is quantised by itself then: none is lost because of another one.
            self._failures.add("Could not prepare records", error)

    def _alike(self) -> list[Record]:
        """The next records of one shape, up to a block or a number of bytes."""
        records: list[Record] = []
        size = 0
        for place in range(min(len(self.items), BLOCK_RECORDS)):
            item = self.items[place]
            if not isinstance(item, Record) or item.quantized:
                break
            size += item.nbytes
            first = (records or [item])[0].values
            alike = (item.values.shape, item.values.dtype) == (first.shape, first.dtype)
            if records and not (alike and size <= WAKING_BYTES):
                break
            records.append(item)
        return records

    def _write_due(self) -> None:
        writer = self._writer
        if writer is not None and writer.seconds_until_write() == 0.0:
            self._write(writer)

    def _handle(self, item: Item, since: float, *, patient: bool) -> bool:
        """Handles an item; False if that needs more patience."""
        if isinstance(item, FlushMarker):
            self._reach(item, patient=patient or item.last)
        elif isinstance(item, Begin):
            return self._switch(item, patient=patient)
        elif self._writer is not None:
            self._take(self._writer, item, since, patient=patient)
        return True

    def _take(
        self, writer: LineageWriter, item: Record | Change, since: float, *, patient: bool
    ) -> None:
        self._took = True
        self.taken[type(item)] += item.nbytes
        if not writer.take(item, since, late=time.monotonic() >= self._give_up_at):
            self.losses += 1
            self._failures.add("Could not write all records in the time that was left at the end")
        if patient and writer.batch.nbytes > QUEUE_BYTES:
            # Nothing more is taken until this is written; meanwhile the queue fills.
            self._pause(writer.seconds_until_write() or 0.0)
            self._write(writer)
        elif patient and writer.batch.full:
            self._write_due()

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

    def _close(self, offered: int, thinned: int, *, closed: bool | None, patient: bool) -> bool:
        """Writes what waits and the account up to here; whether all of it is written."""
        writer = self._writer
        if writer is None:
            return True
        written = False
        for _ in range(MOST_ATTEMPTS):
            try:
                writer.batch.reach(offered, thinned)
                written = self._write(writer, closed=closed, patient=patient)
            except Exception as error:
                self._failures.add("Could not prepare records", error)
                continue
            if written or not (closed and patient):
                break
            # Records were dropped: once more, to account for them.
        return written

    def _write(
        self, writer: LineageWriter, *, closed: bool | None = None, patient: bool = True
    ) -> bool:
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
