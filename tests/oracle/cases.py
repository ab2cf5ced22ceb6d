"""What is looked at: a log, a run, a step, a layer and a threshold, drawn by chance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.oracle.logs import write_log
from tests.oracle.weights import Training, make_log

WIDTHS = (700, 1000, 1280, 1600, 1920, 2560)


@dataclass(frozen=True)
class Case:
    """One place to look at; `other` is a second run, `measure` what is compared with it."""

    run: str
    other: str
    step: int
    layer: str
    threshold: float
    measure: str


MEASURES = (
    "moving", "quiet", "frozen", "pruned", "reactivated", "violated", "sparsity", "delta",
)  # fmt: skip


def log_of(seed: int, folder: Path) -> list[Training]:
    """Makes and writes a log."""
    trainings = make_log(seed)
    write_log(folder, trainings)
    return trainings


def cases_of(seed: int, trainings: list[Training], count: int) -> list[Case]:
    """Some places in a log. Steps are of records, between them, before the first and at the end."""
    rng = np.random.default_rng(1000 + seed)
    found = []
    first = min(made.records[0] for made in trainings)
    last = max(made.records[-1] for made in trainings)
    for _ in range(count):
        at, other = rng.permutation(len(trainings))[:2]
        made = trainings[at]
        step = int(rng.integers(first, last + 1))
        if rng.random() < 0.5:
            step = int(rng.choice(made.records))
        layer = made.layers[int(rng.integers(len(made.layers)))].layer
        threshold = float(f"{10 ** rng.uniform(-5, -1):.3g}")
        threshold = float(rng.choice([threshold, 1e-4, 1e-2]))
        measure = str(rng.choice(MEASURES))
        found.append(Case(made.run, trainings[other].run, step, layer, threshold, measure))
    return found
