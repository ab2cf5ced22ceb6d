"""What a probe costs: as a share of a training step, for each record.

Steps alone, with a record, and with a record that also evaluates a probe are timed by turns in one
process; median and quartiles. A step is that of an own compiled loop: forward, backward, Adam, on a
batch of 64.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from itertools import count
from typing import Any

import keras

from benchmarks._models import BATCH, TASKS
from benchmarks._pairs import PAIRS, Action, interleaved, spread
from benchmarks.masks import ready, step
from tb_pastnet import Recorder

SAMPLES = (16, BATCH)
EVERY = 10


def recorded(train: Action, model: Any, probe: Any) -> Action:
    """A step and its record."""
    recorder = Recorder(tempfile.mkdtemp(), model, every=1, initial_step=0, probe=probe)
    steps = count(1)

    def action() -> None:
        train()
        recorder.record(next(steps))

    return action


def main(argv: Sequence[str]) -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="probe", description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"rounds (default {PAIRS})")
    pairs = parser.parse_args(argv).pairs
    print(
        f"Keras {keras.__version__}. Shares of a step: a probe, and one at each {EVERY}th step.\n"
    )
    print("| network | samples | step | a probe | a step, every=10 |")
    print("| --- | --- | --- | --- | --- |")
    for name in TASKS:
        task = ready(name)
        train = step(task)
        probes = [task.x[:samples] for samples in SAMPLES]
        actions = [recorded(train, task.model, probe) for probe in (None, *probes)]
        alone, without, *times = interleaved(train, *actions, pairs=pairs)
        for samples, found in zip(SAMPLES, times, strict=True):
            share = (found - without) / alone
            shown = f"{spread(1e3 * alone, '.1f')} ms | {spread(share)}"
            print(f"| {name} | {samples} | {shown} | {spread(1 + share / EVERY)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
