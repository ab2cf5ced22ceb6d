"""A training of arrays that starts quickly: `python -m tests.fault.array_training LOGDIR FIRST COUNT`.

With a count of 0 it goes on until its input is closed, and says its last step.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time

import numpy as np

import tb_pastnet as pastnet
from tb_pastnet.record import segments


def main(logdir: str, first: str, count: str) -> None:
    """Records some steps, one in 10 ms, and says each; as from a checkpoint where it isn't 1."""
    segments.PUT_SECONDS = (0.1, 0.4)
    kernel = np.ones((3, 2), np.float32)
    steps = itertools.islice(itertools.count(int(first)), int(count) or None)
    closed = threading.Event()
    if count == "0":
        threading.Thread(target=lambda: sys.stdin.read() or closed.set(), daemon=True).start()
    weights = {"dense/kernel": lambda: kernel}
    with pastnet.numpy.Recorder(logdir, weights, every=1, initial_step=0) as recording:
        for step in itertools.takewhile(lambda _: not closed.is_set(), steps):
            last = step
            kernel += 0.5
            recording.record(step)
            time.sleep(0.01)
            if step % 10 == 0 and recording.flush(20):
                sys.stdout.write(f"{step}\n")
                sys.stdout.flush()
    if count == "0":
        sys.stdout.write(f"{last}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
