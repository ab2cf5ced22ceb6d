"""`python -m demo`: trains five runs, or the lottery's, and shows them in TensorBoard."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import FIRST, NAMES
from demo.serve import serve

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


def train(logdir: Path, names: Sequence[str]) -> None:
    """Trains runs one after the other and prints a line for each.

    Args:
        logdir: where they are recorded.
        names: of NAMES.
    """
    # Not at the top: they import TensorFlow, and `--help` should answer at once.
    from demo.digits import accuracy, digits
    from demo.runs import trained

    data = digits()
    print(f"Training {', '.join(names)} into {logdir}", flush=True)
    start = began = time.monotonic()
    for name in names:
        for run, model in trained(name, data, logdir):
            took, began = time.monotonic() - began, time.monotonic()
            right = accuracy(model, data)
            print(f"  {run:18} {right:6.1%} of the test digits right, {took:4.1f} s", flush=True)
    print(f"Trained in {time.monotonic() - start:.0f} s", flush=True)


def main(argv: Sequence[str]) -> int:
    """Runs the demo.

    Returns:
        The exit code.
    """
    arguments = parser().parse_args(argv)
    names = arguments.runs or FIRST
    try:
        clear(arguments.logdir, names)
    except FileExistsError as error:
        print(error)
        return 1
    train(arguments.logdir, names)
    if arguments.once:
        print(f"See it with: tensorboard --logdir {arguments.logdir}")
        return 0
    return serve(arguments.logdir, arguments.port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
