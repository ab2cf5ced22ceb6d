"""How far the outputs of a run moved on its probe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.function_change import MEASURES, Input, Place
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.function_series import FunctionSeries
from tb_pastnet.reader.tables import Column, Columns, labels, repeated, to_dataframe

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float32]


class Function:
    """The outputs of the network at each record, compared with those of its past values.

    One row a record and one column a place. NaN stands where a record lacks a place, where an
    output isn't finite, and where a place doesn't decide between classes.

    Args:
        series: the records.

    Attributes:
        places: what was compared, layers in forward order and then outputs: `kind` ("layer" or
            "output"), `name`, and `elements` of one sample.
        probe: the batch of the last record, an entry for each input: `name`, `shape`, `dtype`,
            `digest`.
        changed: steps of the records made on another batch than the one before, the first 256.
    """

    def __init__(self, series: FunctionSeries) -> None:
        self._series = series
        self.places: tuple[Place, ...] = series.places
        self.probe: tuple[Input, ...] = series.probe
        self.changed: tuple[int, ...] = series.changed

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._series.steps.copy()

    @property
    def past_steps(self) -> Integers:
        """int64 (records,), the step of the past values that each record compares with."""
        return self._series.past_steps.copy()

    @property
    def relative(self) -> Floats:
        """float32 (records, places), ‖y − y′‖₂ / ‖y′‖₂: 0/0 is 0, x/0 infinite."""
        return self._measure("relative")

    @property
    def cosine(self) -> Floats:
        """float32 (records, places), y·y′ / (‖y‖₂ ‖y′‖₂): 1 where both are 0, 0 where one is."""
        return self._measure("cosine")

    @property
    def divergence(self) -> Floats:
        """float32 (records, places), the mean KL(p′ ‖ p) of the classes over samples, in nats."""
        return self._measure("divergence")

    @property
    def decisions(self) -> Floats:
        """float32 (records, places), the share of samples whose decided class differs."""
        return self._measure("decisions")

    def to_dataframe(self) -> DataFrame:
        """All of it, a row for each record and place; the columns are those of the CSV export.

        Returns:
            Columns step, past_step, kind, place and one for each measure.

        Raises:
            ImportError: pandas isn't installed.
        """
        return to_dataframe(self.columns())

    def columns(self) -> Columns:
        """All of it by column, without pandas.

        Returns:
            The columns of `to_dataframe` as arrays, texts as `Labels`.
        """
        places, records = len(self.places), len(self._series.steps)
        columns: dict[str, Column] = {
            "step": np.repeat(self._series.steps, places),
            "past_step": np.repeat(self._series.past_steps, places),
            "kind": repeated(labels([place.kind for place in self.places]), records),
            "place": repeated(labels([place.name for place in self.places]), records),
        }
        return columns | {name: self._measure(name).ravel() for name in MEASURES}

    def __repr__(self) -> str:
        return f"Function({len(self._series.steps):,} records of {len(self.places):,} places)"

    def _measure(self, name: str) -> Floats:
        return np.ascontiguousarray(self._series.values[MEASURES.index(name)].T)
