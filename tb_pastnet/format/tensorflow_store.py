"""Objects in the stores that TensorFlow has file systems for; TensorFlow is already loaded.

Writes use TensorFlow's C interface. Its `GFile` aborts the process if an upload ends while the
interpreter exits, and blocks the interpreter while a failed upload times out.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_INTERNAL = "tensorflow.python._pywrap_tensorflow_internal"


class TensorFlowStore:
    """See `ObjectStore`; `tf` is the module."""

    def __init__(self, tf: Any) -> None:
        self._gfile = tf.io.gfile

    def names(self, path: str) -> list[str]:
        """See `ObjectStore`."""
        if not self._gfile.isdir(path):
            return []
        return sorted(str(name).rstrip("/") for name in self._gfile.listdir(path))

    def below(self, path: str) -> list[str]:
        """See `ObjectStore`."""
        begin = len(path.rstrip("/")) + 1
        walk = self._gfile.walk(path)
        return [
            f"{folder.rstrip('/')}/{name}"[begin:] for folder, _, names in walk for name in names
        ]

    def read(self, path: str) -> bytes:
        """See `ObjectStore`."""
        with self._gfile.GFile(path, "rb") as file:
            return bytes(file.read())

    def write(self, path: str, data: bytes) -> None:
        """See `ObjectStore`."""
        if not path.startswith("gs://"):  # there a directory would be another object
            self._gfile.makedirs(path.rpartition("/")[0])
        library = ctypes.CDLL(sys.modules[_INTERNAL].__file__)
        library.TF_NewStatus.restype = ctypes.c_void_p
        library.TF_Message.restype = ctypes.c_char_p
        status, file = ctypes.c_void_p(library.TF_NewStatus()), ctypes.c_void_p()

        def check() -> None:
            if library.TF_GetCode(status):
                message = library.TF_Message(status).decode(errors="replace")
                raise OSError(" ".join(message.split()))  # it has several lines

        try:
            library.TF_NewWritableFile(path.encode(), ctypes.byref(file), status)
            check()
            try:
                library.TF_AppendWritableFile(file, data, ctypes.c_size_t(len(data)), status)
                check()
            finally:
                library.TF_CloseWritableFile(file, status)
            check()
        finally:
            library.TF_DeleteStatus(status)

    def remove(self, path: str) -> None:
        """See `ObjectStore`."""
        self._gfile.rmtree(path)

    def fetch(self, path: str, names: Sequence[str], folder: Path) -> None:
        """See `ObjectStore`."""
        for name in names:
            (folder / name).write_bytes(self.read(f"{path.rstrip('/')}/{name}"))
