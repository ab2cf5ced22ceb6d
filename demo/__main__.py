"""`python -m demo`: trains five runs, or the lottery's, and shows in TensorBoard how they grow."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import FIRST, NAMES
from demo.frameworks import FRAMEWORKS, Framework
from tb_pastnet.cli.board import Board

OWN = [framework.logdir for framework in FRAMEWORKS.values()]  # directories of the demo


def parser() -> argparse.ArgumentParser:
    """The command line of the demo."""
    top = argparse.ArgumentParser(prog="demo", description=__doc__)
    top.add_argument("--framework", choices=FRAMEWORKS, default="keras", help="default keras")
    top.add_argument("--once", action="store_true", help="only train, don't start TensorBoard")
    top.add_argument("--logdir", type=Path, help=f"where to (default {', '.join(map(str, OWN))})")
    top.add_argument("--port", type=int, help="TensorBoard's port (default 6006 or the next free)")
    top.add_argument("--runs", nargs="+", choices=NAMES, help=f"default {' '.join(FIRST)}")
    return top


def clear(logdir: Path, names: Sequence[str]) -> None:
    """Makes room for runs: a directory of the demo is emptied of them, another must be without.

    Raises:
        FileExistsError: A directory that the user has named holds one of the runs.
    """
    for name in names:
        if not (logdir / name).exists():
            continue
        if logdir not in OWN:
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


def train(framework: Framework, logdir: Path, names: Sequence[str], clock: Clock) -> None:
    """Trains runs one after the other, and says how far they are.

    Args:
        framework: trains them.
        logdir: where they are recorded.
        names: of its runs.
        clock: says it.
    """
    # Not at the top: `--help` should answer at once.
    from demo.digits import digits

    data, runs = digits(), framework.load()
    for name in names:
        for run, right in runs.trained(name, data, logdir, clock.say):
            clock.say(f"{run:18} {right:6.1%} of the test digits right")
    clock.say(f"{len(names)} of {len(names)} trained into {logdir}")


def main(argv: Sequence[str]) -> int:
    """Runs the demo.

    Returns:
        The exit code.
    """
    arguments = parser().parse_args(argv)
    framework = FRAMEWORKS[arguments.framework]
    names, logdir = arguments.runs or FIRST, arguments.logdir or framework.logdir
    clock = Clock()
    try:
        framework.check(names)
        clear(logdir, names)
    except (FileExistsError, ModuleNotFoundError, ValueError) as error:
        print(error)
        return 1
    if arguments.once:
        train(framework, logdir, names, clock)
        print(f"See it with: tensorboard --logdir {logdir}")
        return 0
    logdir.mkdir(parents=True, exist_ok=True)
    board = Board(logdir, arguments.port, clock.say)
    try:
        train(framework, logdir, names, clock)
        return board.finish()
    except KeyboardInterrupt:
        return 0
    finally:
        board.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
