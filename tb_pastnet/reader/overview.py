"""All layers of a run, record by record: how many channels are in which state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account
from tb_pastnet.core.states import FROZEN, MOVING, PRUNED, REACTIVATED, SETTLED
from tb_pastnet.reader.figures import Figures
from tb_pastnet.reader.tables import Column, Columns, Labels, csv_pieces, to_dataframe

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BY_RECORD = (
    "moving", "reactivated", "settled", "frozen", "pruned",
    "violated", "nonfinite", "mean_delta", "pruned_weights",
)  # fmt: skip


class Overview:
    """Channels of each layer in each state; one row a record and one column a layer.

    A record that a layer lacks counts no channel in any state.

    Args:
        figures: of the run.

    Attributes:
        layers: ids of the layers, in forward order.
        threshold: the relative delta under which a channel counts as quiet.
        steps: int64 (records,), increasing.
        channels: int64 (layers,), how many there are.
        moving: int64 (records, layers), how many of them are moving.
        reactivated: likewise.
        settled: likewise.
        frozen: likewise.
        pruned: likewise.
        violated: int64 (records, layers), channels that moved although they were held, as a whole
            or in part.
        nonfinite: int64 (records, layers), channels with NaN or infinity.
        mean_delta: float32 (records, layers), the mean relative delta of moving channels, each
            taken as 1 at most; NaN where none moves.
        pruned_weights: float64 (records, layers), weights that the kept masks hold at zero; NaN
            where that isn't known.
        prunable_weights: int64 (layers,), weights that can be pruned: of kernels, and of every
            variable that ever was. A variable that two layers share counts in the first.
        accounts: of each layer, what became of the records of the variable that it is drawn by.
    """

    def __init__(self, figures: Figures) -> None:
        counts = figures.counts.transpose(2, 1, 0).astype(np.int64)
        self.layers = tuple(layer.id for layer in figures.run.layers)
        self.threshold = figures.threshold
        self.steps: Integers = figures.steps.copy()
        self.accounts: tuple[Account, ...] = figures.summary.accounts
        self.channels = np.array(figures.channels, np.int64)
        self.moving = counts[MOVING].copy()
        self.reactivated = counts[REACTIVATED].copy()
        self.settled = counts[SETTLED].copy()
        self.frozen = counts[FROZEN].copy()
        self.pruned = counts[PRUNED].copy()
        self.violated = figures.violated.T.astype(np.int64, order="C")
        self.nonfinite = figures.nonfinite.T.astype(np.int64, order="C")
        self.mean_delta = figures.mean_delta.T.copy()
        self.pruned_weights = figures.pruned.T.copy()
        self.prunable_weights = np.array(figures.summary.prunable, np.int64)

    @property
    def sparsity(self) -> Floats:
        """float64 (records,), the share of prunable weights that kept masks hold at zero.

        NaN where that isn't known, and where no weight can be pruned.
        """
        prunable = int(self.prunable_weights.sum())
        pruned: Floats = self.pruned_weights.sum(axis=1)
        return pruned / prunable if prunable else np.full(len(self.steps), np.nan)

    def to_dataframe(self) -> DataFrame:
        """All of it, a row for each record and layer; the columns are those of the CSV export.

        Returns:
            Columns step, layer (categorical), channels, the states, violated, nonfinite,
            mean_delta, pruned_weights (NaN where that isn't known) and prunable_weights.

        Raises:
            ImportError: pandas isn't installed.
        """
        return to_dataframe(self.columns())

    def columns(self) -> Columns:
        """All of it by column, without pandas.

        Returns:
            The columns of `to_dataframe` as arrays, texts as `Labels`.
        """
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


def overview_csv(figures: Figures) -> Iterator[str]:
    """The same as the tab exports it, some lines at a time."""
    return csv_pieces([Overview(figures).columns()], ".4g", {"pruned_weights": ".0f"})
