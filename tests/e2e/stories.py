"""Logs that the tests of the page tell from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tb_pastnet.core.quantize import quantize
from tb_pastnet.core.statistics import CHANGED
from tb_pastnet.format.overhead import Overhead
from tests.event_files import LineageWriter, codes, frame, freeze, prune, scalar_event

LAYERS = {"conv1": 8, "block/conv2": 16, "block/conv3": 16, "logits": 10}


def leak(array: np.ndarray, records: slice, channels: slice) -> np.ndarray:
    """Moves channels that are held."""
    array[CHANGED, records, channels] = quantize(0.5)
    array[[2, 3], records, channels] = quantize(1e-3)
    return array


def story(logdir: Path) -> None:
    """Four runs: nothing held, frozen step by step, frozen with a leak, pruned from other initial weights."""
    steps = range(1, 41)

    def values(change: Callable[[np.ndarray, int], np.ndarray]) -> dict[str, np.ndarray]:
        return {
            f"{layer}/kernel": change(codes(steps, channels, seed=at), at)
            for at, (layer, channels) in enumerate(LAYERS.items())
        }

    everything = slice(None)
    held = {
        "dense": values(lambda array, at: array),
        "frozen": values(lambda array, at: freeze(array, slice(8 + 8 * at, 40), everything)),
        "leaky": values(
            lambda array, at: leak(
                freeze(array, slice(20, 40), slice(0, 4)),
                slice(25, 40) if at == 1 else slice(0, 0),
                slice(0, 2),
            )
        ),
    }
    for at, (run, arrays) in enumerate(held.items()):
        writer = LineageWriter(logdir, run, lineage=0x1000 + at, layers=LAYERS)
        writer.describe(0)
        writer.records(steps, arrays, learning_rates=[0.1 if step < 20 else 0.01 for step in steps])
        writer.overhead(40, Overhead(training=12.5, records=0.1, masks=0.01, bytes=1_234_567))
        writer.close(40)
    few = range(2, 62, 2)
    writer = LineageWriter(
        logdir, "pruned", lineage=0x2000, layers=LAYERS, origin="other", past="epoch", every=2
    )
    writer.describe(0)
    writer.records(
        few,
        {
            f"{layer}/kernel": prune(codes(few, channels, seed=9), slice(10, 30), slice(1, None, 2))
            for layer, channels in LAYERS.items()
        },
        dropped=3,
        notes={"The disk was full for a while": 2},
    )
    writer.close(60, dropped=3)


STORY_RUNS, STORY_RECORDS = 4, 3 * 40 + 30
RUNS = ("dense", "frozen", "leaky", "pruned")
LAST = {"dense": 40, "frozen": 40, "leaky": 40, "pruned": 60}


def record(run: str, step: int) -> int:
    """The step of the record in force, 0 before the first one."""
    at = min(step, LAST[run])
    return at - at % 2 if run == "pruned" else at


def written(run: str, layer: str, step: int) -> Counter[str]:
    """What `story` wrote of a layer's channels as of a step, by its words: nothing is read back."""
    at, channels, step = list(LAYERS).index(layer), LAYERS[layer], record(run, step)
    held, violated, state = 0, 0, "frozen"
    if step == 0:
        return Counter()
    if run == "frozen" and step >= 9 + 8 * at:
        held = channels
    if run == "leaky" and step >= 21:
        held, violated = 4, 2 if at == 1 and step >= 26 else 0
    if run == "pruned" and step >= 22:
        held, state = channels // 2, "pruned"
    return Counter({state: held, "moving": channels - held, "violated": violated})


PARTS = {
    "All layers": tuple(LAYERS),
    "block": ("block/conv2", "block/conv3"),
    **{layer: (layer,) for layer in LAYERS},
}
"""The layers of each row of the Network view."""


def in_row(run: str, row: str, step: int) -> Counter[str]:
    """The same of a row: all layers, a group or one layer."""
    return sum((written(run, layer, step) for layer in PARTS[row]), Counter())


def neighbour(logdir: Path) -> None:
    """A run of scalars, without data of ours."""
    (logdir / "scalars").mkdir(parents=True)
    path = logdir / "scalars" / "events.out.tfevents.1700000000.host"
    path.write_bytes(b"".join(frame(scalar_event("loss", step, 1.0)) for step in range(5)))
