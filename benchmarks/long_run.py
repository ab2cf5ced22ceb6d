"""What a run of 100,000 recorded steps costs: records, bytes, memory to write and to show it.

A Dense layer of 64 channels is moved by noise and recorded at each step by the real recorder. The
log is then opened in TensorBoard with default flags; its memory is compared with that of a
TensorBoard without any log. The numbers are those of the README's "Limits and ceilings".
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from demo.serve import free_port, wait
from tb_pastnet.core.thinning import Thinning

STEPS = 100_000
CHANNELS = 64
CEILING = 7_168  # records: 1,024 for each of the seven strides that 100,000 steps reach


def resident() -> float:
    """The largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def family(pid: int) -> Iterator[int]:
    """A process and its descendants, on Linux."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def serving(logdir: Path, routes: Sequence[str]) -> float:
    """Memory of TensorBoard and its data server once routes have answered, in MiB.

    Returns:
        The largest resident memory of all its processes together; NaN but on Linux.
    """
    if sys.platform != "linux":
        return float("nan")
    port = free_port(6106)
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", f"--port={port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            address = f"http://localhost:{port}/data/plugin/pastnet"
            if not wait(f"{address}/index", server):
                return float("nan")
            for route in routes:
                with urllib.request.urlopen(address + route) as answer:  # noqa: S310  our own
                    answer.read()
            status = (Path(f"/proc/{pid}/status").read_text() for pid in family(server.pid))
            return sum(int(text.split("VmHWM:")[1].split()[0]) for text in status) / 1024
        finally:
            server.terminate()


def main() -> int:
    """Records, and prints what was stored.

    Returns:
        The exit code: 1 if more records were stored than the ceiling.
    """
    thinning = Thinning()
    stored = sum(thinning.keep() for _ in range(STEPS))
    kernel = tf.Variable(np.random.default_rng(0).normal(size=(32, CHANNELS)).astype(np.float32))
    steps = np.random.default_rng(1).normal(size=(64, 32, CHANNELS)).astype(np.float32) * 1e-3
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with pastnet.Recorder(folder, {"layer/kernel": kernel}, every=1) as recorder:
            recorder.record(1)
            recorder.flush()
            before = resident()
            for step in range(2, STEPS + 1):
                kernel.assign_add(steps[step % len(steps)])
                recorder.record(step)
                if not step % 1000:
                    recorder.flush()
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        routes = ("/index", "/overview?run=.", "/layer?run=.&layer=layer")
        shown = serving(Path(folder), routes)
    with tempfile.TemporaryDirectory() as empty:
        alone = serving(Path(empty), routes[:1])
    print(f"{STEPS:,} due records of {CHANNELS} channels in {time.monotonic() - start:.0f} s")
    print(f"  stored: about {stored:,} (ceiling {CEILING:,}), thinned: about {STEPS - stored:,}")
    print(f"  on disk: {size / 2**20:.2f} MiB, {size / stored / CHANNELS:.2f} bytes a channel")
    print(f"  memory: +{resident() - before:.0f} MiB while it ran")
    print(
        f"  memory of TensorBoard that shows it: +{shown - alone:.0f} MiB to {alone:.0f} MiB alone"
    )
    return int(stored > CEILING)


if __name__ == "__main__":
    sys.exit(main())
