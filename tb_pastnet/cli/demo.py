"""`pastnet demo`: trains three small runs in NumPy, and shows in TensorBoard how they grow."""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from tb_pastnet.cli.board import Board
from tb_pastnet.cli.demo_training import RUNS, train
from tb_pastnet.errors import UnwritableLog

WHOLE, UNUSABLE = 0, 2


def demo(options: argparse.Namespace, out: TextIO) -> int:
    """Runs the command; returns 0 after Ctrl-C, 2 if TensorBoard doesn't start.

    Raises UnwritableLog if the directory holds a run already, or can't be made.
    """
    folder = _folder(options.logdir)
    begun, lock = time.monotonic(), threading.Lock()

    def say(text: str) -> None:
        with lock:  # TensorBoard is watched by another thread
            out.write(f"{time.monotonic() - begun:6.1f} s  {text}\n")
            out.flush()

    if options.once:
        _train(folder, say)
        say(f"See it with: tensorboard --logdir {folder}")
        return WHOLE
    board = None
    former = signal.signal(signal.SIGTERM, _interrupt) if _is_main() else None
    try:
        board = Board(folder, options.port, say)
        _train(folder, say)
        return WHOLE if board.finish() == 0 else UNUSABLE
    except KeyboardInterrupt:
        return WHOLE
    finally:
        if board is not None:
            board.end()
        if former is not None:
            signal.signal(signal.SIGTERM, former)


def _train(folder: Path, say: Any) -> None:
    for run in RUNS:
        right = train(run, folder / run.name)
        say(f"{run.name:18} {right:6.1%} of the examples right")
    say(f"{len(RUNS)} runs trained into {folder}")


def _folder(given: str | None) -> Path:
    """The log directory: a new one unless the user names one."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="pastnet-demo-"))
    folder = Path(given)
    for run in RUNS:
        if (folder / run.name).exists():
            raise UnwritableLog(
                f"Could not train the demo into {given!r}: expected no run {run.name!r} there, got "
                f"one. Name another --logdir, or delete it."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableLog(
            f"Could not train the demo into {given!r}: expected a directory, got "
            f"{error.strerror or error}. Name another --logdir."
        ) from error
    return folder


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(*_: object) -> None:
    """Ends the command as Ctrl-C does, and TensorBoard with it."""
    raise KeyboardInterrupt
