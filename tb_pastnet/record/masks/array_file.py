"""Arrays in a zip file, as `numpy.savez` writes them, which may be damaged or hostile when read.

The zip has a CRC-32 of each array, and reading verifies it. Nothing is inflated beyond the size
that the caller expects.
"""

from __future__ import annotations

import io
import math
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument

Array = npt.NDArray[Any]

HEADER = 1 << 14
"""Bytes that may precede the values of an array: its dtype and shape as text."""

_TYPES = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


@contextmanager
def untrusted(task: str, expected: str, mend: str) -> Iterator[None]:
    """Turns whatever damaged bytes make decoders raise into InvalidArgument."""
    try:
        yield
    except InvalidArgument:
        raise
    except Exception as error:
        # A zip file with a flipped bit raises from struct, zlib, ast, NumPy, … or asks for a
        # password: no list of their exceptions is complete.
        got = " ".join(str(error).split())[:100]
        raise InvalidArgument(
            f"Could not {task}: expected {expected}, got a damaged or another one "
            f"({type(error).__name__}: {got}). {mend}"
        ) from error


def read_array(archive: zipfile.ZipFile, name: str, most: int) -> Array:
    """One array of at most so many bytes, read-only; raises anything if it is damaged or larger."""
    info = archive.getinfo(f"{name}.npy")
    if info.file_size > most + HEADER or info.compress_type not in _TYPES:
        raise ValueError(f"{name} of {info.file_size} bytes")
    with archive.open(info) as member:
        # To behind its end: then its checksum is compared.
        data = member.read(info.file_size + 1)
    stream = io.BytesIO(data[:HEADER])
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, fortran, dtype = read[version](stream)
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biufcV" or dtype.names or len(data) != stream.tell() + size:
        raise ValueError(f"{name} of dtype {dtype} and shape {shape}")
    if size > most:
        raise ValueError(f"{name} of {size} bytes")
    return np.ndarray(shape, dtype, data, stream.tell(), order="F" if fortran else "C")


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Writes a file at once: if that fails, an earlier one stays as it is."""
    with _replacing(Path(os.path.realpath(path))) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():
        # A device or a pipe has no content to keep.
        with path.open("wb") as file:
            yield file
        return
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            beside.chmod(path.stat().st_mode & 0o7777)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
