"""The runs of a log directory: a run is a directory with event files, as in TensorBoard.

Names are those of TensorBoard's fast loader: the path below the log directory, `.` for the
log directory itself, and U+FFFD for what is not UTF-8. Links are followed, but not in circles.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from tb_pastnet.errors import UnreadableLog

INFIX = b"tfevents"
"""Part of the name of each event file."""

_Place = tuple[int, int]


def find_runs(logdir: str | os.PathLike[str]) -> dict[str, tuple[Path, ...]]:
    """Finds the event files of a log directory, by run; none of them is opened.

    Runs and their files are in the order of their names. A directory below it that can't be listed
    stands for its files: opening it fails. Raises UnreadableLog if it isn't a directory, or can't
    be listed.
    """
    root = os.fsencode(logdir)
    try:
        place = Path(logdir).stat()
        os.scandir(root).close()
    except (OSError, ValueError) as error:
        raise UnreadableLog(
            f"Could not read the log {os.fspath(logdir)!r}: expected a directory, got "
            f"{_reason(error)}. Pass the directory that training wrote to, or one above it."
        ) from error
    runs: dict[str, list[bytes]] = {}
    for directory, files in _walk(root, (place.st_dev, place.st_ino)):
        name = os.path.relpath(directory, root).replace(os.fsencode(os.sep), b"/")
        runs.setdefault(name.decode("utf-8", "replace"), []).extend(files)
    return {name: tuple(Path(os.fsdecode(path)) for path in runs[name]) for name in sorted(runs)}


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _walk(root: bytes, place: _Place) -> Iterator[tuple[bytes, list[bytes]]]:
    """Every directory with event files, and the files."""
    left: list[tuple[bytes, frozenset[_Place]]] = [(root, frozenset([place]))]
    while left:
        directory, above = left.pop()
        files, inside = _list(directory)
        if files:
            yield directory, files
        for path, where in reversed(inside):
            if where not in above:
                left.append((path, above | {where}))


def _list(directory: bytes) -> tuple[list[bytes], list[tuple[bytes, _Place]]]:
    files: list[bytes] = []
    inside: list[tuple[bytes, _Place]] = []
    try:
        with os.scandir(directory) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):  # deleted in the meantime
        return files, inside
    except OSError:
        return [directory], inside
    for entry in ordered:
        try:
            if entry.is_dir():
                place = entry.stat()
                inside.append((entry.path, (place.st_dev, place.st_ino)))
            elif INFIX in entry.name and entry.is_file():
                files.append(entry.path)
        except OSError as error:
            # Gone, or a link in a circle. Otherwise it stands for its files: opening it fails.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) and (
                INFIX in entry.name or entry.is_dir(follow_symlinks=False)
            ):
                files.append(entry.path)
    return files, inside
