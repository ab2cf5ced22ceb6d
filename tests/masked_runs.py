"""Logs of runs whose masks change at random, and what was in force when, in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests import event_files as files
from tests.by_chance import mean_overlap

Sets = dict[str, np.ndarray]


@dataclass
class MaskedRun:
    """A run of kernels of nine weights a channel, with masks that change.

    `changes` are step, mask, layer and bool (9, channels); `still` the layers that are held by
    `trainable=False`.
    """

    name: str
    layers: Mapping[str, int]
    steps: Sequence[int] = range(1, 41)
    origin: str = "9c1e"
    lineage: int = 0x3F9A2C1B
    changes: list[tuple[int, str, str, np.ndarray]] = field(default_factory=list)
    still: tuple[str, ...] = ()
    ordinal: int = 1

    def write(self, logdir: Path) -> None:
        writer = files.LineageWriter(
            logdir, self.name, self.ordinal, self.lineage, self.layers, self.origin
        )
        writer.first_step = self.steps[0]
        writer.describe(0)
        for step, mask, layer, array in self.changes:
            writer.masks(step, {(mask, f"{layer}/kernel"): array})
        values = {}
        for layer, channels in self.layers.items():
            codes = files.codes(self.steps, channels)
            for at, step in enumerate(self.steps):
                kept, trainable = self.masks(layer, step)
                files.hold(codes, slice(at, at + 1), kept, trainable)
            if layer in self.still:
                codes[files.TRAINABLE] = files.ZERO
            values[f"{layer}/kernel"] = codes
        writer.records(self.steps, values)

    def masks(self, layer: str, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The two masks in force at a step, as they were last changed."""
        through = np.ones((9, self.layers[layer]), bool)
        known = [
            (mask, array) for at, mask, of, array in self.changes if of == layer and at <= step
        ]
        found = {"kept": through, "trainable": through, **dict(known)}
        return found["kept"], found["trainable"]

    def record(self, step: int) -> int | None:
        """The step of the newest record at or before a step."""
        return max((one for one in self.steps if one <= step), default=None)

    def ended(self, step: int) -> bool:
        """Whether it had ended before a step: the last record lasts as long as the one before."""
        gap = self.steps[-1] - self.steps[-2] if len(self.steps) > 1 else 1
        return step >= self.steps[-1] + gap

    def sets(self, step: int, unit: str, mask: str) -> Sets:
        """By layer, which weights or channels are in the set that a route compares."""
        found = {}
        for layer in self.layers:
            kept, trainable = self.masks(layer, step)
            free = kept & trainable & (layer not in self.still)
            array = kept if mask == "kept" else free
            if unit == "channels":
                # A channel is pruned where all of it is, and frozen where nothing of it is free.
                pruned = ~kept.any(axis=0)
                array = ~pruned if mask == "kept" else ~pruned & free.any(axis=0)
            found[layer] = array
        return found


def random_changes(
    seed: int, layers: Mapping[str, int], steps: int, count: int
) -> list[tuple[int, str, str, np.ndarray]]:
    """Changes of random masks in order, some of them of whole channels, some of everything."""
    rng = np.random.default_rng(seed)
    found = []
    for step in sorted(rng.integers(0, steps + 1, count).tolist()):
        layer = str(rng.choice(list(layers)))
        array = rng.random((9, layers[layer])) < rng.random()
        array &= rng.random(layers[layer]) < rng.choice([0.0, 0.6, 0.9, 1.0])
        array |= bool(rng.random() < 0.1)
        found.append((step, "kept" if rng.random() < 0.7 else "trainable", layer, array))
    return found


def ratio(one: Iterable[Any], other: Iterable[Any]) -> tuple[int, int, float, float]:
    """Intersection, union, overlap and overlap by chance of some layers, element by element."""
    both = union = 0
    sizes = []
    for a, b in zip(one, other, strict=True):
        both += int((a & b).sum())
        union += int((a | b).sum())
        sizes.append((int(a.sum()), int(b.sum()), a.size))
    return (
        both,
        union,
        both / union if union else 1.0,
        mean_overlap(sizes),
    )
