"""A log as a directory of this machine: its own, or a copy of what a store holds."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path, PurePosixPath

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.files import is_remote, located, store_of
from tb_pastnet.format.folder import INFIX


class LocalLog:
    """Where a log can be read; a copy goes with this object.

    Attributes:
        path: a directory of this machine, which needn't be there.

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
        except Exception as error:  # a driver has classes of its own
            raise _unreadable(logdir, str(error) or type(error).__name__) from error

    def _copy(self, url: str) -> str:
        store = store_of(url)
        names = [name for name in store.below(url) if _is_log(PurePosixPath(name))]
        if not names:
            raise _unreadable(url, "no event file there")
        folder = Path(tempfile.mkdtemp(prefix="pastnet-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        store.fetch(url, names, folder)
        return str(folder)


def _is_log(name: PurePosixPath) -> bool:
    # A key is any text: it shall not lead out of the folder.
    leads_out = name.is_absolute() or ".." in name.parts
    return INFIX in os.fsencode(name.name) and not leads_out


def _unreadable(logdir: str | os.PathLike[str], got: str) -> UnreadableLog:
    return UnreadableLog(
        f"Could not read the log {os.fspath(logdir)!r}: expected a directory of event files, got "
        f"{got!r}. Give what training wrote to, and check access and driver."
    )
