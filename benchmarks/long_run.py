"""What a run of 100,000 recorded steps stores: records, bytes on disk, memory of the writer.

A Dense layer of 64 channels is moved by noise and recorded at each step by the real recorder. One
channel is set to zero in the middle. The numbers are those of the README's "Limits and ceilings".
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.core.thinning import Thinning

STEPS = 100_000
CHANNELS = 64
CEILING = 7_168  # records: 1,024 for each of the seven strides that 100,000 steps reach


def resident() -> float:
    """The largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    print(f"{STEPS:,} due records of {CHANNELS} channels in {time.monotonic() - start:.0f} s")
    print(f"  stored: about {stored:,} (ceiling {CEILING:,}), thinned: about {STEPS - stored:,}")
    print(f"  on disk: {size / 2**20:.2f} MiB, {size / stored / CHANNELS:.2f} bytes a channel")
    print(f"  memory: +{resident() - before:.0f} MiB while it ran")
    return int(stored > CEILING)


if __name__ == "__main__":
    sys.exit(main())
