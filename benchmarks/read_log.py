"""What it takes to read a log back: `pastnet.read` on logs of many runs, without any TensorBoard.

    python -m benchmarks.read_log [LOGDIR]

Without a directory a log of 20 runs × 300 layers × 1,000 steps is written first (see `_logs`),
50,000 channels a run. Seconds of the clock and of the processor: the machine may do other work.
The numbers are those of docs/how_to/reading_logs.md.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import tb_pastnet as pastnet
from benchmarks._logs import TINY, Size, write_logs
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.reader.log import Log, Run

Value = TypeVar("Value")

TITLE = "Reading a log back"
BAR = 10.0  # seconds of the processor to open a log of the size above


class Timer:
    """Times what is done with a log.

    Args:
        rows: its figures go there.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __call__(self, what: str, action: Callable[[], Value], bar: float | None = None) -> Value:
        """Prints how long something takes, and gives its value.

        Args:
            what: is done.
            action: does it.
            bar: the most seconds of the processor.
        """
        clock, processor = time.monotonic(), time.process_time()
        value = action()
        spent = time.process_time() - processor
        self._rows.line(TITLE, what, time.monotonic() - clock, "s", column="clock")
        self._rows.line(TITLE, what, spent, "s", column="processor", bar=bar)
        return value


def every_array(run: Run) -> int:
    """Reads the eight statistics of all layers of a run, one layer after the other.

    Returns:
        How many numbers that were.
    """
    layers = run.layers.values()
    return sum(getattr(layer, name).size for layer in layers for name in STATISTICS)


def measure(logdir: Path, rows: Rows) -> int:
    """Reads a log and prints what that takes.

    Returns:
        The exit code: 1 if opening takes longer than the bar.
    """
    paths = [path for path in logdir.rglob("*tfevents*") if path.is_file()]
    size = sum(path.stat().st_size for path in paths) / 2**20
    print(f"{logdir}: {len(paths)} files, {size:,.0f} MiB")
    timer = Timer(rows)
    log = timer("open, with the account of every run", lambda: pastnet.read(logdir), bar=BAR)
    records = sum(len(run.steps) for run in log.runs.values())
    print(f"  {len(log.runs)} runs, {records:,} records of all layers of a run")
    _some(log, timer)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.line(TITLE, "memory at most", memory, "MiB", column="clock")
    return rows.finish()


def _some(log: Log, timed: Timer) -> None:
    run = next(iter(log.runs.values()))
    layer = list(run.layers.values())[len(run.layers) // 2]
    timed(f"a layer of {layer.channels} channels: its norms", lambda: layer.norm)
    timed("the same layer: its states", layer.states)
    timed("violations of all runs", lambda: [one.violations for one in log.runs.values()])
    timed(f"overview of a run, {len(run.layers)} layers", run.overview)
    timed("the same again, another threshold", lambda: run.overview(threshold=3e-4))
    numbers = timed("every statistic of every layer of a run", lambda: every_array(run))
    print(f"  these were {numbers:,} numbers")


def main(argv: Sequence[str]) -> int:
    """Measures.

    Returns:
        The exit code: 1 if opening takes longer than the bar.
    """
    top = parser("read_log", __doc__)
    top.add_argument("logdir", type=Path, nargs="?", help="a log that is there already")
    chosen = top.parse_args(argv)
    rows = Rows("read_log")
    if chosen.logdir is not None:
        return measure(chosen.logdir, rows)
    with tempfile.TemporaryDirectory() as folder:
        write_logs(Path(folder), TINY if chosen.smoke else Size())
        return measure(Path(folder), rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
