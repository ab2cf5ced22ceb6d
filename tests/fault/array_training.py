"""A training of arrays that starts quickly: `python -m tests.fault.array_training LOGDIR FIRST COUNT`."""

from __future__ import annotations

import sys
import time

import numpy as np

from tb_pastnet.record import segments
from tests.unit.record.test_numpy_source import recorder


def main(logdir: str, first: str, count: str) -> None:
    """Records some steps, one in 10 ms, and says each; as from a checkpoint where it isn't 1."""
    segments.PUT_SECONDS = (0.1, 0.4)
    kernel = np.ones((3, 2), np.float32)
    with recorder(logdir, {"dense/kernel": kernel}) as recording:
        for step in range(int(first), int(first) + int(count)):
            kernel += 0.5
            recording.record(step)
            time.sleep(0.01)
            if step % 10 == 0 and recording.flush(20):
                sys.stdout.write(f"{step}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
