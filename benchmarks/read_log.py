"""What it takes to read a log back: `pastnet.read` on logs of many runs, without any TensorBoard.

    python -m benchmarks.read_log [LOGDIR]

Without a directory a log of 20 runs × 300 layers × 1,000 steps is written first (see `_logs`),
50,000 channels a run. Seconds of the clock and of the processor: the machine may do other work.
The numbers are those of docs/reading_logs.md.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import tb_pastnet as pastnet
from benchmarks._logs import Size, write_logs
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.log import Log, Run

Value = TypeVar("Value")

BAR = 10.0  # seconds of the processor to open a log of the size above


def timed(what: str, action: Callable[[], Value]) -> tuple[Value, float]:
    """Prints how long something takes.

    Returns:
        What it gives, and the seconds of the processor.
    """
    clock, processor = time.monotonic(), time.process_time()
    value = action()
    spent = time.process_time() - processor
    print(f"  {what:46} {time.monotonic() - clock:7.2f} s, processor {spent:6.2f} s")
    return value, spent


def every_array(run: Run) -> int:
    """Reads the eight statistics of all layers of a run, one layer after the other.

    Returns:
        How many numbers that were.
    """
    layers = run.layers.values()
    return sum(getattr(layer, name).size for layer in layers for name in STATISTICS)


def measure(logdir: Path) -> float:
    """Reads a log and prints what that takes.

    Returns:
        Seconds of the processor to open it.
    """
    paths = [path for path in logdir.rglob("*tfevents*") if path.is_file()]
    size = sum(path.stat().st_size for path in paths) / 2**20
    print(f"{logdir}: {len(paths)} files, {size:,.0f} MiB")
    log, opening = timed("open, with the account of every run", lambda: pastnet.read(logdir))
    records = sum(len(run.steps) for run in log.runs.values())
    print(f"  {len(log.runs)} runs, {records:,} records of all layers of a run")
    _some(log)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  memory at most {memory:,.0f} MiB")
    return opening


def _some(log: Log) -> None:
    run = next(iter(log.runs.values()))
    layer = list(run.layers.values())[len(run.layers) // 2]
    timed(f"a layer of {layer.channels} channels: its norms", lambda: layer.norm)
    timed("the same layer: its states", layer.states)
    timed("violations of all runs", lambda: [one.violations for one in log.runs.values()])
    timed(f"overview of a run, {len(run.layers)} layers", run.overview)
    timed("the same again, another threshold", lambda: run.overview(threshold=3e-4))
    numbers, _ = timed("every statistic of every layer of a run", lambda: every_array(run))
    print(f"  these were {numbers:,} numbers")


def main() -> int:
    """Measures.

    Returns:
        The exit code: 1 if opening takes longer than the bar.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("logdir", type=Path, nargs="?", help="a log that is there already")
    logdir = parser.parse_args().logdir
    if logdir is not None:
        return int(measure(logdir) > BAR)
    with tempfile.TemporaryDirectory() as folder:
        write_logs(Path(folder), Size())
        return int(measure(Path(folder)) > BAR)


if __name__ == "__main__":
    sys.exit(main())
