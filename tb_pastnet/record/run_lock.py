"""The lock of a run: an operating system lock, released when its process ends.

A process holds a lock once for all its recorders: a notebook cell that runs again can continue.
Stores have no locks.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from contextlib import suppress
from typing import Any

from tb_pastnet.format.files import is_remote, join

try:
    import fcntl
except ImportError:  # Windows
    fcntl: Any = None  # type: ignore[no-redef]

_NAME = ".pastnet.lock"
_ATTEMPTS = 5

# Locks of this process, by path.
_files: dict[str, int] = {}
_users: Counter[str] = Counter()


def _forget() -> None:
    """In a fork the locks are still the parent's."""
    _files.clear()
    _users.clear()


if fcntl is not None:
    os.register_at_fork(after_in_child=_forget)


class RunLock:
    """The lock of an existing run's directory, for one recorder.

    Attributes:
        held: whether it is this recorder's now.
    """

    def __init__(self, directory: str) -> None:
        self._path = "" if is_remote(directory) else os.path.realpath(join(directory, _NAME))
        self.held = False
        self._pid = os.getpid()

    def take(self) -> bool:
        """Takes it; False if another process has it. Without support for locks, it is free."""
        if not self.held and self._path and fcntl is not None:
            if not _users[self._path] and not _lock(self._path):
                return False
            _users[self._path] += 1
            self.held = True
        return True

    def __del__(self) -> None:
        # The recorder went without `close`.
        self.release()

    def release(self) -> None:
        """Releases it."""
        # In a fork it is still the parent's.
        if not self.held or self._pid != os.getpid():
            return
        self.held = False
        _users[self._path] -= 1
        if not _users[self._path] and self._path in _files:
            with suppress(OSError):
                os.unlink(self._path)  # noqa: PTH108 - as `os.open` below
            with suppress(OSError):
                os.close(_files.pop(self._path))


def _lock(path: str) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True  # an unwritable directory is reported elsewhere
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        if _is_at(file, path):
            # Closing any descriptor of the file would release the lock.
            _files[path] = file
            return True
        # The previous holder has removed the file in the meantime.
        os.close(file)
    return True


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))  # noqa: PTH116 - see above
    except OSError:
        return False
