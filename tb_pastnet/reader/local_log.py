"""A log as a local directory: the original, or a copy from a store."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.files import ObjectStore, UnusableURL, is_remote, located, store_of
from tb_pastnet.format.folder import INFIX

_OF_AN_OBJECT = (
    FileNotFoundError,
    PermissionError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
)
"""Errors that concern an object and not the store."""


class LocalLog(os.PathLike[str]):
    """The place where a log can be read; a copy is deleted with this object.

    Attributes:
        path: a local directory, which may not exist.
        given: what the user wrote.
        left_out: how many event files of a store can't be copied: no file can have such a key, or
            the object can't be read.

    Raises:
        UnreadableLog: a store can't be used, or holds nothing there.
    """

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        self.left_out, self.given = 0, os.fspath(logdir)
        try:
            self.path = located(logdir)
            if is_remote(self.path):
                self.path = self._copy(self.path)
        except UnreadableLog:
            raise
        except UnusableURL as error:
            raise _unreadable(logdir, str(error), error.fix) from error
        except Exception as error:  # a driver has its own classes
            mend = "Check the connection, the bucket and your access to it."
            raise _unreadable(logdir, str(error) or type(error).__name__, mend) from error

    def __fspath__(self) -> str:
        return self.path

    def _copy(self, url: str) -> str:
        store = store_of(url)
        infix = INFIX.decode()
        names = sorted(name for name in store.below(url) if infix in PurePosixPath(name).name)
        if not names:
            mend = "Pass the directory that training wrote to."
            raise _unreadable(url, "no event file there", mend)
        folder = Path(tempfile.mkdtemp(prefix="pastnet-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        usable = [name for name in names if _reserve(folder, PurePosixPath(name))]
        try:
            store.fetch(url, usable, folder)
        except _OF_AN_OBJECT as error:
            usable = [name for name in usable if _fetch(store, url, name, folder)]
            if not usable:
                raise error
        self.left_out = len(names) - len(usable)
        return str(folder)


def _reserve(folder: Path, name: PurePosixPath) -> bool:
    """Makes an empty file; False if none can have the name, which is any text.

    It may be too long, hold a NUL, be another one's directory, or lead out of the folder.
    """
    if name.is_absolute() or ".." in name.parts:
        return False
    try:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("xb").close()
    except (OSError, ValueError):
        return False
    return True


def _fetch(store: ObjectStore, url: str, name: str, folder: Path) -> bool:
    """Copies one object; False, and no file, if it can't be read."""
    try:
        data = store.read(f"{url.rstrip('/')}/{name}")
    except _OF_AN_OBJECT:
        (folder / name).unlink()
        return False
    (folder / name).write_bytes(data)
    return True


def _unreadable(logdir: str | os.PathLike[str], got: str, mend: str) -> UnreadableLog:
    return UnreadableLog(
        f"Could not read the log {os.fspath(logdir)!r}: expected a directory of event files, got "
        f"{got!r}. {mend}"
    )
