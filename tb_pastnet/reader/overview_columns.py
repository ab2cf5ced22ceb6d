"""All layers of a run in as many columns as its picture has pixels: to be drawn, not to be read.

A column of several records is their mean, as a picture that is made smaller is. What is rare stays:
a reactivated channel keeps a part, marks stand where any record bears them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states, thinning
from tb_pastnet.reader import notes
from tb_pastnet.reader.figures import Figures, StepSpan
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.tally import BINS, DECADES, Tally

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WHOLE = 255
"""Parts that the shares of a column add up to."""

VIOLATED, NONFINITE = 1, 2
"""Marks of a column."""


def overview_columns(figures: Figures, most: int, span: StepSpan) -> Sections:
    """Figures of all records in columns, at most so many of some steps."""
    summary = figures.summary
    sparse = bool(np.nan_to_num(figures.pruned).any())
    header = {
        **figures.header(),
        "violated_channels": summary.violated_channels,
        "sparse": sparse,
        "deltas": _distribution(summary.tallies),
        "accounts": [asdict(account) for account in summary.accounts],
        "notes": notes.listed(summary.notes),
    }
    shown = figures.among(span.of(figures.steps))
    starts = thinning.columns(shown.steps, most)
    ends = np.append(starts[1:], len(shown.steps))[: len(starts)] - 1
    times, rates = shown.axis()
    return header, {
        "first_steps": shown.steps[starts].astype(np.float64),
        "steps": shown.steps[ends].astype(np.float64),
        "wall_times": times[ends],
        "learning_rates": rates[ends],
        **_drawn(shown, starts, sparse),
    }


def _distribution(tallies: Sequence[Tally]) -> dict[str, Any]:
    """How many relative deltas of channels that train lie where, over all records and layers."""
    counts = sum((tally.deltas for tally in tallies), np.zeros(BINS, np.int64))
    return {"from": DECADES[0], "to": DECADES[1], "counts": counts.tolist()}


def _drawn(figures: Figures, starts: Integers, sparse: bool) -> dict[str, npt.NDArray[Any]]:
    """The columns of each layer, and with a prefix those of all layers together."""
    counts, violated, nonfinite, mean = (
        array.astype(np.float64)
        for array in (figures.counts, figures.violated, figures.nonfinite, figures.mean_delta)
    )
    prunable = np.array(figures.summary.prunable, np.float64)
    layers = pool(counts, violated, nonfinite, mean, starts)
    moving = counts[..., states.MOVING]
    sums = pool(
        counts.sum(axis=0, keepdims=True),
        violated.sum(axis=0, keepdims=True),
        nonfinite.sum(axis=0, keepdims=True),
        _weighted(mean, moving)[None],
        starts,
    )
    if sparse:
        each = np.where(prunable > 0, prunable, np.nan)[:, None]
        layers["pruned"] = _mean_of(figures.pruned / each, starts)
        share = figures.pruned.sum(axis=0, keepdims=True) / max(prunable.sum(), 1.0)
        sums["pruned"] = _mean_of(share, starts)
    return layers | {f"total_{name}": values[0] for name, values in sums.items()}


def pool(
    counts: Floats, violated: Floats, nonfinite: Floats, mean: Floats, starts: Integers
) -> dict[str, npt.NDArray[Any]]:
    """Makes columns of records, given the first record of each, as from `thinning.columns`.

    Args:
        counts: (rows, records, states), channels in each state.
        violated: (rows, records), channels that moved though held.
        nonfinite: likewise, channels with NaN or infinity.
        mean: likewise, mean relative delta of the moving ones, NaN where none moves.
        starts: int64 (columns,).

    Returns:
        shares: uint8 (rows, columns, states), the mean of the records that have data, in parts that
            add up to `WHOLE`; a state that is rare, "reactivated", keeps at least one.
        mean_delta: float32 (rows, columns), weighted by moving channels.
        marks: uint8 (rows, columns), `VIOLATED` and `NONFINITE` where any record has some.
    """
    if not len(starts):
        shape = (len(counts), 0)
        return {
            "shares": np.zeros((*shape, len(states.NAMES)), np.uint8),
            "mean_delta": np.zeros(shape, np.float32),
            "marks": np.zeros(shape, np.uint8),
        }
    has_data = counts[..., states.NO_DATA] < counts.sum(axis=2)
    sums = np.add.reduceat(np.where(has_data[..., None], counts, 0), starts, axis=1)
    empty = ~np.logical_or.reduceat(has_data, starts, axis=1)
    sums[empty, states.NO_DATA] = 1
    marks = np.logical_or.reduceat(violated > 0, starts, axis=1) * np.uint8(VIOLATED)
    marks |= np.logical_or.reduceat(nonfinite > 0, starts, axis=1) * np.uint8(NONFINITE)
    moving = np.where(np.isnan(mean), 0, counts[..., states.MOVING])
    moved = np.add.reduceat(moving * np.nan_to_num(mean), starts, axis=1)
    number = np.add.reduceat(moving, starts, axis=1)
    with np.errstate(invalid="ignore"):
        deltas = (moved / number).astype(np.float32)
    return {"shares": _parts(sums), "mean_delta": deltas, "marks": marks}


def _parts(sums: Floats) -> npt.NDArray[np.uint8]:
    """Sums as whole parts, rounded so that they add up to `WHOLE`."""
    totals = sums.sum(axis=2, keepdims=True)
    edges = np.rint(np.cumsum(sums, axis=2) * (WHOLE / np.maximum(totals, 1)))
    parts = np.diff(edges, axis=2, prepend=0)
    lost = (sums[..., states.REACTIVATED] > 0) & (parts[..., states.REACTIVATED] == 0)
    if lost.any():
        largest = parts[lost].argmax(axis=1)
        rows = parts[lost]
        rows[np.arange(len(rows)), largest] -= 1
        rows[:, states.REACTIVATED] = 1
        parts[lost] = rows
    parts_u1: npt.NDArray[np.uint8] = parts.astype(np.uint8)
    return parts_u1


def _weighted(values: Floats, weights: Floats) -> Floats:
    """The mean over rows of what isn't NaN, by weights; NaN where these are all 0."""
    weights = np.where(np.isnan(values), 0, weights)
    with np.errstate(invalid="ignore"):
        mean: Floats = (np.nan_to_num(values) * weights).sum(axis=0) / weights.sum(axis=0)
    return mean


def _mean_of(values: Floats, starts: Integers) -> npt.NDArray[np.float32]:
    """The mean of each column's records that are known, NaN where none is."""
    if not len(starts):
        return np.zeros((len(values), 0), np.float32)
    has_data = ~np.isnan(values)
    sums = np.add.reduceat(np.nan_to_num(values), starts, axis=1)
    with np.errstate(invalid="ignore"):
        mean = sums / np.add.reduceat(has_data.astype(np.float64), starts, axis=1)
    return mean.astype(np.float32)
