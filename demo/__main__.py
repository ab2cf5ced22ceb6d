"""`python -m demo`: trains five runs, or the lottery's, and shows in TensorBoard how they grow."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import FIRST, NAMES
from demo.serve import Board

DEFAULT = Path("runs") / "demo"


def parser() -> argparse.ArgumentParser:
    """The command line of the demo."""
    top = argparse.ArgumentParser(prog="demo", description=__doc__)
    top.add_argument("--once", action="store_true", help="only train, don't start TensorBoard")
    top.add_argument("--logdir", type=Path, default=DEFAULT, help=f"where to (default {DEFAULT})")
    top.add_argument("--port", type=int, help="TensorBoard's port (default 6006 or the next free)")
    top.add_argument("--runs", nargs="+", choices=NAMES, help=f"default {' '.join(FIRST)}")
    return top


def clear(logdir: Path, names: Sequence[str]) -> None:
    """Makes room for runs: the demo's own directory is emptied of them, another must be without.

    Raises:
        FileExistsError: A directory that the user has named holds one of the runs.
    """
    for name in names:
        if not (logdir / name).exists():
            continue
        if logdir != DEFAULT:
            raise FileExistsError(
                f"Could not train the demo into {logdir}: expected no run {name!r} there, got one. "
                "Name another --logdir, or delete it."
            )
        shutil.rmtree(logdir / name)


class Clock:
    """Prints lines with the seconds since it was made, for what two threads have to say."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Prints a line."""
        print(f"{time.monotonic() - self._start:6.1f} s  {text}", flush=True)


def train(logdir: Path, names: Sequence[str], clock: Clock) -> None:
    """Trains runs one after the other, and says how far they are.

    Args:
        logdir: where they are recorded.
        names: of NAMES.
        clock: says it.
    """
    # Not at the top: they import TensorFlow, and `--help` should answer at once.
    from demo.digits import accuracy, digits
    from demo.runs import trained

    data = digits()
    for name in names:
        for run, model in trained(name, data, logdir, clock.say):
            clock.say(f"{run:18} {accuracy(model, data):6.1%} of the test digits right")
    clock.say(f"{len(names)} of {len(names)} trained into {logdir}")


def main(argv: Sequence[str]) -> int:
    """Runs the demo.

    Returns:
        The exit code.
    """
    arguments = parser().parse_args(argv)
    names, clock = arguments.runs or FIRST, Clock()
    try:
        clear(arguments.logdir, names)
    except FileExistsError as error:
        print(error)
        return 1
    if arguments.once:
        train(arguments.logdir, names, clock)
        print(f"See it with: tensorboard --logdir {arguments.logdir}")
        return 0
    arguments.logdir.mkdir(parents=True, exist_ok=True)
    board = Board(arguments.logdir, arguments.port, clock.say)
    try:
        train(arguments.logdir, names, clock)
        return board.finish()
    except KeyboardInterrupt:
        return 0
    finally:
        board.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
