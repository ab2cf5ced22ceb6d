"""The records of one variable as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import statistics
from tb_pastnet.core.account import Account
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.states import NAMES, STATE, THRESHOLD, VIOLATED, States
from tb_pastnet.core.states import relative_delta as delta_codes
from tb_pastnet.format.description import Variable
from tb_pastnet.reader.columns import Column, Columns, Labels
from tb_pastnet.reader.masks_at import MasksAt, masks_at
from tb_pastnet.reader.run_reader import CALLER, Reader
from tb_pastnet.reader.series import Series
from tb_pastnet.reader.tables import table
from tb_pastnet.reader.violation import Violation
from tb_pastnet.reader.violation_list import mark

if TYPE_CHECKING:
    from pandas import DataFrame

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_NAMES = np.array(NAMES)


class Records:
    """What was recorded of a variable, one row a record and one column a channel.

    Every array is read when it is asked for, and is the caller's own. Values are right within
    2.2 %; zeros, and ones of shares, are exact. NaN stands for what isn't known.

    Args:
        reader: of the run.
        variable: of the run.
    """

    def __init__(self, reader: Reader, variable: Variable) -> None:
        self._reader = reader
        self._variable = variable

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the variable."""
        return self._variable.shape

    @property
    def axis(self) -> str:
        """Its channel axis in words, mostly a number such as "-1"."""
        return self._variable.axis

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self._variable.channels

    @property
    def elements(self) -> int:
        """How many elements each channel has."""
        return self._variable.elements

    @property
    def role(self) -> str:
        """What it is: "kernel", "bias", "scale", "statistic" or "other"."""
        return self._variable.role

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._series().steps.copy()

    @property
    def past_steps(self) -> Integers:
        """int64 (records,), the step of the past value that each record compares with."""
        return self._series().past_steps.copy()

    @property
    def wall_times(self) -> Floats:
        """float64 (records,), seconds since 1970."""
        return self._series().wall_times.copy()

    @property
    def learning_rates(self) -> Floats:
        """float64 (records,), of the optimizer."""
        return self._series().learning_rates.copy()

    @property
    def norm(self) -> Floats:
        """float64 (records, channels), ‖w‖₂ over the finite elements."""
        return self._statistic(statistics.NORM)

    @property
    def past_norm(self) -> Floats:
        """float64 (records, channels), ‖w_past‖₂."""
        return self._statistic(statistics.PAST_NORM)

    @property
    def delta_norm(self) -> Floats:
        """float64 (records, channels), ‖w − w_past‖₂."""
        return self._statistic(statistics.DELTA_NORM)

    @property
    def delta_max(self) -> Floats:
        """float64 (records, channels), the largest |w − w_past|."""
        return self._statistic(statistics.DELTA_MAX)

    @property
    def changed(self) -> Floats:
        """float64 (records, channels), the share of elements that changed at all."""
        return self._statistic(statistics.CHANGED)

    @property
    def nonfinite(self) -> Floats:
        """float64 (records, channels), how many elements are NaN or infinite."""
        return np.rint(self._statistic(statistics.NONFINITE))

    @property
    def kept(self) -> Floats:
        """float64 (records, channels), the share of elements that the kept mask lets through."""
        return self._statistic(statistics.KEPT)

    @property
    def trainable(self) -> Floats:
        """float64 (records, channels), the share of elements that an update may change."""
        return self._statistic(statistics.TRAINABLE)

    @property
    def relative_delta(self) -> Floats:
        """float64 (records, channels), ‖w − w_past‖₂ / ‖w_past‖₂: 0/0 is 0, x/0 infinite."""
        return dequantize(delta_codes(self._series().codes))

    @property
    def violated(self) -> Flags:
        """Where held weights weren't what they were: bool (records, channels)."""
        flags: Flags = (self._told(THRESHOLD) & np.uint8(VIOLATED)) != 0
        return flags

    def states(self, threshold: float = THRESHOLD) -> npt.NDArray[np.str_]:
        """The state of each channel at each record.

        Args:
            threshold: the relative delta under which a channel is quiet. After five quiet records
                it is settled; with 0 none ever is.

        Returns:
            str (records, channels): "moving", "reactivated", "settled", "frozen" or "pruned".
        """
        names: npt.NDArray[np.str_] = _NAMES[self._told(threshold) & np.uint8(STATE)]
        return names

    def masks(self, step: int | None = None) -> MasksAt:
        """The masks of single weights as the record of a step saw them.

        Args:
            step: any step; None: that of the last record, or 0 where there is none.
        """
        if step is None:
            step = max(self._series().steps.tolist(), default=0)
        return masks_at(self._reader, self._variable, step)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Held weights of it that moved, by first step and channel."""
        found = self._reader.violations
        return tuple(one for one in found if one.variable == self._variable.id)

    @property
    def account(self) -> Account:
        """What became of its records: offered is the sum of the other numbers."""
        return self._series().account

    @property
    def notes(self) -> Mapping[str, int]:
        """What could not be read, and how often, the most frequent first."""
        return dict(self._series().notes.most_common())

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """All of it, a row for each record and channel; the columns are those of the CSV export.

        Args:
            threshold: as for `states`.

        Returns:
            Columns step, past_step, channel, state (categorical), violated (bool), relative_delta
            and one for each statistic.

        Raises:
            ImportError: pandas isn't installed.
        """
        return table(self.columns(threshold))

    def columns(self, threshold: float = THRESHOLD) -> Columns:
        """All of it by column, without pandas.

        Args:
            threshold: as for `states`.

        Returns:
            The columns of `to_dataframe` as arrays, texts as `Labels`.
        """
        series, told = self._series(), self._told(threshold)
        records = len(series.steps)
        values = dequantize(series.codes)
        columns: dict[str, Column] = {
            "step": np.repeat(series.steps, self.channels),
            "past_step": np.repeat(series.past_steps, self.channels),
            "channel": np.tile(np.arange(self.channels), records),
            "state": Labels(NAMES, (told & np.uint8(STATE)).ravel()),
            "violated": ((told & np.uint8(VIOLATED)) != 0).ravel(),
            "relative_delta": dequantize(delta_codes(series.codes)).ravel(),
        }
        values[statistics.NONFINITE] = np.rint(values[statistics.NONFINITE])
        columns |= {name: values[row].ravel() for row, name in enumerate(statistics.STATISTICS)}
        return columns

    def _series(self) -> Series:
        return self._reader.store.series(CALLER, self._reader.run, self._variable.id)

    def _statistic(self, row: int) -> Floats:
        return dequantize(self._series().codes[row])

    def _told(self, threshold: float) -> States:
        reader, variable = self._reader, self._variable.id
        moves = reader.store.movement(CALLER, reader.run, variable)
        found = reader.held.violations.get(variable, ())
        return mark(moves.told(threshold), moves.steps, found)
