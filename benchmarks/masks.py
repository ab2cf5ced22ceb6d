"""What masks cost: to hold them, to make them anew, to record them, and on disk.

Each ratio is of interleaved pairs in one process, median and quartiles. A step is that of an own
compiled loop: forward, backward, Adam, on a batch of 64. Of each kernel a quarter of the weights is
pruned and a quarter frozen.

The peer is tfmot, in an environment that is made for it, as it needs tf-keras; `--no-peers` leaves
it out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import tb_pastnet as pastnet
from benchmarks._models import BATCH, TASKS, Task, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, Seconds, interleaved
from benchmarks._peers import TFMOT, ensure, told
from benchmarks._rows import Rows
from benchmarks._training import ready, step
from tools.steps import Failure

HOLDING_BARS = {"CNN": 1.05, "200 small variables": 1.15}
UPDATE_BARS = {"CNN": 1.0}
BITS_BAR = 1.0  # a weight and mask change
CHANGES = 16


def half_held(model: Any, optimizer: Any = None) -> pastnet.Masks:
    """Masks on all kernels: a quarter of each is pruned, another frozen, at random places."""
    rng = np.random.default_rng(0)
    masks = pastnet.Masks(model, optimizer)
    for name in masks.kept:
        if name.endswith("kernel"):
            number = rng.random(masks.kept[name].shape)
            masks.prune(name, kept=number > 0.25)
            masks.freeze(name, trainable=(number < 0.25) | (number > 0.5))
    return masks


def tighter() -> Iterator[float]:
    """Sparsities that grow so slowly that they never end, and each prunes some weights more."""
    return (1 - 0.5 * 0.999**number for number in count())


def updating(masks: pastnet.Masks) -> Action:
    """A magnitude update of all masks, each time to a higher sparsity."""
    sparsities = tighter()
    return lambda: masks.prune_smallest(next(sparsities))


def recorded(train: Action, recorder: pastnet.Recorder) -> Action:
    """A step, and a record of it."""
    numbers = count(1)

    def whole() -> None:
        train()
        recorder.record(next(numbers))

    return whole


def bytes_of_run(task: Task, records: int, share: float | None = None) -> int:
    """All files of a run.

    Args:
        task: what is recorded; its weights stay as they are.
        records: how many.
        share: of the weights that a mask lets through, which changes before each record, to other
            random places; None for no mask.
    """
    rng = np.random.default_rng(0)
    masks = pastnet.Masks(task.model, enforce=False)
    name = max(masks.kept, key=lambda one: masks.kept[one].size)
    with tempfile.TemporaryDirectory() as folder:
        with pastnet.Recorder(folder, task.model, every=1, variables=[name]) as recorder:
            for number in range(records):
                if share is not None:
                    masks.thaw(name)
                    masks.freeze(name, trainable=rng.random(masks.kept[name].shape) < share)
                recorder.record(number + 1)
                recorder.flush()
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def cost_of_steps(rows: Rows, name: str, make: Callable[[Any], Task], pairs: int) -> None:
    """Prints what masks cost a network's steps."""
    title = "Steps with masks, as ratios"
    tasks = [ready(make) for _ in range(3)]
    masks = half_held(tasks[1].model), pastnet.Masks(tasks[2].model)
    stock, masked, updated = map(step, tasks)
    times = interleaved(stock, masked, pairs=pairs)
    holding = times[1] / times[0]
    print(f"{name}: {tasks[0].model.count_params():,} weights")

    def line(text: str, values: Seconds, unit: str = "", bar: float | None = None) -> None:
        rows.line(title, text, values, unit, column=name, bar=bar)

    line("a stock step", 1e3 * times[0], "ms")
    line("step with masks / stock", holding, bar=HOLDING_BARS.get(name))

    times = interleaved(updated, updating(masks[1]), pairs=pairs, calls=1)
    ratio = times[1] / times[0]
    line("magnitude update of all masks", 1e3 * times[1], "ms")
    line("magnitude update / step", ratio, bar=UPDATE_BARS.get(name))
    for text, every in (("each step", 1), ("each 100 steps", 100)):
        line(f"both, an update {text} (of these)", holding + ratio / every)

    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        pastnet.Recorder(one, tasks[0].model, every=1) as first,
        pastnet.Recorder(other, tasks[1].model, every=1) as second,
    ):
        plain, held = recorded(stock, first), recorded(masked, second)
        times = interleaved(stock, plain, masked, held, pairs=pairs)
        line("recorded step / step, without masks", times[1] / times[0])
        line("recorded step / step, with masks", times[3] / times[2])
        (times,) = interleaved(updating(masks[0]), pairs=pairs, calls=1)
        line("magnitude update of all masks, recorders open", 1e3 * times, "ms")


def disk(rows: Rows, make: Callable[[Any], Task], changes: int) -> None:
    """Prints the bytes of so many mask changes."""
    title = "Bits on disk for each weight of a mask that changed, everything included"
    print(title)
    for share in (0.5, 0.9, 0.99):
        task = ready(make)
        weights = max(variable.numpy().size for variable in task.model.variables)
        added = bytes_of_run(task, changes, share) - bytes_of_run(ready(make), changes)
        bits = round(8 * added / (changes * weights), 2)
        text = f"{share:.0%} let through"
        rows.line(title, text, bits, "bits", column=f"{weights:,} weights", bar=BITS_BAR)


def peer(rows: Rows) -> None:
    """Prints the ratios of tfmot, or why there are none."""
    title = "tfmot, against its own stock step"
    print(title)
    try:
        found = told(ensure("tfmot", TFMOT), "_peer_tfmot.py")
    except Failure as failure:
        print(f"  {rows.fail(title, 'tfmot', failure).cell}")
        return
    for name, ratios in found.items():
        each, never = map(np.array, ratios)
        for text, values in (
            ("mask update each step", each),
            ("no mask update", never),
            ("each 100 steps (of these)", never + (each - never) / 100),
        ):
            rows.line(title, text, values, column=name)


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    top = with_pairs("masks", __doc__)
    top.add_argument("--no-peers", action="store_true", help="none that needs an environment")
    chosen = top.parse_args(argv)
    print(f"ratios of {pairs_of(chosen)} interleaved pairs, batch {BATCH}: median (quartiles)\n")
    rows, tasks = Rows("masks"), {"tiny": tiny} if chosen.smoke else TASKS
    for name, make in tasks.items():
        cost_of_steps(rows, name, make, pairs_of(chosen))
    disk(rows, *((tiny, 2) if chosen.smoke else (TASKS["CNN"], CHANGES)))
    if not (chosen.smoke or chosen.no_peers):
        peer(rows)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
