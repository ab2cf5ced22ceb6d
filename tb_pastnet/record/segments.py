"""The files of one lineage: on this machine a few growing ones, in a store one for each group.

Local files are plain and unbuffered: errors reach us, a killed process loses nothing that was
written, and a slow disk never blocks the interpreter. Objects don't grow, so each is a whole event
file with its own description.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from tb_pastnet.errors import UnwritableLog
from tb_pastnet.format.files import (
    GrowingFile,
    UnusableURL,
    is_remote,
    join,
    list_directory,
    store_of,
)
from tb_pastnet.format.tags import RunName, lineage_directory, parse_run
from tb_pastnet.record.messages import version_event

SEGMENT_BYTES = 64 << 20
"""A segment that has grown to this size is followed by another one."""

BLOCK_SECONDS = 2.0
"""Local: waiting records are written at this age, so the tab follows the training."""

PUT_SECONDS = (10.0, 300.0)
"""In a store: seconds from one object to the next at first, and at most; it doubles."""

_MENDS: dict[int | None, str] = {
    errno.ENOSPC: "make room",
    errno.EEXIST: "remove the file that is in the way",
    errno.ENOTDIR: "remove the file that is in the way",
}

Head = Callable[[], bytes]
Body = Callable[[int], bytes]


class Segments(ABC):
    """The event files of one lineage, one after the other; names sort by time and number.

    Attributes:
        exit_seconds: how long the program waits at its end for unwritten records.
        retry_seconds: between attempts to write, at first and at most; it doubles.
    """

    exit_seconds = 2.0
    retry_seconds: tuple[float, float]

    def __init__(self, directory: str, start: float) -> None:
        self._directory = directory
        self._start = start
        self._number = 0
        self._total = 0

    @abstractmethod
    def open(self) -> None:
        """Starts a new segment; raises if it can't be made or written."""

    @abstractmethod
    def write(self, head: Head, body: Body) -> None:
        """Writes a group of events, in a new segment if the current one can't be used.

        `head` makes the events that a new segment begins with, `body` those of the group, from the
        number of bytes before it. If it raises, the group isn't readable: call it again.
        """

    @abstractmethod
    def wait(self, age: float, *, full: bool) -> float:
        """Seconds until waiting records are written, by their age and whether a block is full."""

    def close(self) -> None:  # noqa: B027
        """Ends the current segment; an error then loses nothing that was acknowledged."""

    def _new_path(self) -> str:
        # A number is never used twice: a reader may have open what failed, or have read it by now.
        name = f"events.out.tfevents.{int(self._start):010d}.{self._number:06d}.pastnet"
        self._number += 1
        return join(self._directory, name)


def segments_in(directory: str, start: float, exit_seconds: float) -> Segments:
    """The segments in a directory, on this machine or in a store."""
    if is_remote(directory):
        return ObjectSegments(directory, start, exit_seconds)
    return LocalSegments(directory, start)


class LocalSegments(Segments):
    """Files that grow, each followed by another one at a size."""

    retry_seconds = 0.25, 30.0

    def __init__(self, directory: str, start: float, size: int = SEGMENT_BYTES) -> None:
        super().__init__(directory, start)
        self._size = size
        self._file: GrowingFile | None = None
        self._written = 0
        self._fresh = False

    def open(self) -> None:
        """See `Segments`."""
        self.close()
        path = self._new_path()
        make_directory(self._directory)
        self._file = GrowingFile(path)
        self._written = 0
        self._fresh = True
        self._put(version_event(self._start))

    def write(self, head: Head, body: Body) -> None:
        """See `Segments`."""
        try:
            if self._file is None or self._written >= self._size or not self._file.intact():
                self.open()
            if self._fresh:
                self._put(head())
                self._fresh = False
            self._put(body(self._total))
        except Exception:
            self.close()
            raise

    def wait(self, age: float, *, full: bool) -> float:
        """See `Segments`."""
        return 0.0 if full else max(0.0, BLOCK_SECONDS - age)

    def close(self) -> None:
        """See `Segments`."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _put(self, data: bytes) -> None:
        if self._file is None:
            raise OSError("the segment is closed")
        self._file.write(data)
        self._written += len(data)
        self._total += len(data)


class ObjectSegments(Segments):
    """Objects of a store, each a whole event file that holds one group."""

    retry_seconds = 2.0, 60.0

    def __init__(self, directory: str, start: float, exit_seconds: float) -> None:
        super().__init__(directory, start)
        self.exit_seconds = exit_seconds
        self._interval = PUT_SECONDS[0]
        self._next = 0.0

    def open(self) -> None:
        """See `Segments`: an object that holds nothing yet proves that more can follow."""
        self._put(version_event(self._start))

    def write(self, head: Head, body: Body) -> None:
        """See `Segments`."""
        self._put(version_event(self._start) + head() + body(self._total))

    def wait(self, age: float, *, full: bool) -> float:
        """See `Segments`."""
        return max(0.0, self._next - time.monotonic())

    def _put(self, data: bytes) -> None:
        path = self._new_path()
        try:
            store_of(path).write(path, data)
            self._total += len(data)
        finally:
            # A failed request counts: it was sent. From its end, because a store may be slow.
            self._next = time.monotonic() + self._interval
            self._interval = min(2 * self._interval, PUT_SECONDS[1])


def make_directory(path: str) -> None:
    """Makes a directory on this machine, with missing parents."""
    Path(path).mkdir(parents=True, exist_ok=True)


def create_lineage(logdir: str, others: Sequence[RunName] = ()) -> RunName:
    """Reserves a directory, its ordinal above the largest, its id random; or UnwritableLog."""
    lineage = secrets.randbits(32) or 1
    try:
        earlier = (*lineages(logdir), *others)
        ordinal = 1 + max((run.ordinal for run in earlier), default=0)
        if not is_remote(logdir):
            make_directory(join(logdir, lineage_directory(ordinal, lineage)))
    except Exception as error:
        raise unwritable(logdir, error) from error
    return RunName(logdir, ordinal, lineage)


def lineages(logdir: str) -> list[RunName]:
    """The lineages in a log directory, in order; none if it doesn't exist."""
    names = [name.rstrip("/") for name in list_directory(logdir)]
    runs = [run._replace(run=logdir) for run in map(parse_run, names) if run is not None]
    return sorted(runs, key=lambda run: (run.ordinal, run.lineage))


def unwritable(logdir: str, error: BaseException) -> UnwritableLog:
    """The error for a log directory that can't be used."""
    got = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnwritableLog(
        f"Could not write to log directory {logdir!r}: expected one that can be made and written, "
        f"got {got!r}. {_mend(logdir, error)}"
    )


def _mend(logdir: str, error: BaseException) -> str:
    if isinstance(error, UnusableURL):
        return error.fix
    if is_remote(logdir):
        return "Choose another logdir, or check the connection, the bucket and your access to it."
    mend = _MENDS.get(getattr(error, "errno", None), "change its permissions")
    return f"Choose another logdir, or {mend}."
