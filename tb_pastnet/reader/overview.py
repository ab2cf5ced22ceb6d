"""All layers of a run: channels by state, record by record or in columns to draw.

There are as many columns as the picture has pixels. A column of several records is their mean. Rare
states stay visible: a reactivated or nonfinite channel keeps a part, and a mark is set if any
record has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states, thinning
from tb_pastnet.core.account import Account
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.figures import Figures, StepSpan
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.tables import Column, Columns, Labels, csv_pieces, to_dataframe
from tb_pastnet.reader.tally import DECADES, StateCounts

if TYPE_CHECKING:
    from pandas import DataFrame


WHOLE = 255
"""Parts that the shares of a column add up to."""

VIOLATED = 1
"""The mark of a column."""

_BY_RECORD = (
    *channel_states.NAMES[1:], "violated", "mean_delta", "pruned_weights",
)  # fmt: skip


class Overview:
    """Channels of each layer in each state; one row per record and one column per layer.

    If a layer lacks a record, no channel is counted there.

    Attributes:
        layers: ids of the layers, in forward order.
        threshold: the relative delta under which a channel counts as quiet.
        steps: int64 (records,), increasing.
        channels: int64 (layers,), how many there are.
        moving: int64 (records, layers), moving channels.
        reactivated: int64 (records, layers), reactivated channels.
        quiet: int64 (records, layers), quiet channels.
        frozen: int64 (records, layers), frozen channels.
        pruned: int64 (records, layers), pruned channels.
        following: int64 (records, layers), channels moved by anything but an optimizer.
        nonfinite: int64 (records, layers), channels with NaN or infinity.
        violated: int64 (records, layers), channels that moved while frozen or pruned, completely
            or in part.
        mean_delta: float32 (records, layers), the mean relative delta of moving channels, each
            taken as 1 at most; NaN where none moves.
        pruned_weights: float64 (records, layers), weights that the kept masks hold at zero; NaN
            where unknown.
        prunable_weights: int64 (layers,), weights that can be pruned: of kernels, and of every
            variable that ever was pruned. A variable that two layers share counts in the first.
        accounts: for each layer, the account of its main variable's records.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> overview = pastnet.read(logdir).runs["."].overview()
        >>> overview.layers, overview.moving[-1].tolist(), overview.quiet[-1].tolist()
        (('dense',), [1], [2])
    """

    def __init__(self, figures: Figures) -> None:
        states = figures.states
        self.layers = tuple(layer.id for layer in figures.run.layers)
        self.threshold = figures.threshold
        self.steps: Integers = figures.steps.copy()
        self.accounts: tuple[Account, ...] = figures.summary.accounts
        self.channels = np.array(figures.channels, np.int64)
        self.moving = _records_of(states, channel_states.MOVING)
        self.reactivated = _records_of(states, channel_states.REACTIVATED)
        self.quiet = _records_of(states, channel_states.QUIET)
        self.frozen = _records_of(states, channel_states.FROZEN)
        self.pruned = _records_of(states, channel_states.PRUNED)
        self.following = _records_of(states, channel_states.FOLLOWING)
        self.nonfinite = _records_of(states, channel_states.NONFINITE)
        self.violated = states.violated.T.astype(np.int64, order="C")
        self.mean_delta = states.mean_delta.T.copy()
        self.pruned_weights = figures.pruned.T.copy()
        self.prunable_weights = np.array(figures.summary.prunable, np.int64)

    @property
    def sparsity(self) -> Floats:
        """float64 (records,), the share of prunable weights that kept masks hold at zero.

        NaN if unknown, or if no weight can be pruned.
        """
        prunable = int(self.prunable_weights.sum())
        pruned: Floats = self.pruned_weights.sum(axis=1)
        return pruned / prunable if prunable else np.full(len(self.steps), np.nan)

    def to_dataframe(self) -> DataFrame:
        """Returns all values, one row per record and layer, with the columns of the CSV export.

        Returns:
            Columns step, layer (categorical), channels, the states, violated, mean_delta,
            pruned_weights (NaN where unknown) and prunable_weights.

        Raises:
            ImportError: pandas isn't installed.
        """
        return to_dataframe(self.columns())

    def columns(self) -> Columns:
        """The columns of `to_dataframe` as arrays, without pandas; texts as `Labels`."""
        records, layers = len(self.steps), len(self.layers)
        columns: dict[str, Column] = {
            "step": np.repeat(self.steps, layers),
            "layer": Labels(self.layers, np.tile(np.arange(layers, dtype=np.int32), records)),
            "channels": np.tile(self.channels, records),
        }
        columns |= {name: getattr(self, name).ravel() for name in _BY_RECORD}
        columns["prunable_weights"] = np.tile(self.prunable_weights, records)
        return columns

    def __repr__(self) -> str:
        return f"Overview({len(self.steps):,} records of {len(self.layers):,} layers)"


def _records_of(states: StateCounts, state: int) -> Integers:
    """The channels in one state, int64 (records, layers)."""
    return states.counts[..., state].T.astype(np.int64, order="C")


def overview_csv(figures: Figures) -> Iterator[str]:
    """The CSV of the tab's export, some lines at a time."""
    return csv_pieces([Overview(figures).columns()], ".4g", {"pruned_weights": ".0f"})


def overview_columns(figures: Figures, most: int, span: StepSpan) -> Sections:
    """Figures of all records in some steps, in at most so many columns."""
    summary = figures.summary
    sparse = bool(np.nan_to_num(figures.pruned).any())
    header = {
        **figures.header(),
        "violated_channels": summary.violated_channels,
        "sparse": sparse,
        # The distribution of the relative deltas of training channels, over all records and layers.
        "deltas": {"from": DECADES[0], "to": DECADES[1], "counts": summary.deltas.tolist()},
        "accounts": [asdict(account) for account in summary.accounts],
        "notes": notes.listed(summary.notes),
    }
    shown = figures.among(span.of(figures.steps))
    starts = thinning.columns(shown.steps, most)
    ends = thinning.last_records(starts, len(shown.steps))
    times, rates = shown.axis()
    arrays: dict[str, npt.NDArray[Any]] = {
        "first_steps": shown.steps[starts].astype(np.float64),
        "steps": shown.steps[ends].astype(np.float64),
        "wall_times": times[ends],
        "learning_rates": rates[ends],
        **_drawn(shown, starts, sparse),
    }
    return header, arrays, summary.notes


def _drawn(figures: Figures, starts: Integers, sparse: bool) -> dict[str, npt.NDArray[Any]]:
    """The columns of each layer, and with a prefix those of all layers together."""
    states = StateCounts(*(array.astype(np.float64) for array in figures.states))
    prunable = np.array(figures.summary.prunable, np.float64)
    layers = pool(states, starts)
    if sparse:
        each = np.where(prunable > 0, prunable, np.nan)[:, None]
        layers["pruned"] = _mean_of(figures.pruned / each, starts)
    sums = total_columns(states, figures.pruned, prunable, starts, sparse=sparse)
    return layers | {f"total_{name}": values for name, values in sums.items()}


def total_columns(
    states: StateCounts, pruned: Floats, prunable: Floats, starts: Integers, *, sparse: bool
) -> dict[str, npt.NDArray[Any]]:
    """The columns of some layers together, as from `pool`; if `sparse`, their share `pruned`."""
    together = StateCounts(*(array.sum(axis=0, keepdims=True) for array in states))
    mean = _weighted(states.mean_delta, states.counts[..., channel_states.MOVING])[None]
    sums = pool(together._replace(mean_delta=mean), starts)
    if sparse:
        share = pruned.sum(axis=0, keepdims=True) / max(prunable.sum(), 1.0)
        sums["pruned"] = _mean_of(share, starts)
    return {name: values[0] for name, values in sums.items()}


def pool(states: StateCounts, starts: Integers) -> dict[str, npt.NDArray[Any]]:
    """Makes columns of records, given the first record of each, as from `thinning.columns`.

    Returns `shares`, uint8 (rows, columns, states), the mean of the records that have data, in
    parts that add up to `WHOLE`; `mean_delta`, float32 (rows, columns), weighted by moving
    channels; and `marks`, uint8 (rows, columns), those that any record has.
    """
    counts, violated, mean = states
    has_data = counts[..., channel_states.NO_DATA] < counts.sum(axis=2)
    sums = np.add.reduceat(np.where(has_data[..., None], counts, 0), starts, axis=1)
    empty = ~np.logical_or.reduceat(has_data, starts, axis=1)
    sums[empty, channel_states.NO_DATA] = 1
    marks = np.logical_or.reduceat(violated > 0, starts, axis=1) * np.uint8(VIOLATED)
    deltas = _mean_of(mean, starts, counts[..., channel_states.MOVING])
    return {"shares": _parts(sums), "mean_delta": deltas, "marks": marks}


def _parts(sums: Floats) -> npt.NDArray[np.uint8]:
    """Sums as whole parts, rounded so that they add up to `WHOLE`; what is rare keeps a part."""
    totals = sums.sum(axis=2, keepdims=True)
    edges = np.rint(np.cumsum(sums, axis=2) * (WHOLE / np.maximum(totals, 1)))
    parts = np.diff(edges, axis=2, prepend=0)
    for rare in (channel_states.REACTIVATED, channel_states.NONFINITE):
        lost = (sums[..., rare] > 0) & (parts[..., rare] == 0)
        if lost.any():
            rows = parts[lost]
            rows[np.arange(len(rows)), rows.argmax(axis=1)] -= 1
            rows[:, rare] = 1
            parts[lost] = rows
    parts_u1: npt.NDArray[np.uint8] = parts.astype(np.uint8)
    return parts_u1


def _weighted(values: Floats, weights: Floats) -> Floats:
    """The weighted mean over rows, without NaN; NaN if all weights are 0."""
    weights = np.where(np.isnan(values), 0, weights)
    with np.errstate(invalid="ignore"):
        mean: Floats = (np.nan_to_num(values) * weights).sum(axis=0) / weights.sum(axis=0)
    return mean


def _mean_of(
    values: Floats, starts: Integers, weights: npt.ArrayLike = 1.0
) -> npt.NDArray[np.float32]:
    """The weighted mean of each column's records, without NaN; NaN if all weights are 0."""
    weights = np.where(np.isnan(values), 0, weights)
    sums = np.add.reduceat(np.nan_to_num(values) * weights, starts, axis=1)
    with np.errstate(invalid="ignore"):
        return (sums / np.add.reduceat(weights, starts, axis=1)).astype(np.float32)
