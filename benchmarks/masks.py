"""What masks cost: to hold them, to make them anew, to record them, and on disk.

Each ratio is of interleaved pairs in one process, median and quartiles. A step is that of an own
compiled loop: forward, backward, Adam, on a batch of 64. Of each kernel a quarter of the weights is
pruned and a quarter frozen.

The peer is tfmot, in an environment of its own, as it needs tf-keras:

    python3 -m venv /tmp/peer
    /tmp/peer/bin/pip install numpy tensorflow tf-keras tensorflow-model-optimization
    PYTHONPATH=. python3 benchmarks/masks.py --peer /tmp/peer/bin/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._models import BATCH, TASKS, Task
from benchmarks._pairs import PAIRS, Action, Seconds, interleaved, spread

HOLDING_BARS = {"CNN": 1.05, "200 small variables": 1.2}
UPDATE_BARS = {"CNN": 1.0}
BITS_BAR = 1.0  # a weight and mask change
CHANGES = 16


def step(task: Task) -> Action:
    """A training step of an own loop, compiled."""
    model, optimizer = task.model, task.model.optimizer
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = tf.constant(task.x), tf.constant(task.y)
    optimizer.build(model.trainable_variables)

    def train() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, variables), variables)
        return value

    compiled: Action = tf.function(train)
    return compiled


def ready(name: str) -> Task:
    """A network that is ready to train."""
    task = TASKS[name](keras)
    task.model.compile(keras.optimizers.Adam(1e-4))
    return task


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


def recorded(train: Action, model: Any, folder: str) -> Action:
    """A step, and a record of it."""
    recorder = pastnet.Recorder(folder, model, every=1)
    numbers = count(1)

    def whole() -> None:
        train()
        recorder.record(next(numbers))

    return whole


def bytes_of_run(task: Task, changes: int, share: float) -> int:
    """All files of a run of CHANGES records, of which some come with a mask change.

    Args:
        task: what is recorded; its weights stay as they are.
        changes: how many masks change, each to other random places.
        share: of the weights that each lets through.
    """
    rng = np.random.default_rng(0)
    masks = pastnet.Masks(task.model, enforce=False)
    name = max(masks.kept, key=lambda one: masks.kept[one].size)
    with tempfile.TemporaryDirectory() as folder:
        with pastnet.Recorder(folder, task.model, every=1, variables=[name]) as recorder:
            for number in range(CHANGES):
                if number < changes:
                    masks.thaw(name)
                    masks.freeze(name, trainable=rng.random(masks.kept[name].shape) < share)
                recorder.record(number + 1)
                recorder.flush()
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def line(text: str, value: str, bar: float | None = None, *, missed: bool = False) -> bool:
    """Prints a line of a table and says whether its bar was missed."""
    shown = "" if bar is None else f"   bar {bar:g}{'  MISSED' if missed else ''}"
    print(f"  {text:44} {value}{shown}", flush=True)
    return missed


def cost_of_steps(name: str, pairs: int) -> bool:
    """Prints what masks cost a network's steps; whether a bar was missed."""
    tasks = [ready(name) for _ in range(3)]
    masks = half_held(tasks[1].model), pastnet.Masks(tasks[2].model)
    stock, masked, updated = map(step, tasks)
    times = interleaved(stock, masked, pairs=pairs)
    holding = ratio = times[1] / times[0]
    bar = HOLDING_BARS[name]
    print(f"{name}: {tasks[0].model.count_params():,} weights, step {_ms(times[0])}")
    missed = line("step with masks / stock", spread(ratio), bar, missed=np.median(ratio) > bar)

    times = interleaved(updated, updating(masks[1]), pairs=pairs, calls=1)
    ratio, limit = times[1] / times[0], UPDATE_BARS.get(name)
    line("magnitude update of all masks", _ms(times[1]))
    late = limit is not None and bool(np.median(ratio) > limit)
    missed |= line("magnitude update / step", spread(ratio), limit, missed=late)
    for text, every in (("each step", 1), ("each 100 steps", 100)):
        line(f"both, an update {text} (of these)", spread(holding + ratio / every))

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain = recorded(stock, tasks[0].model, one)
        held = recorded(masked, tasks[1].model, other)
        times = interleaved(stock, plain, masked, held, pairs=pairs)
        line("recorded step / step, without masks", spread(times[1] / times[0]))
        line("recorded step / step, with masks", spread(times[3] / times[2]))
    return missed


def disk() -> bool:
    """Prints the bytes of mask changes; whether the bar was missed."""
    print("bits on disk for each weight of a mask that changed, everything included")
    missed = False
    for share in (0.5, 0.9, 0.99):
        task = ready("CNN")
        weights = max(variable.numpy().size for variable in task.model.variables)
        added = bytes_of_run(task, CHANGES, share) - bytes_of_run(ready("CNN"), 0, share)
        bits = 8 * added / (CHANGES * weights)
        text = f"{share:.0%} let through, {weights:,} weights"
        missed |= line(text, f"{bits:.3f}", BITS_BAR, missed=round(bits, 2) > BITS_BAR)
    return missed


def peer(python: str | None) -> None:
    """Prints the ratios of the peer."""
    print("tfmot, against its own stock step")
    if python is None:
        line("not measured", "--peer PYTHON names an environment that has it")
        return
    command = [python, str(Path(__file__).with_name("_peer_tfmot.py"))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for name, ratios in json.loads(done.stdout.splitlines()[-1]).items():
        each, never = map(np.array, ratios)
        line(f"{name}, mask update each step", spread(each))
        line(f"{name}, no mask update", spread(never))
        line(f"{name}, each 100 steps (of these)", spread(never + (each - never) / 100))


def _ms(times: Seconds) -> str:
    return f"{spread(times * 1e3, '.1f')} ms"


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    top = argparse.ArgumentParser(prog="benchmarks/masks.py", description=main.__doc__)
    top.add_argument("--peer", metavar="PYTHON", help="of an environment with tfmot")
    top.add_argument("--pairs", type=int, default=PAIRS, help=f"default {PAIRS}")
    arguments = top.parse_args(argv)
    print(f"ratios of {arguments.pairs} interleaved pairs, batch {BATCH}: median (quartiles)\n")
    missed = [cost_of_steps(name, arguments.pairs) for name in TASKS]
    missed.append(disk())
    peer(arguments.peer)
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
