"""Golden pictures: kept as PNGs that people can look at, compared by their pixels."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HEAD = b"\x89PNG\r\n\x1a\n"
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"
"""Whether goldens are written instead of compared."""


def write_png(path: Path, picture: np.ndarray) -> None:
    """Writes uint8 (height, width, 4), without filters: small pictures alone."""
    height, width, _ = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(HEAD + b"".join(chunks))


def read_png(path: Path) -> np.ndarray:
    """Reads what `write_png` wrote; other PNGs fail."""
    data = path.read_bytes()
    assert data.startswith(HEAD), f"{path} is no PNG"
    width, height = struct.unpack(">II", data[16:24])
    size = struct.unpack(">I", data[33:37])[0]
    assert (data[24:29], data[37:41]) == (b"\x08\x06\0\0\0", b"IDAT"), f"{path} isn't ours"
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any(), f"{path} isn't ours"
    return lines[:, 1:].reshape(height, width, 4)


def pixels(told: Mapping[str, Any]) -> np.ndarray:
    """The uint8 (height, width, 4) of what the browser read."""
    flat = np.frombuffer(base64.b64decode(told["rgba"]), np.uint8)
    return flat.reshape(told["height"], told["width"], 4)


def stacked(parts: list[np.ndarray]) -> np.ndarray:
    """Pictures one above the other, the narrower ones with nothing on their right."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0))) for part in parts]
    )


def differing(found: np.ndarray, golden: np.ndarray, tolerance: int) -> int:
    """Pixels of which a channel differs by more than the tolerance; all of them if the sizes differ."""
    if found.shape != golden.shape:
        return int(found.shape[0] * found.shape[1])
    return int((np.abs(found.astype(int) - golden) > tolerance).any(axis=2).sum())


def against(golden: Path, found: np.ndarray, tolerance: int, kept: Path) -> str | None:
    """Compares a picture with its golden one, or writes that when asked to.

    Args:
        golden: its file.
        found: uint8 (height, width, 4).
        tolerance: by how much a channel of a pixel may differ.
        kept: where the picture goes if it differs, for a look at it.

    Returns:
        What is wrong, None if nothing is.
    """
    if UPDATE:
        if not golden.exists() or differing(found, read_png(golden), 0):
            write_png(golden, found)
        return None
    if not golden.exists():
        return f"{golden.name} isn't there: look at the picture, then write it by UPDATE_GOLDEN=1"
    wrong = differing(found, read_png(golden), tolerance)
    if not wrong:
        return None
    write_png(kept / golden.name, found)
    return f"{golden.name}: {wrong} pixels differ, see {kept / golden.name}"
