"""All layers of a run, record by record: how many channels are in which state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account
from tb_pastnet.core.states import FROZEN, MOVING, PRUNED, REACTIVATED, SETTLED
from tb_pastnet.reader.figures import Figures
from tb_pastnet.reader.tables import Column, Columns, Labels, csv_pieces, to_dataframe
from tb_pastnet.reader.tally import StateCounts

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Number = TypeVar("Number", np.int64, np.float32, np.float64)

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
        rows, run = figures.rows, figures.run
        self.layers = tuple(layer.id for layer in run.layers)
        self.threshold = figures.threshold
        self.steps: Integers = figures.steps.copy()
        self.accounts: tuple[Account, ...] = figures.summary.accounts
        self.channels = np.array(figures.channels, np.int64)
        self.moving = self._states(rows, MOVING)
        self.reactivated = self._states(rows, REACTIVATED)
        self.settled = self._states(rows, SETTLED)
        self.frozen = self._states(rows, FROZEN)
        self.pruned = self._states(rows, PRUNED)
        self.violated = self._columns([row.violated for row in rows], np.int64)
        self.nonfinite = self._columns([row.nonfinite for row in rows], np.int64)
        self.mean_delta = self._columns([row.mean_delta for row in rows], np.float32)
        self.pruned_weights = self._columns(figures.pruned, np.float64)
        self.prunable_weights = np.array(figures.prunable, np.int64)

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

    def _states(self, rows: Sequence[StateCounts], state: int) -> Integers:
        return self._columns([row.counts[:, state] for row in rows], np.int64)

    def _columns(
        self, rows: Sequence[npt.NDArray[Any]] | npt.NDArray[Any], dtype: type[Number]
    ) -> npt.NDArray[Number]:
        return np.array(rows, dtype).reshape(len(self.layers), len(self.steps)).T.copy()


def overview_csv(figures: Figures) -> Iterator[str]:
    """The same as the tab exports it, some lines at a time."""
    return csv_pieces([Overview(figures).columns()], ".4g", {"pruned_weights": ".0f"})
