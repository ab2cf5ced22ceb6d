"""A log whose runs have probes: one calm, one that freezes from the input on, one of another past, one without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tb_pastnet.format.function_change import MEASURES, FunctionChange, Input, Place
from tests import probed
from tests.event_files import LineageWriter, codes, freeze, write_run

HOSTILE = "<img src=x onerror=alert(1)>"
LAYERS = {"conv1": 8, "block/conv2": 16, HOSTILE: 2}
PLACES = (
    *(Place("layer", name, 64) for name in LAYERS),
    Place("output", "conv1", 4),  # named as a layer is
    Place("output", "classes", 10),
)
STEPS = {"calm": range(1, 41), "epochs": range(2, 62, 2), "freezing": range(1, 41)}
BARE = "bare"
RUNS, RECORDS = 4, 40 + 40 + 30 + 20
FROZEN_FROM = {"conv1": 21, "block/conv2": 31}
"""Steps from which layers of the run that freezes are held. The second one's output moves on."""
LACKS, INFINITE = 8, 12
"""Steps of the calm run at which conv1 isn't finite, and at which its past output was 0."""


def values(run: str, steps: Sequence[int]) -> np.ndarray:
    """float32 (4, records, places) of a run."""
    step = np.asarray(steps, np.float64)[:, None]
    place = np.arange(len(PLACES))[None, :]
    relative = (place + 1 + list(STEPS).index(run)) / (step + 10) ** 2
    found = np.stack([relative, 1 - relative**2, relative**2 / 3, np.round(32 * relative) / 32])
    found[2:, :, :-1] = np.nan
    if run == "freezing":
        still = step[:, 0] >= FROZEN_FROM["conv1"]
        found[0, still, 0], found[1, still, 0] = 0, 1
    if run == "calm":
        found[:, step[:, 0] == LACKS, 0] = np.nan
        found[0, step[:, 0] == INFINITE, 0] = np.inf
    return found.astype(np.float32)


def weights(run: str) -> dict[str, np.ndarray]:
    """The codes of each layer's kernel, int16 (statistics, records, channels)."""
    found = {}
    for at, (layer, channels) in enumerate(LAYERS.items()):
        array = codes(STEPS[run], channels, seed=at)
        if run == "freezing" and layer in FROZEN_FROM:
            freeze(array, slice(FROZEN_FROM[layer] - 1, None), slice(None))
        found[f"{layer}/kernel"] = array
    return found


def change(run: str, steps: Sequence[int], first: int = 0) -> FunctionChange:
    """Records of these steps, numbered from `first`."""
    at = np.asarray(steps, np.int64)
    digest = "other" if run == "epochs" else "5a0c9f3e77"
    probe = (Input("image", (32, 8, 8, 1), "float32", digest),)
    past = at - (10 if run == "epochs" else 1)
    numbers = np.arange(first, first + len(at))
    return FunctionChange(probe, PLACES, numbers, at, past, values(run, steps))


def probe_story(logdir: Path) -> None:
    """Writes all runs."""
    assert len(MEASURES) == len(values("calm", [1]))
    for at, (run, steps) in enumerate(STEPS.items()):
        past = "epoch" if run == "epochs" else "previous"
        writer = LineageWriter(logdir, run, lineage=0x5000 + at, layers=LAYERS, past=past)
        writer.describe(0)
        writer.records(steps, weights(run))
        for first in range(0, len(steps), 16):
            probed.write(writer, change(run, steps[first : first + 16], first))
        writer.close(steps[-1])
    versions = {"keras": "3.0.0", "tensorflow": "2.21.0"}
    write_run(logdir, BARE, range(1, 21), lineage=0x5010, layers=LAYERS, versions=versions)
