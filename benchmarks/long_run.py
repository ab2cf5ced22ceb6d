"""What a run of 100,000 recorded steps costs: records, bytes, memory to write and to show it.

A Dense layer of 64 channels is moved by noise and recorded at each step by the real recorder. The
log is then opened in TensorBoard with default flags; its memory is compared with that of a
TensorBoard without any log. The numbers are in docs/benchmarks/performance.md.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._boards import board
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.core.thinning import is_stored

STEPS = 100_000
CHANNELS = 64
CEILING = 7_168  # records: 1,024 for each of the seven strides that 100,000 steps reach


def resident() -> float:
    """The largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serving(logdir: Path, routes: Sequence[str]) -> float:
    """Memory of TensorBoard and its data server once routes have answered, in MiB.

    Returns:
        The largest resident memory of all its processes together; NaN but on Linux.
    """
    if sys.platform != "linux":
        return float("nan")
    with board(logdir) as here:
        for route in routes:
            here.get(route)
        return here.most_resident()


def main(argv: Sequence[str]) -> int:
    """Records, and prints what was stored.

    Returns:
        The exit code: 1 if more records were stored than the ceiling.
    """
    smoke = parser("long_run", __doc__).parse_args(argv).smoke
    steps = 100 if smoke else STEPS
    stored = sum(map(is_stored, range(steps)))
    kernel = tf.Variable(np.random.default_rng(0).normal(size=(32, CHANNELS)).astype(np.float32))
    moves = np.random.default_rng(1).normal(size=(64, 32, CHANNELS)).astype(np.float32) * 1e-3
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with pastnet.Recorder(folder, {"layer/kernel": kernel}, every=1) as recorder:
            recorder.record(1)
            recorder.flush()
            before = resident()
            for step in range(2, steps + 1):
                kernel.assign_add(moves[step % len(moves)])
                recorder.record(step)
                if not step % 1000:
                    recorder.flush()
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        shown, alone = (float("nan"),) * 2 if smoke else _served(Path(folder))
    print(f"{steps:,} due records of {CHANNELS} channels in {time.monotonic() - start:.0f} s")
    title, rows = f"A run of {steps:,} due records of {CHANNELS} channels", Rows("long_run")
    rows.line(title, "stored, about", stored, "records", bar=CEILING)
    rows.line(title, "thinned, about", steps - stored, "records")
    rows.line(title, "on disk", size / 2**20, "MiB")
    rows.line(title, "on disk, for each channel stored", size / stored / CHANNELS, "bytes")
    rows.line(title, "memory while it runs", max(0.0, resident() - before), "MiB more")
    if shown > 0:
        rows.line(title, "memory of TensorBoard that shows it", shown - alone, "MiB more")
        rows.line(title, "memory of TensorBoard alone", alone, "MiB")
    return rows.finish()


def _served(logdir: Path) -> tuple[float, float]:
    """Memory of TensorBoard with the log, and without any."""
    routes = ("/index", "/overview?run=.", "/layer?run=.&layer=layer")
    with tempfile.TemporaryDirectory() as empty:
        return serving(logdir, routes), serving(Path(empty), routes[:1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
