"""Logs that the page is shown on: always the same, bit by bit.

`python -m tests.e2e.made_logs network FOLDER` writes one for a look at it by TensorBoard.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tb_pastnet.core.statistics import STATISTICS, quantize_statistics
from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.format.function_change import FunctionChange, Input, Place
from tb_pastnet.format.overhead import Overhead
from tests import probed
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.event_files import LineageWriter

PER_CHANNEL = 9
QUIET = 1e-5
"""Relative delta at which a channel ends that calms down."""

Change = tuple[str, np.ndarray]
"""A mask, "kept" or "trainable", and bool (elements of a channel, channels)."""


@dataclass
class Made:
    """A run: a training that calms down, from the first layer on.

    Attributes:
        name: of the run.
        layers: channels by layer.
        steps: of the records.
        changes: masks of kernels by layer and by the step from which they are in force.
        found: what the audit found, of any variable.
        broken: by layer the channels with NaN, and the step from which they are.
        probe: the digest of the probe, "" for none.
        size: how far weights move at the beginning.
    """

    name: str
    layers: Mapping[str, int]
    steps: Sequence[int]
    changes: Mapping[str, Mapping[int, Sequence[Change]]] = field(default_factory=dict)
    found: Sequence[Violation] = ()
    broken: Mapping[str, tuple[int, Sequence[int]]] = field(default_factory=dict)
    probe: str = ""
    size: float = 0.03
    origin: str = "9c1e5512"
    past: str = "previous"
    closed: bool = True

    def masks(self, layer: str, step: int) -> tuple[np.ndarray, np.ndarray]:
        """What is kept and what is trainable at a step, each bool (elements, channels)."""
        every = np.ones((PER_CHANNEL, self.layers[layer]), bool)
        found = {"kept": every, "trainable": every}
        for since, changes in self.changes.get(layer, {}).items():
            if since <= step:
                found.update(changes)
        return found["kept"], found["trainable"]

    def kernel(self, layer: str, seed: int) -> np.ndarray:
        """float64 (statistics, records, channels), as a record holds them."""
        channels, at = self.layers[layer], list(self.layers).index(layer)
        random = np.random.default_rng([seed, at])
        time = np.arange(len(self.steps))[:, None] / max(len(self.steps) - 1, 1)
        rank = random.permutation(channels)[None, :] / channels
        depth = at / max(len(self.layers) - 1, 1)
        calm = np.clip(time * (1.7 - 0.9 * depth) * (1.5 - rank), 0, 1)
        noise = np.exp(0.25 * random.normal(size=(len(self.steps), channels)))
        relative = self.size * (QUIET / self.size) ** calm * noise
        steps = np.asarray(self.steps)
        # Between two changes masks are the same.
        reached = np.searchsorted(sorted(self.changes.get(layer, ())), steps, side="right")
        _, firsts, place = np.unique(reached, return_index=True, return_inverse=True)
        each = [self.masks(layer, self.steps[first]) for first in firsts]
        kept = np.stack([one.mean(axis=0) for one, _ in each])[place]
        free = np.stack([(one & other).mean(axis=0) for one, other in each])[place]
        norm = random.uniform(0.6, 1.8, channels) * (1 + 0.15 * time) * np.sqrt(kept)
        relative = np.where(free > 0, relative, 0)
        for one in self.found:
            if one.variable == f"{layer}/kernel":
                moved = (steps >= one.first_step) & (steps <= one.last_step)
                relative[moved, one.channel] = np.maximum(relative[moved, one.channel], 1e-3)
        nonfinite = np.zeros_like(norm)
        since, broken = self.broken.get(layer, (0, ()))
        nonfinite[np.ix_(np.flatnonzero(steps >= since), np.asarray(broken, np.int64))] = 2
        delta = relative * norm
        changed = (delta > 0).astype(float)
        rows = dict.fromkeys(STATISTICS, nonfinite)
        rows |= {"norm": norm, "past_norm": norm, "delta_norm": delta, "delta_max": delta / 3}
        rows |= {"changed": changed, "kept": kept, "trainable": free}
        return np.stack([rows[name] for name in STATISTICS])

    def outputs(self, kernels: Mapping[str, np.ndarray]) -> np.ndarray:
        """float32 (4, records, places): an output moves with its layer and with all before it."""
        records = len(self.steps)
        found = np.full((4, records, len(self.layers) + 1), np.nan)
        carried = np.zeros(records)
        with np.errstate(invalid="ignore", divide="ignore"):
            for at, layer in enumerate(self.layers):
                norm, _, delta, *_ = kernels[layer]
                own = np.nan_to_num(delta / norm).mean(axis=1)
                carried = np.hypot(0.9 * carried, 0.6 * own)
                found[0, :, at], found[1, :, at] = carried, 1 - carried**2 / 2
        found[:2, :, -1] = 0.9 * found[:2, :, -2] + [[0], [0.1]]
        found[2, :, -1] = 0.7 * found[0, :, -1] ** 2
        found[3, :, -1] = np.round(64 * np.minimum(1, found[0, :, -1])) / 64
        # Some records that weren't finite, and one whose past output was 0.
        found[:, int(0.6 * records) : int(0.64 * records), 1] = np.nan
        found[0, 3, 2 % len(self.layers)] = np.inf
        return found.astype(np.float32)

    def write(self, logdir: Path, number: int) -> int:
        """Writes it as the `number`th run; says how many records it has."""
        every = self.steps[1] - self.steps[0] if len(self.steps) > 1 else 1
        writer = LineageWriter(
            logdir,
            self.name,
            lineage=0x7000 + number,
            layers=self.layers,
            origin=self.origin,
            past=self.past,
            every=every,
            first_step=self.steps[0],
        )
        writer.describe(self.steps[0] - 1, audited=True)
        for step in sorted({step for changes in self.changes.values() for step in changes}):
            writer.masks(
                step,
                {
                    (mask, f"{layer}/kernel"): array
                    for layer, changes in self.changes.items()
                    for mask, array in changes.get(step, ())
                },
            )
        kernels = {layer: self.kernel(layer, number) for layer in self.layers}
        values = {}
        for layer, statistics in kernels.items():
            values[f"{layer}/kernel"] = quantize_statistics(statistics)
            free = statistics.copy()
            free[:2] = 0.1
            free[2:4] = 0.1 * self.size * np.linspace(1, 0.01, len(self.steps))[:, None]
            free[4:] = np.array([1, 0, 1, 1, 1])[:, None, None]
            values[f"{layer}/bias"] = quantize_statistics(free)
        if self.probe:
            probed.write(writer, *self._probe(self.outputs(kernels)))
        rates = [0.1 * 10.0 ** -(2 * at // len(self.steps)) for at in range(len(self.steps))]
        writer.records(self.steps, values, learning_rates=rates)
        if self.found:
            writer.violations(self.steps[-1], self.found)
        training = 0.4 * len(self.steps)
        cost = Overhead(
            steps=self.steps[-1], training=training, records=training / 90, bytes=54_321
        )
        writer.overhead(self.steps[-1], cost)
        if self.closed:
            writer.close(self.steps[-1])
        return len(self.steps)

    def _probe(self, values: np.ndarray) -> Iterator[FunctionChange]:
        inputs = (Input("image", (32, 8, 8, 1), "float32", self.probe),)
        layers = [Place("layer", name, 16 * size) for name, size in self.layers.items()]
        places = (*layers, Place("output", "classes", 10))
        steps = np.asarray(self.steps, np.int64)
        for at in range(0, len(steps), 16):
            some = slice(at, at + 16)
            numbers = np.arange(len(steps))[some]
            past = steps[some] - 1
            yield FunctionChange(inputs, places, numbers, steps[some], past, values[:, some])


LAYERS = {
    "conv1": 16,
    "block1/conv1": 24,
    "block1/conv2": 24,
    "block2/conv1": 40,
    "block2/conv2": 40,
    "head": 10,
}
STEPS = range(200, 40_200, 200)
LAST = STEPS[-1]


def _pruned_and_grown() -> dict[str, dict[int, list[Change]]]:
    """Whole channels that are pruned, some of which grow back; the head is frozen in part."""
    found: dict[str, dict[int, list[Change]]] = {}
    for at, (layer, channels) in enumerate(LAYERS.items()):
        rank = np.random.default_rng([21, at]).permutation(channels) / channels
        found[layer] = {}
        for number, step in enumerate(range(4000, 36_001, 2000)):
            share = min(0.6, 0.08 * (number + 1)) * (0.4 if layer == "head" else 1)
            # The limits go round: what was pruned first grows back first.
            kept = (rank - 0.02 * number) % 1 >= share
            found[layer][step] = [("kept", np.repeat(kept[None, :], PER_CHANNEL, axis=0))]
    frozen = np.ones((PER_CHANNEL, LAYERS["head"]), bool)
    frozen[:, [2, 5]] = False
    found["head"][20_000].append(("trainable", frozen))
    still = np.ones((PER_CHANNEL, LAYERS["block1/conv1"]), bool)
    still[:, 18:] = False
    found["block1/conv1"][24_000].append(("trainable", still))
    return found


def _lottery() -> dict[str, dict[int, list[Change]]]:
    """Single weights that are pruned in rounds."""
    found: dict[str, dict[int, list[Change]]] = {}
    for at, (layer, channels) in enumerate(LAYERS.items()):
        chance = np.random.default_rng([22, at]).random((PER_CHANNEL, channels))
        chance[:, : channels // 5] *= 0.5
        found[layer] = {
            8000 * (number + 1): [("kept", chance >= 1 - 0.7 ** (number + 1))]
            for number in range(4)
        }
    return found


def _frozen_from_the_front() -> dict[str, dict[int, list[Change]]]:
    """One layer after the other, but the last."""
    return {
        layer: {6000 + 5000 * at: [("trainable", np.zeros((PER_CHANNEL, channels), bool))]}
        for at, (layer, channels) in enumerate(list(LAYERS.items())[:-1])
    }


def _moved(layer: str, channels: Sequence[int], first: int, last: int) -> list[Violation]:
    """Of held weights, by weight decay."""
    return [
        Violation(
            f"{layer}/kernel",
            channel,
            first,
            last,
            PER_CHANNEL,
            PER_CHANNEL,
            1.5e-3 * (at + 1),
            "weight_decay",
        )
        for at, channel in enumerate(channels)
    ]


def network(logdir: Path) -> list[int]:
    """Everything that a channel can do, in a small network."""
    held = _pruned_and_grown()
    last = held["block2/conv2"][36_000][0][1][0]
    gone = np.flatnonzero(~last)[:3].tolist()
    alive = np.flatnonzero(last)[:2].tolist()
    runs = [
        Made("dense", LAYERS, STEPS, probe="5a0c9f3e"),
        Made(
            "freeze_early",
            LAYERS,
            STEPS,
            _frozen_from_the_front(),
            _moved("block1/conv1", range(4, 9), 18_000, 30_000),
            probe="5a0c9f3e",
        ),
        Made("lottery_s0", LAYERS, STEPS, _lottery(), probe="5a0c9f3e", size=0.05),
        Made(
            "prune_grow",
            LAYERS,
            STEPS,
            held,
            [
                *_moved("block1/conv1", range(18, 22), 27_000, LAST),
                *_moved("block2/conv2", gone, 37_000, LAST),
            ],
            {"block2/conv2": (26_000, alive)},
            size=0.02,
        ),
    ]
    return [run.write(logdir, number) for number, run in enumerate(runs)]


MASKED = {"conv1": 16, "block/conv2": 32, "block/conv3": 32, "logits": 10}


def _shares(kept: bool) -> dict[str, dict[int, list[Change]]]:
    """Single weights that are pruned in five rounds, or half of them frozen."""
    found: dict[str, dict[int, list[Change]]] = {}
    for at, (layer, channels) in enumerate(MASKED.items()):
        chance = np.random.default_rng([23, at]).random((PER_CHANNEL, channels))
        found[layer] = (
            {170 * r: [("kept", chance >= 1 - 0.725**r)] for r in range(1, 6)}
            if kept
            else {360: [("trainable", chance > 0.5)]}
        )
    return found


def _drift() -> list[Violation]:
    """Held weights of single channels that moved, of every cause and of one that isn't known."""
    causes = [*CAUSES, "cosmic_rays"]
    found = []
    for at, (layer, channels) in enumerate(MASKED.items()):
        for channel in range(at, channels, 3):
            number = channel + at
            cause, first = causes[number % len(causes)], 360 + 10 * (7 * number % 60)
            largest = float("inf") if cause == "loaded" else 3e-5 * (number + 1)
            held = 1 + number % PER_CHANNEL
            found.append(
                Violation(f"{layer}/kernel", channel, first, first + 100, 1, held, largest, cause)
            )
    return found


def masks(logdir: Path) -> list[int]:
    """Masks of single weights, and some that moved."""
    steps = range(10, 1201, 10)
    runs = [
        Made("dense", MASKED, steps),
        Made("ticket", MASKED, steps, _shares(True)),
        Made("half_frozen", MASKED, steps, _shares(False)),
        Made("drift", MASKED, steps, _shares(True), _drift(), size=0.05),
    ]
    return [run.write(logdir, 0x100 + number) for number, run in enumerate(runs)]


def many(logdir: Path) -> list[int]:
    """More runs and layers than a window has room for."""
    layers = {f"stage{i // 30}/block{i // 6 % 5}/conv{i % 6}": 4 + i // 40 for i in range(180)}
    return [
        Made(f"sweep/run_{number:02d}", layers, range(10, 330, 10), size=0.01 * (number + 1)).write(
            logdir, 0x200 + number
        )
        for number in range(20)
    ]


RATES = {"1e-1": 0.3, "3e-2": 0.1, "1e-2": 0.03, "3e-3": 0.01, "1e-3": 0.003}
"""How far weights move at the beginning, by learning rate."""


def sweep(logdir: Path) -> list[int]:
    """A sweep of 25 runs with names of 60 letters, over the 105 layers of a MobileNetV2."""
    layers = {"Conv1": 32, "bn_Conv1": 32, "expanded_conv_depthwise": 32}
    for block in range(1, 17):
        for part in ("expand", "expand_BN", "depthwise", "depthwise_BN", "project", "project_BN"):
            layers[f"block_{block}_{part}"] = 16 if "project" in part else 24
    layers |= {"Conv_1": 64, "Conv_1_bn": 64, "global_dense": 32, "dropout_dense": 32, "logits": 10}
    layers["auxiliary_logits"] = 10
    steps, found = range(5, 305, 5), []
    for number, (rate, size) in enumerate(RATES.items()):
        # The lower the rate, the later its first layers are frozen.
        held = {40 * (number + 1): [("trainable", np.zeros((PER_CHANNEL, 32), bool))]}
        for seed in range(5):
            name = f"mobilenet_v2_imagenette2_224_lr{rate}_weight_decay0.0001_seed{seed}"
            made = Made(name, layers, steps, changes={"Conv1": held}, size=size)
            found.append(made.write(logdir, 0x300 + 5 * number + seed))
    return found


LOGS: dict[str, Callable[[Path], list[int]]] = {
    "network": network,
    "masks": masks,
    "many": many,
    "sweep": sweep,
}


@contextlib.contextmanager
def made_tab(name: str, folder: Path) -> Iterator[Tab]:
    """TensorBoard on one of these logs, when it has read all of it."""
    logdir = folder / name
    records = LOGS[name](logdir)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, len(records), sum(records)), "all records")
        yield tab


if __name__ == "__main__":
    LOGS[sys.argv[1]](Path(sys.argv[2]))
