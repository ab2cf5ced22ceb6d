"""A log as a local directory: the original, or a copy from a store."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.files import UnusableURL, is_remote, located, store_of
from tb_pastnet.format.folder import INFIX


class LocalLog:
    """The place where a log can be read; a copy is deleted with this object.

    Attributes:
        path: a local directory, which may not exist.

    Raises:
        UnreadableLog: a store can't be used, or holds nothing there.
    """

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
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

    def _copy(self, url: str) -> str:
        store = store_of(url)
        names = [name for name in store.below(url) if _is_log(PurePosixPath(name))]
        if not names:
            mend = "Pass the directory that training wrote to."
            raise _unreadable(url, "no event file there", mend)
        folder = Path(tempfile.mkdtemp(prefix="pastnet-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        store.fetch(url, names, folder)
        return str(folder)


def _is_log(name: PurePosixPath) -> bool:
    # A key is any text: it must not lead out of the folder.
    leads_out = name.is_absolute() or ".." in name.parts
    return INFIX in os.fsencode(name.name) and not leads_out


def _unreadable(logdir: str | os.PathLike[str], got: str, mend: str) -> UnreadableLog:
    return UnreadableLog(
        f"Could not read the log {os.fspath(logdir)!r}: expected a directory of event files, got "
        f"{got!r}. {mend}"
    )
