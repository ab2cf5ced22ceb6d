"""Files on this machine, and objects in the stores of fsspec's drivers, or of TensorFlow.

A path with "://" is in a store. Objects are written whole and read whole; none grows. TensorFlow's
file systems are used if fsspec has no driver and the process has loaded TensorFlow.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

_DRIVERS = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hdfs": "pyarrow",
    "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs", "adl": "adlfs",
}  # fmt: skip
_INTERNAL = "tensorflow.python._pywrap_tensorflow_internal"
_OTHER_SCHEME = f"Use one of {', '.join(f'{each}://' for each in _DRIVERS)}, or another of fsspec."


class UnusableURL(OSError):
    """A URL that no driver can use.

    Attributes:
        fix: what to do about it, as a sentence.
    """

    def __init__(self, got: str, fix: str) -> None:
        super().__init__(got)
        self.fix = fix


def located(path: str | os.PathLike[str]) -> str:
    """A path, resolved: `~` is the home directory, file:// a path of this machine.

    Raises UnusableURL for one that none of these functions can use.
    """
    text = os.fspath(path)
    if text.startswith("file://"):
        text = url2pathname(urlsplit(text).path)
    if not is_remote(text):
        return os.path.expanduser(text)  # noqa: PTH111 - a Path raises for unknown users
    if "?" in text:
        mend = "Leave the query out: set a driver's options in fsspec's configuration."
        raise UnusableURL("a URL with a query", mend)
    if text.rstrip("/").endswith(":"):
        raise UnusableURL("a URL without a path", f"Write {text.partition(':')[0]}://bucket/runs.")
    return text.rstrip("/")


def is_remote(path: str) -> bool:
    """Whether a path is in a store."""
    return "://" in path


def join(directory: str, name: str) -> str:
    """The path of an entry of a directory."""
    return f"{directory.rstrip('/')}/{name}" if is_remote(directory) else str(Path(directory, name))


def base_name(path: str) -> str:
    """The last part of a path, even of "."."""
    return path.rstrip("/").rpartition("/")[2] if is_remote(path) else Path(path).resolve().name


def remove_directory(path: str) -> None:
    """Removes a directory with all that is in it."""
    if is_remote(path):
        store_of(path).remove(path)
    else:
        shutil.rmtree(path)


def list_directory(path: str) -> list[str]:
    """Names of the entries of a directory; none if it doesn't exist."""
    if is_remote(path):
        return store_of(path).names(path)
    return sorted(os.listdir(path)) if Path(path).exists() else []  # noqa: PTH208


def open_to_read(path: str) -> BinaryIO:
    """Opens a file; an object of a store is read whole."""
    return BytesIO(store_of(path).read(path)) if is_remote(path) else Path(path).open("rb")


class GrowingFile:
    """A new file of this machine, unbuffered: errors reach us, a killed process loses nothing."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        # Append to what others left: don't overwrite it.
        self._file = open(path, "ab", buffering=0, opener=_only_new)  # noqa: SIM115
        self._written = 0

    def write(self, data: bytes) -> None:
        """Writes all bytes, or raises OSError."""
        left = memoryview(data)
        while left:
            count = self._file.write(left)
            if not count:
                raise OSError("nothing could be written")
            self._written += count
            left = left[count:]

    def intact(self) -> bool:
        """Whether it still exists with all that was written: others may have truncated it."""
        with suppress(OSError):
            return self._path.stat().st_size == self._written
        return False

    def close(self) -> None:
        """Closes it."""
        self._file.close()


def _only_new(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o666)


class ObjectStore(Protocol):
    """What a store must do. Paths are URLs; failures raise the driver's own classes."""

    def names(self, path: str) -> list[str]:
        """See `list_directory`."""

    def below(self, path: str) -> list[str]:
        """The paths of all files below a directory, at any depth, from there on."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def write(self, path: str, data: bytes) -> None:
        """Makes a file, in one request if the store can."""

    def remove(self, path: str) -> None:
        """Removes a directory with all that is in it."""

    def fetch(self, path: str, names: Sequence[str], folder: Path) -> None:
        """Copies files below a directory to this machine, many at once where the driver can."""


def store_of(path: str) -> ObjectStore:
    """The store of a URL; raises UnusableURL that says what to install if there is no driver."""
    protocol = path.partition("://")[0]
    try:
        from fsspec.core import url_to_fs  # only if stores are used

        return _FsspecStore(url_to_fs(path)[0])
    except (ImportError, ValueError) as error:
        tf: Any = sys.modules.get("tensorflow")
        if tf is not None and protocol in tf.io.gfile.get_registered_schemes():
            return _TensorFlowStore(tf)
        driver = _DRIVERS.get(protocol)
        mend = f"Run: pip install {driver}." if driver else _OTHER_SCHEME
        raise UnusableURL(f"no driver for {protocol}://", mend) from error


class _FsspecStore:
    def __init__(self, file_system: Any) -> None:
        self._fs = file_system

    def _inside(self, path: str) -> str:
        # Others may have written in the meantime.
        self._fs.invalidate_cache()
        inside: str = self._fs._strip_protocol(path)
        return inside

    def names(self, path: str) -> list[str]:
        try:
            found = self._fs.ls(self._inside(path), detail=False)
        except FileNotFoundError:
            return []
        return sorted(str(name).rstrip("/").rpartition("/")[2] for name in found)

    def below(self, path: str) -> list[str]:
        inside = self._inside(path).rstrip("/")
        return [str(each)[len(inside) + 1 :] for each in self._fs.find(inside)]

    def read(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(self._inside(path)))

    def write(self, path: str, data: bytes) -> None:
        inside = self._inside(path)
        # Object stores, whose drivers are asynchronous, have no directories; a missing bucket
        # would be made.
        if not self._fs.async_impl:
            self._fs.makedirs(inside.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(inside, data)

    def remove(self, path: str) -> None:
        self._fs.rm(self._inside(path), recursive=True)

    def fetch(self, path: str, names: Sequence[str], folder: Path) -> None:
        inside = self._inside(path).rstrip("/")
        sources = [f"{inside}/{name}" for name in names]
        targets = [str(folder / name) for name in names]
        with _progress(path) as callback:
            self._fs.get(sources, targets, callback=callback)


def _progress(path: str) -> Any:
    """A progress bar on a terminal after two seconds, if tqdm is installed."""
    from fsspec.callbacks import NoOpCallback, TqdmCallback

    # fsspec's own bar fails at its end if it couldn't start.
    if find_spec("tqdm") is None:
        return NoOpCallback()
    return TqdmCallback(tqdm_kwargs={"desc": f"Fetching {path}", "delay": 2, "disable": None})


class _TensorFlowStore:
    """Writes use TensorFlow's C interface.

    Its `GFile` aborts the process if an upload ends while the interpreter exits, and blocks the
    interpreter while a failed upload times out.
    """

    def __init__(self, tf: Any) -> None:
        self._gfile = tf.io.gfile

    def names(self, path: str) -> list[str]:
        if not self._gfile.isdir(path):
            return []
        return sorted(str(name).rstrip("/") for name in self._gfile.listdir(path))

    def below(self, path: str) -> list[str]:
        begin = len(path.rstrip("/")) + 1
        walk = self._gfile.walk(path)
        return [
            f"{folder.rstrip('/')}/{name}"[begin:] for folder, _, names in walk for name in names
        ]

    def read(self, path: str) -> bytes:
        with self._gfile.GFile(path, "rb") as file:
            return bytes(file.read())

    def write(self, path: str, data: bytes) -> None:
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
        self._gfile.rmtree(path)

    def fetch(self, path: str, names: Sequence[str], folder: Path) -> None:
        for name in names:
            (folder / name).write_bytes(self.read(f"{path.rstrip('/')}/{name}"))
