"""What a probe costs: as a share of a training step, for each record.

Steps alone, with a record, and with a record that also evaluates a probe are timed by turns in one
process; median and quartiles. A step is that of an own compiled loop: forward, backward, Adam, on a
batch of 64.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import count
from typing import Any

import keras

from benchmarks._models import BATCH, TASKS, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, interleaved, spread
from benchmarks._rows import Rows
from benchmarks._training import ready, step
from tb_pastnet import Recorder

SAMPLES = (16, BATCH)
EVERY = 10
TITLE = "A probe at each record, as a share of a training step"


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
    chosen = with_pairs("probe", __doc__).parse_args(argv)
    tasks = {"tiny": tiny} if chosen.smoke else TASKS
    rows = Rows("probe")
    print(
        f"Keras {keras.__version__}. Shares of a step: a probe, and one at each {EVERY}th step.\n"
    )
    print("| network | samples | step | a probe | a step, every=10 |")
    print("| --- | --- | --- | --- | --- |")
    for name, make in tasks.items():
        task = ready(make)
        train = step(task)
        probes = [task.x[:samples] for samples in SAMPLES]
        actions = [recorded(train, task.model, probe) for probe in (None, *probes)]
        alone, without, *times = interleaved(train, *actions, pairs=pairs_of(chosen))
        for samples, found in zip(SAMPLES, times, strict=True):
            share = (found - without) / alone
            rows.add(TITLE, f"{samples} samples", share, column=name)
            shown = f"{spread(1e3 * alone, '.1f')} ms | {spread(share)}"
            print(f"| {name} | {samples} | {shown} | {spread(1 + share / EVERY)} |", flush=True)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
