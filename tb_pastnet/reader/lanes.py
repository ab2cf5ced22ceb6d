"""A run as one lane: all its layers, or some of them, over steps, with flags for what happened."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states, thinning
from tb_pastnet.core.lane_flags import Flag, LayerCounts, flags
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.figures import Figures
from tb_pastnet.reader.overview import total_columns
from tb_pastnet.reader.run_findings import resumptions
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.tally import StateCounts

MOST_FLAGS = 512
"""Flags of a lane that are listed."""


def lane(figures: Figures, most: int, layers: Collection[str] = ()) -> Sections:
    """Some layers of a run, by default all, in at most so many columns; and its flags."""
    rows = _rows(figures, layers)
    states = StateCounts(*(own[rows].astype(np.float64) for own in figures.states))
    prunable = np.array(figures.summary.prunable, np.float64)[rows]
    pruned = figures.pruned[rows].astype(np.float64)
    sparse = bool(np.nan_to_num(pruned).any())
    listed = _flags(figures, rows, states, pruned)
    header = {
        "run": figures.run.name,
        "threshold": figures.threshold,
        "layers": len(rows),
        "channels": int(np.array(figures.channels)[rows].sum()),
        "prunable": int(prunable.sum()),
        "flags": [flag._asdict() for flag in listed[:MOST_FLAGS]],
        **figures.run.axis.facts(),
    }
    starts = thinning.columns(figures.steps, most)
    ends = thinning.last_records(starts, len(figures.steps))
    _, rates = figures.axis()
    arrays: dict[str, npt.NDArray[Any]] = {
        "first_steps": figures.steps[starts].astype(np.float64),
        "steps": figures.steps[ends].astype(np.float64),
        "learning_rates": rates[ends],
        **total_columns(states, pruned, prunable, starts, sparse=sparse),
    }
    return header, arrays, figures.summary.notes


def _rows(figures: Figures, layers: Collection[str]) -> Integers:
    ids = [layer.id for layer in figures.run.layers]
    return np.array([row for row, id_ in enumerate(ids) if not layers or id_ in layers], np.int64)


def _flags(figures: Figures, rows: Integers, states: StateCounts, pruned: Floats) -> list[Flag]:
    records = np.arange(len(figures.steps))
    own = figures.summary.rows[rows] >= 0
    newest = np.maximum.accumulate(np.where(own, records, -1), axis=1)

    def in_force(values: Floats) -> Floats:
        """At each record, those of the newest record of each layer."""
        taken: Floats = np.take_along_axis(values, np.maximum(newest, 0), axis=1)
        return np.where(newest >= 0, taken, 0)

    codes = channel_states.FROZEN, channel_states.PRUNED, channel_states.NONFINITE
    frozen, gone, nonfinite = (in_force(states.counts[..., code]) for code in codes)
    held = LayerCounts(frozen, gone, in_force(pruned), nonfinite, in_force(states.violated))
    # Before a resumed run's first record there is nothing to be drawn at.
    resumed = [at.step for at in resumptions(figures.run)] if len(records) else []
    return flags(figures.steps, held, resumed)
