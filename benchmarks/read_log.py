"""What it takes to read a log back: `pastnet.read` on logs of many runs, without any TensorBoard.

    python -m benchmarks.read_log [LOGDIR]

Without a directory a log of 20 runs × 300 layers × 1,000 steps is written first (see `_logs`),
50,000 channels a run. Then a log of as many small layers is written, for findings, and one of 25
small runs, for `check`: its peer is to read them. Seconds of the clock and of the processor: the
machine may do other work.
"""

from __future__ import annotations

import io
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
from tb_pastnet.cli.main import main as pastnet_command
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.reader.log import Log, Run

Value = TypeVar("Value")

TITLE = "Reading a log back"
BAR = 10.0  # seconds of the processor to open a log of the size above

SMALL_LAYERS = Size(channels=6_400, steps=730)
FINDINGS = "Findings of 20 runs × 300 small layers × 730 records"
FIRST_BAR, LATER_BAR = 3.0, 1.0  # seconds of the processor

SMALL_RUNS = Size(runs=25, layers=10, channels=800, steps=100)
CHECK = "Check of 25 runs of 10 layers"
CHECK_BAR = 2.0  # times the processor time of reading them


class Timer:
    """Times what is done with a log.

    Args:
        rows: its figures go there.
        title: of their table.

    Attributes:
        spent: the seconds of the processor that the last action took.
    """

    def __init__(self, rows: Rows, title: str = TITLE) -> None:
        self._rows = rows
        self._title = title
        self.spent = 0.0

    def __call__(self, what: str, action: Callable[[], Value], bar: float | None = None) -> Value:
        """Prints how long something takes, and gives its value.

        Args:
            what: is done.
            action: does it.
            bar: the most seconds of the processor.
        """
        clock, processor = time.monotonic(), time.process_time()
        value = action()
        self.spent = time.process_time() - processor
        self._rows.line(self._title, what, time.monotonic() - clock, "s", column="clock")
        self._rows.line(self._title, what, self.spent, "s", column="processor", bar=bar)
        return value


def every_array(run: Run) -> int:
    """Reads the eight statistics of all layers of a run, one layer after the other.

    Returns:
        How many numbers that were.
    """
    layers = run.layers.values()
    return sum(getattr(layer, name).size for layer in layers for name in STATISTICS)


def measure(logdir: Path, rows: Rows) -> None:
    """Reads a log and prints what that takes."""
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


def measure_findings(logdir: Path, rows: Rows) -> None:
    """Prints what the first findings take, and then an overview of each run."""
    timer = Timer(rows, FINDINGS)
    log = timer("open", lambda: pastnet.read(logdir))
    timer("first findings", log.findings, bar=FIRST_BAR)
    runs = log.runs.values()
    timer(
        "then overviews, another threshold", lambda: [run.overview(3e-4) for run in runs], LATER_BAR
    )


def measure_check(logdir: Path, rows: Rows) -> None:
    """Prints what `check` takes, beside reading what it checks."""
    timer = Timer(rows, CHECK)

    def read_all() -> None:
        for run in pastnet.read(logdir).runs.values():
            run.overview()

    read_all()  # what is imported at the first use isn't measured
    timer("read: open, and the overview of each run", read_all)
    bar = CHECK_BAR * timer.spent
    words = ["check", str(logdir)]
    timer("check", lambda: pastnet_command(words, io.StringIO(), io.StringIO()), bar=bar)


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
        The exit code: 1 if a bar is missed.
    """
    top = parser("read_log", __doc__)
    top.add_argument("logdir", type=Path, nargs="?", help="a log that is there already")
    chosen = top.parse_args(argv)
    rows = Rows("read_log")
    if chosen.logdir is not None:
        measure(chosen.logdir, rows)
        return rows.finish()
    for size, action in (
        (Size(), measure),
        (SMALL_LAYERS, measure_findings),
        (SMALL_RUNS, measure_check),
    ):
        with tempfile.TemporaryDirectory() as folder:
            write_logs(Path(folder), TINY if chosen.smoke else size)
            action(Path(folder), rows)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
