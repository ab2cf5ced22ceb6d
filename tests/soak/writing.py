"""The writer of a soak: runs that grow, come and go. `python -m tests.soak.writing LOGDIR`.

What it records is a function of the step alone, so that readers know what is true. It prints a line
when the first runs are there, goes on until its input is closed, and then prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.event_files import LineageWriter, frame

LAYERS = {"conv1": 16, "block/conv2": 48}
LIVE = 8
"""Runs that are there at a time."""

LIFE = 60
"""Blocks of 16 records after which a run is complete, and goes as soon as another one comes."""

PAUSE = 0.25
"""Seconds between two blocks."""


@dataclass
class TearingWriter(LineageWriter):
    """Writes each event in two pieces with a pause between: a reader finds torn tails all the time."""

    def raw(self, data: bytes) -> None:
        framed = frame(data)
        cut = random.randrange(1, len(framed))
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            file.write(framed[:cut])
            time.sleep(0.0005)
            file.write(framed[cut:])
        self.written += 1


def begin(logdir: Path, number: int) -> TearingWriter:
    """A new run; no two have one name."""
    writer = TearingWriter(logdir, f"run{number:04d}", lineage=1 + number, layers=LAYERS)
    writer.describe(0)
    return writer


def append(writer: TearingWriter) -> None:
    """One more block of each variable, and their timeline."""
    first = writer.offered + 1
    writer.records(range(first, first + writer.block))


def size(logdir: Path) -> int:
    """Bytes of the log."""
    return sum(path.stat().st_size for path in logdir.rglob("*.pastnet"))


def write(logdir: Path, ready: Callable[[], None], over: threading.Event) -> dict[str, int]:
    """Writes until it is over.

    Args:
        logdir: empty.
        ready: called when the first runs are there.
        over: ends it.

    Returns:
        How many runs came and went, records of all runs together, and bytes that are left.
    """
    runs = [begin(logdir, number) for number in range(LIVE)]
    for at, writer in enumerate(runs):  # as if they had begun one after the other
        for _ in range(at * LIFE // LIVE):
            append(writer)
    ready()
    born, gone, records = LIVE, 0, 0
    while not over.is_set():
        for writer in runs:
            append(writer)
            records += writer.block
            time.sleep(PAUSE)
        if runs[-1].offered >= writer.block * LIFE:
            shutil.rmtree(logdir / runs.pop().run)
            runs.insert(0, begin(logdir, born))
            born, gone = born + 1, gone + 1
    return {"came": born, "went": gone, "records": records, "bytes": size(logdir)}


def main(logdir: Path) -> None:
    """Writes until the input is closed."""
    random.seed(os.getpid())
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    told = write(logdir, lambda: (sys.stdout.write("ready\n"), sys.stdout.flush()), over)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
