"""The files of one lineage: created, written, replaced after an error, closed at a size.

Local files are plain and unbuffered: errors reach us, what was written survives a killed process,
and a slow disk never holds the interpreter. Remote ones go through TensorFlow's file systems, or
those of TensorBoard's stand-in.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tb_pastnet.errors import UnwritableLog
from tb_pastnet.format.tags import RunName, lineage_directory, parse_run
from tb_pastnet.record.messages import version_event

SEGMENT_BYTES = 64 << 20
"""A segment that has grown to this size is followed by another one."""


class Segments:
    """The event files of one lineage, one after the other; names sort by `start` and number."""

    def __init__(self, directory: str, start: float, size: int = SEGMENT_BYTES) -> None:
        self.directory = directory
        self._start = start
        self._size = size
        self._number = 0
        self._file: _LocalFile | _RemoteFile | None = None
        self._written = 0
        self._total = 0
        self._fresh = False

    def open(self) -> None:
        """Starts a new segment; raises OSError where it can't be made or written."""
        self.close()
        name = f"events.out.tfevents.{int(self._start):010d}.{self._number:06d}.pastnet"
        # A number is never used twice: a reader that had the file open would miss the new one.
        self._number += 1
        make_directory(self.directory)
        self._file = open_file(join(self.directory, name))
        self._written = 0
        self._fresh = True
        self._put(version_event(self._start))

    def write(self, head: Callable[[], bytes], body: Callable[[int], bytes]) -> None:
        """Writes a group of events, in a new segment where the current one can't be used.

        `head` makes the events that a new segment begins with, `body` those of the group, from the
        number of bytes before it. Where it raises the group isn't readable: call it again.
        """
        try:
            if self._file is None or self._written >= self._size or not self._file.exists():
                self.open()
            if self._fresh:
                self._put(head())
                self._fresh = False
            self._put(body(self._total))
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Closes the current segment; an error in that costs nothing that was acknowledged."""
        file, self._file = self._file, None
        if file is not None:
            # Remote file systems raise classes of their own.
            with contextlib.suppress(Exception):
                file.close()

    def _put(self, data: bytes) -> None:
        if self._file is None:
            raise OSError("the segment is closed")
        self._file.write(data)
        self._written += len(data)
        self._total += len(data)


def create_lineage(logdir: str) -> RunName:
    """Reserves a directory, its ordinal above the largest, its id random; or UnwritableLog."""
    lineage = secrets.randbits(32) or 1
    try:
        ordinal = 1 + max((run.ordinal for run in lineages(logdir)), default=0)
        make_directory(join(logdir, lineage_directory(ordinal, lineage)))
    except Exception as error:
        raise unwritable(logdir, error) from error
    return RunName(logdir, ordinal, lineage)


def lineages(logdir: str) -> list[RunName]:
    """The lineages in a log directory, in order; none where there is no such directory."""
    names = [name.rstrip("/") for name in list_directory(logdir)]
    runs = [run._replace(run=logdir) for run in map(parse_run, names) if run is not None]
    return sorted(runs, key=lambda run: (run.ordinal, run.lineage))


def unwritable(logdir: str, error: BaseException) -> UnwritableLog:
    """The error of a log directory that can't be used."""
    got = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnwritableLog(
        f"Could not write to log directory {logdir!r}: expected one that can be made and written, "
        f"got {got!r}. Choose another logdir, or change its permissions."
    )


def is_remote(path: str) -> bool:
    """Whether a path belongs to one of TensorFlow's file systems."""
    return "://" in path


def join(directory: str, name: str) -> str:
    """The path of an entry of a directory, local or remote."""
    return f"{directory.rstrip('/')}/{name}" if is_remote(directory) else str(Path(directory, name))


def base_name(path: str) -> str:
    """The last part of a path, also of one such as "."."""
    return path.rstrip("/").rpartition("/")[2] if is_remote(path) else Path(path).resolve().name


def make_directory(path: str) -> None:
    """Makes a directory and its parents where they are missing."""
    if is_remote(path):
        _gfile().makedirs(path)
    else:
        Path(path).mkdir(parents=True, exist_ok=True)


def remove_directory(path: str) -> None:
    """Removes a directory with all that is in it."""
    if is_remote(path):
        _gfile().rmtree(path)
    else:
        shutil.rmtree(path)


def list_directory(path: str) -> list[str]:
    """Names of the entries of a directory; none where there is no such directory."""
    if is_remote(path):
        return list(_gfile().listdir(path)) if _gfile().isdir(path) else []
    return sorted(os.listdir(path)) if Path(path).exists() else []  # noqa: PTH208


def open_to_read(path: str) -> Any:
    """Opens an existing file for reading, local or remote."""
    return _gfile().GFile(path, "rb") if is_remote(path) else Path(path).open("rb")


def open_file(path: str) -> _LocalFile | _RemoteFile:
    """Opens a new file for writing."""
    return _RemoteFile(path) if is_remote(path) else _LocalFile(path)


class _LocalFile:
    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._file = self._path.open("xb", buffering=0)

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            count = self._file.write(left)
            if not count:
                raise OSError("nothing could be written")
            left = left[count:]

    def exists(self) -> bool:
        return self._path.exists()

    def close(self) -> None:
        self._file.close()


class _RemoteFile:
    def __init__(self, path: str) -> None:
        self._file = _gfile().GFile(path, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def exists(self) -> bool:
        # Asking a remote file system before each write would cost more than it saves.
        return True

    def close(self) -> None:
        self._file.close()


def _gfile() -> Any:
    from tensorboard.compat import tf

    return tf.io.gfile
