"""A long training that is recorded at each step: nothing in it may grow."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tb_pastnet as pastnet
from benchmarks._models import BATCH, Task
from benchmarks._rows import Rows
from benchmarks._training import ready, step

PARTS = 10
GROWTH_BAR = 5.0
"""% of the step time, or of the memory, that a whole training may add; noise is within it."""
QUEUE_BAR = 16.0
"""Records more in the queue at the end, of which a block of 16 waits for its last one."""


def network(of: Any) -> Task:
    """A network whose steps are short: three Dense layers, 38,000 weights."""
    layers = [of.layers.Dense(128, activation="relu") for _ in range(2)]
    model = of.Sequential([of.Input((128,)), *layers, of.layers.Dense(10)])
    rng = np.random.default_rng(0)
    return Task(model, rng.random((BATCH, 128), np.float32), rng.integers(0, 10, BATCH))


def long_training(rows: Rows, steps: int) -> None:
    """Prints the curves of a training, and what grew from its first tenth to its last.

    By turns a twin makes a step that isn't recorded: what the machine does to both is no growth.
    This should run before anything large: memory that was freed would hide what grows.

    Args:
        rows: of the benchmark.
        steps: of the training; a multiple of PARTS.
    """
    task, twin = ready(network), ready(network)
    train, alone, size = step(task), step(twin), steps // PARTS
    times, plain = np.zeros((PARTS, size)), np.zeros((PARTS, size))
    memory, waiting = np.zeros(PARTS), np.zeros(PARTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        pastnet.Recorder(folder, task.model, every=1) as recorder,
    ):
        for number in range(1, size + 1):  # a part that isn't measured: it compiles
            alone()
            train()
            recorder.record(number)
        for part in range(PARTS):
            for at in range(size):
                start = time.perf_counter()
                alone()
                middle = time.perf_counter()
                train()
                recorder.record(size + part * size + at + 1)
                plain[part, at], times[part, at] = middle - start, time.perf_counter() - middle
            memory[part], waiting[part] = _resident(), _waiting(recorder)
    recorded, stock = 1e3 * np.median(times, axis=1), 1e3 * np.median(plain, axis=1)
    curves = [
        ("a step and its record", recorded, "ms", None),
        ("a step of the twin", stock, "ms", None),
        ("a step and its record / a step of the twin", recorded / stock, "", GROWTH_BAR),
        ("memory", memory, "MiB", GROWTH_BAR),
    ]
    _show(rows, steps, curves, waiting)


def _show(rows: Rows, steps: int, curves: Any, waiting: Any) -> None:
    title = f"Growth with steps: {steps:,} steps, recorded at each"
    print(title)
    sizes = [steps // PARTS * (part + 1) for part in range(PARTS)]
    queue = ("records in the queue", waiting, "", QUEUE_BAR)
    for name, values, unit, bar in (*curves, queue):
        for size, value in zip(sizes, values, strict=True):
            rows.line(title, name, float(value), unit, column=f"{size:,}")
        slope = float(np.polyfit(np.arange(PARTS), values, 1)[0]) * (PARTS - 1)
        if name == queue[0]:
            rows.line(title, name, slope, "records more", column="growth", bar=bar)
        else:
            share = 100 * slope / float(np.median(values))
            rows.line(title, name, share, "%", column="growth", bar=bar)


def _resident() -> float:
    """Memory of this process in MiB; 1 where it isn't known."""
    if sys.platform != "linux":
        return 1.0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _waiting(recorder: pastnet.Recorder) -> int:
    """Records that the training thread has handed over, and the other hasn't taken."""
    return len(
        recorder._sink._background.items
    )  # there is no public word for it: nobody else needs it
