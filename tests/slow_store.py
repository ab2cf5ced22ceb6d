"""A store whose files can't grow, and are uploaded slowly as they are closed: `slow:///PATH`."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem


class SlowFileSystem(LocalFileSystem):  # type: ignore[misc]
    """Keeps its files on this machine's disk, for other processes; takes `seconds` for each."""

    protocol = "slow"
    seconds = 2.0
    refuses: Callable[[], bool] = staticmethod(lambda: False)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(LocalFileSystem._strip_protocol(path.removeprefix("slow://")))

    def _open(self, path: str, mode: str = "rb", **settings: Any) -> Any:
        if mode == "rb":
            return Path(path).open("rb")
        if mode != "wb":
            raise NotImplementedError(f"files that are opened to {mode!r}")
        return _Upload(Path(path))


class _Upload(BytesIO):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            time.sleep(SlowFileSystem.seconds)
            if SlowFileSystem.refuses():
                super().close()
                raise PermissionError("ExpiredToken")
            self._path.write_bytes(self.getvalue())
        super().close()


fsspec.register_implementation("slow", SlowFileSystem, clobber=True)
