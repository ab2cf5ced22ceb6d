"""What a training has recorded, in a line for the terminal."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress

from tb_pastnet.core.counted import counted, size_text
from tb_pastnet.format.overhead import Overhead

_WORTH_SAYING = 1_000_000
"""Bytes."""


def summary_line(
    logdir: str,
    records: int,
    verified: str,
    violations: int,
    sparsity: float,
    overhead: Overhead,
) -> str:
    """Summarises what a training has recorded: what was verified, violated channels, the sparsity.

    Example:
        >>> summary_line("runs/a", 1, "nothing was frozen", 0, 0.5, Overhead(10, 2.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0))
        'PastNet: 1 record; nothing was frozen; no violations, sparsity 50.0%, recording overhead 5.0%. See: tensorboard --logdir runs/a'
    """  # noqa: E501 - a line in a terminal
    parts = [counted(violations, "violated channel") if violations else "no violations"]
    if sparsity > 0:
        parts.append(f"sparsity {sparsity:.1%}")
    if overhead.training > 0:
        parts.append(f"recording overhead {overhead.share:.1%}")
    if overhead.memory >= _WORTH_SAYING:
        parts.append(f"{size_text(overhead.memory)} of memory")
    proven = f"{counted(records, 'record')}; {verified}"
    return f"PastNet: {proven}; {', '.join(parts)}. See: tensorboard --logdir {shlex.quote(logdir)}"


def say(line: str) -> None:
    """Shows it where the program doesn't print its own results."""
    # In a signal handler, or without a terminal, there may be no place for it.
    with suppress(Exception):
        sys.stderr.write(f"{line}\n")


def nothing_recorded(logdir: str, steps: int, every: int, idle: int = 0) -> str:
    """Explains why a training has no record of a step: none was due, or none was made.

    Args:
        logdir: of the run.
        steps: that it made.
        every: the argument.
        idle: calls of `record` before which no optimizer made a step.

    Example:
        >>> nothing_recorded("runs/a", 6, 10)
        'No record in runs/a: the training made 6 steps, but every=10. Use a smaller every=.'
        >>> nothing_recorded("runs/a", 0, 10, idle=40)
        'Only initial values in runs/a: record was called 40 times, but no optimizer made a step.'
    """
    if idle and not steps:
        times = counted(idle, "time")
        return (
            f"Only initial values in {logdir}: record was called {times}, but no optimizer made a "
            f"step."
        )
    return (
        f"No record in {logdir}: the training made {counted(steps, 'step')}, but every={every}. "
        f"Use a smaller every=."
    )
