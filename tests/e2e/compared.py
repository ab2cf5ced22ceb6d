"""A log of runs to compare: masks of single weights that are known here, and counts over them by NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.by_chance import mean_overlap
from tests.event_files import LineageWriter, codes, hold

PER_CHANNEL = 9
COMMON = {"conv1": 8, "block/conv2": 16}
LAYERS = {
    "dense": {**COMMON, "logits": 10},
    "ticket": {**COMMON, "logits": 10},
    "other": {**COMMON, "head": 10},
    "seed": {**COMMON, "logits": 10},
}
STEPS = {
    "dense": range(1, 41),
    "ticket": range(1, 41),
    "other": range(2, 46, 2),
    "seed": range(1, 41),
}
ORIGIN = {"seed": "elsewhere"}
PAST = {"other": "epoch"}
SAME = ("dense", "ticket", "other")
"""Runs of one origin."""
NAMES = sorted(STEPS)
RUNS, RECORDS = len(STEPS), sum(len(steps) for steps in STEPS.values())

STATIONS: list[dict[str, Any]] = [
    {"s": 15, "r": "ticket", "r2": "other"},
    {"s": 33, "r": "ticket", "r2": "other", "l": "block/conv2"},
    {"s": 33, "r": "other", "r2": "ticket", "u": "channels", "l": "block/conv2"},
    {"s": 34, "r": "ticket", "r2": "other", "mk": "trainable"},
    {"s": 40, "r": "other", "r2": "ticket", "mk": "trainable", "u": "channels"},
]
"""What the tests look at: step, runs A and B, layer, unit and mask, by their keys in the address."""
OTHERS: dict[str, dict[str, Any]] = {
    "nothing pruned in one": {"s": 30, "r": "dense", "r2": "ticket"},
    "nothing pruned in either": {"s": 3, "r": "dense", "r2": "ticket"},
    "other origin": {"s": 30, "r": "ticket", "r2": "seed", "l": "conv1"},
    "ended": {"s": 44, "r": "ticket", "r2": "other"},
    "not begun": {"s": 1, "r": "ticket", "r2": "other"},
}
"""Others, for what they say."""

Masks = tuple[np.ndarray, np.ndarray]
"""Kept and trainable, bool (elements of a channel, channels)."""


def _random(seed: int, channels: int, share: float) -> np.ndarray:
    return np.random.default_rng(seed).random((PER_CHANNEL, channels)) < share


def _changes() -> dict[tuple[str, str], dict[int, Masks]]:
    """Both masks of a run's layer from a step on."""
    found: dict[tuple[str, str], dict[int, Masks]] = {}
    for at, (layer, channels) in enumerate(COMMON.items()):
        first, every = _random(at, channels, 0.7), np.ones((PER_CHANNEL, channels), bool)
        second = first & _random(10 + at, channels, 0.8)
        second[:, [0, 3]] = False
        found["ticket", layer] = {10: (first, every), 25: (second, every)}
        kept = _random(20 + at, channels, 0.6)
        kept[:, [3, 5]] = False
        free = _random(30 + at, channels, 0.5)
        free[:, 6] = False
        found["other", layer] = {20: (kept, every), 30: (kept, free)}
        found["seed", layer] = {5: (_random(40 + at, channels, 0.4), every)}
    return found


CHANGES = _changes()


def masks_at(run: str, layer: str, step: int) -> Masks:
    """The masks in force at a step."""
    every = np.ones((PER_CHANNEL, LAYERS[run][layer]), bool)
    reached = [
        masks
        for since, masks in CHANGES.get((run, layer), {}).items()
        if since <= record(run, step)
    ]
    return reached[-1] if reached else (every, every)


def record(run: str, step: int) -> int:
    """The step of the record in force."""
    return max(one for one in STEPS[run] if one <= step)


def chosen(run: str, layer: str, step: int, unit: str, mask: str) -> np.ndarray:
    """What is in the set of a run, bool: of weights, or of channels."""
    kept, trainable = masks_at(run, layer, step)
    through = kept if mask == "kept" else kept & trainable
    # A channel is pruned, or frozen, where all of its weights are held.
    return through.ravel() if unit == "weights" else through.any(axis=0)


def overlap(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float, int, int]:
    """Overlap, its value by chance, intersection and union over layers."""
    both = either = 0
    sizes = []
    for a, b in pairs:
        both += int((a & b).sum())
        either += int((a | b).sum())
        sizes.append((int(a.sum()), int(b.sum()), a.size))
    return both / either, mean_overlap(sizes), both, either


def of_pair(a: str, b: str, step: int, unit: str, mask: str) -> tuple[float, float, int, int]:
    """The overlap of two runs over the layers that both have."""
    return overlap(
        (chosen(a, layer, step, unit, mask), chosen(b, layer, step, unit, mask))
        for layer in LAYERS[a]
        if layer in LAYERS[b]
    )


def compared_story(logdir: Path) -> None:
    """Writes the runs."""
    for at, (run, steps) in enumerate(STEPS.items()):
        writer = LineageWriter(
            logdir,
            run,
            lineage=0x5000 + at,
            layers=LAYERS[run],
            origin=ORIGIN.get(run, "9c1e"),
            past=PAST.get(run, "previous"),
            every=steps.step,
        )
        writer.describe(0)
        for since in sorted(
            {since for key, made in CHANGES.items() if key[0] == run for since in made}
        ):
            writer.masks(since, _masks(run, since))
        writer.records(steps, _values(run, steps))
        writer.close(steps[-1])


def _masks(run: str, since: int) -> Mapping[tuple[str, str], np.ndarray]:
    made = {}
    for layer in COMMON:
        if since in CHANGES.get((run, layer), {}):
            kept, trainable = CHANGES[run, layer][since]
            made["kept", f"{layer}/kernel"] = kept
            made["trainable", f"{layer}/kernel"] = trainable
    return made


def _values(run: str, steps: range) -> Mapping[str, np.ndarray]:
    values = {}
    for layer, channels in LAYERS[run].items():
        array = codes(steps, channels)
        for at, step in enumerate(steps):
            kept, trainable = masks_at(run, layer, step)
            hold(array, slice(at, at + 1), kept, trainable)
        values[f"{layer}/kernel"] = array
    return values


def as_text(value: float) -> str:
    """As the page writes an overlap."""
    if 0 < value < 0.005:
        return "<.01"
    return ">.99" if 0.995 <= value < 1 else f"{value:.2f}"


def settings(at: int) -> tuple[int, str, str]:
    """Step, unit and mask of a station."""
    station = STATIONS[at]
    return station["s"], station.get("u", "weights"), station.get("mk", "kept")
