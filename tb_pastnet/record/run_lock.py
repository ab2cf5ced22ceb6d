"""The lock of a run: an operating system lock, released when its process ends.

A process holds a lock once for all its recorders: a notebook cell that runs again can continue.
Stores have no locks.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tb_pastnet.format.files import is_remote, join

_NAME = ".pastnet.lock"
_ATTEMPTS = 5


def _system(name: str) -> Any:
    """A module of the operating system's own; None on another system."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl, _msvcrt = _system("fcntl"), _system("msvcrt")

# Locks of this process, by path.
_files: dict[str, int] = {}
_users: Counter[str] = Counter()


def _forget() -> None:
    """In a fork the locks are still the parent's."""
    _files.clear()
    _users.clear()


if hasattr(os, "register_at_fork"):
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
        if not self.held and self._path and (_fcntl or _msvcrt):
            if not _users[self._path] and not _lock(self._path):
                return False
            _users[self._path] += 1
            self.held = True
        return True

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        # The recorder went without `close`. While Python ends, what this needs may be gone, even
        # the names of this module.
        if not ends():
            self.release()

    def release(self) -> None:
        """Releases it."""
        # In a fork it is still the parent's.
        if not self.held or self._pid != os.getpid():
            return
        self.held = False
        _users[self._path] -= 1
        if not _users[self._path]:
            _remove(self._path)


def release_all() -> None:
    """Releases all locks of this process, at its end."""
    for path in tuple(_files):
        _remove(path)


def _remove(path: str) -> None:
    """Removes the file of a lock, and with it the lock, if this process has it."""
    file = _files.pop(path, None)
    if file is None:
        return
    if _fcntl is None:
        # Windows removes no file that is open.
        with suppress(OSError):
            os.close(file)
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108 - as `os.open` below
    if _fcntl is not None:
        with suppress(OSError):
            os.close(file)


def _lock(path: str) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True  # an unwritable directory is reported elsewhere
        try:
            _try_lock(file)
        except OSError as error:
            os.close(file)
            return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
        if _is_at(file, path):
            # Closing any descriptor of the file would release the lock.
            _files[path] = file
            return True
        # The previous holder has removed the file in the meantime.
        os.close(file)
    return True


def _try_lock(file: int) -> None:
    """Locks an open file, or raises OSError at once."""
    if _fcntl is not None:
        _fcntl.lockf(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    else:
        _msvcrt.locking(file, _msvcrt.LK_NBLCK, 1)


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))  # noqa: PTH116 - see above
    except OSError:
        return False
