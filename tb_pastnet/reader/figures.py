"""Exact figures of a run: channels of each layer in each state, record by record."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.checks import check_threshold
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.run_summary import RunSummary, summary_of, tallies_of
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections, smallest
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.tally import StateCounts
from tb_pastnet.reader.threads import in_threads

BLOCK = 64
"""Records in one answer at most."""


class StepSpan(NamedTuple):
    """A range of steps."""

    first: int | None = None  # None: that of the first record
    last: int | None = None  # None: that of the last record

    def of(self, steps: Integers) -> slice:
        """The place of these steps among others, int64 (steps,), increasing."""
        first = None if self.first is None else int(np.searchsorted(steps, self.first))
        last = None if self.last is None else int(np.searchsorted(steps, self.last, side="right"))
        return slice(first, last)


@dataclass(frozen=True, eq=False)
class Figures:
    """All layers of a run, in their order, at some of its records."""

    run: CatalogRun
    threshold: float  # relative delta under which a channel is quiet
    summary: RunSummary  # of the run
    steps: Integers  # (records,)
    states: StateCounts  # (layers, records, …)
    pruned: Floats  # (layers, records), pruned weights, NaN where unknown

    @property
    def notes(self) -> Notes:
        """What could not be read, and why."""
        return self.summary.notes

    @property
    def channels(self) -> list[int]:
        """Of each layer."""
        return [self.run.variables[layer.main].channels for layer in self.run.layers]

    def among(self, records: slice) -> Figures:
        """The same at some of the records."""
        return replace(
            self,
            steps=self.steps[records],
            states=self.states.at((slice(None), records)),
            pruned=self.pruned[:, records],
        )

    def header(self) -> dict[str, Any]:
        """The header of answers about all layers."""
        return {
            "run": self.run.name,
            "threshold": self.threshold,
            "patience": channel_states.PATIENCE,
            "past": self.run.past,
            "layers": [layer.id for layer in self.run.layers],
            "channels": self.channels,
            "prunable": list(self.summary.prunable),
        }

    def axis(self) -> tuple[Floats, npt.NDArray[np.float32]]:
        """The wall times and learning rates at its steps, NaN where unknown."""
        axis = self.run.axis
        timed = np.isin(self.steps, axis.steps)
        row = np.searchsorted(axis.steps, self.steps[timed])
        times, rates = np.full((2, len(self.steps)), np.nan)
        times[timed], rates[timed] = axis.wall_times[row], axis.learning_rates[row]
        return times, rates.astype(np.float32)

    def block(self, step: int | None, count: int) -> Sections:
        """The block of records around the one in force at a step, for the route `records`.

        Blocks have `count` records. None stands for the last step; a step before all records is in
        the first block. For a layer that lacks a record, the newest earlier one is used, with its
        age.
        """
        begun = len(self.steps) if step is None else np.searchsorted(self.steps, step, side="right")
        record = max(int(begun) - 1, 0)
        first = record // count * count
        part = slice(first, first + count)
        records = np.arange(len(self.steps))
        newest = np.maximum.accumulate(np.where(self.summary.rows >= 0, records, -1), axis=1)
        # Before a layer's first record, the figures of the step itself show that there is none.
        shown = np.where(newest >= 0, newest, records)[:, part]
        in_force = np.arange(len(shown))[:, None], shown
        states = self.states.at(in_force)
        times, rates = self.axis()
        sections: dict[str, npt.NDArray[Any]] = {
            "steps": self.steps[part].astype(np.float64),
            "wall_times": times[part],
            "learning_rates": rates[part],
            "age": smallest((self.steps[part] - self.steps[shown]).astype(np.float64)),
            "counts": smallest(states.counts),
            "violated": smallest(states.violated),
            "nonfinite": smallest(states.nonfinite),
            "mean_delta": states.mean_delta,
            "pruned": smallest(self.pruned[in_force]),
        }
        return self.header(), sections, self.notes


@dataclass(frozen=True, eq=False)
class _Kept:
    """Deflated arrays: a tenth of the size, so many runs stay cached."""

    arrays: list[tuple[bytes, np.dtype[Any], tuple[int, ...]]]
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(len(data) for data, _, _ in self.arrays)

    def restored(self) -> StateCounts:
        """The counts as uint32, the mean relative delta as float32."""
        arrays = (
            np.frombuffer(zlib.decompress(data), dtype).reshape(shape)
            for data, dtype, shape in self.arrays
        )
        return StateCounts(
            *(array if array.dtype.kind == "f" else array.astype(np.uint32) for array in arrays)
        )


def figures_of(reader: RunReader, threshold: float) -> Figures:
    """Reads all layers of a run."""
    check_threshold(threshold)
    kept = reader.kept(("figures", threshold), lambda: _count(reader, threshold))
    summary = summary_of(reader)
    pruned = summary.pruned.astype(np.float64)
    return Figures(reader.run, threshold, summary, summary.steps, kept.restored(), pruned)


def _count(reader: RunReader, threshold: float) -> _Kept:
    tallies, run = tallies_of(reader), reader.run
    all_rows = tallies.summary.rows
    counts = np.zeros((*all_rows.shape, len(channel_states.NAMES)), np.uint32)
    violated, nonfinite = np.zeros((2, *all_rows.shape), np.uint32)
    mean_delta = np.full(all_rows.shape, np.nan, np.float32)

    def fill(layer: int) -> None:
        recorded = all_rows[layer] >= 0
        own = tallies.layers[layer].counts(threshold).at(all_rows[layer, recorded])
        channels = run.variables[run.layers[layer].main].channels
        counts[layer, ~recorded, channel_states.NO_DATA] = channels
        for array, values in zip((counts, violated, nonfinite, mean_delta), own, strict=True):
            array[layer, recorded] = values

    list(in_threads(fill, range(len(run.layers))))
    arrays = (smallest(counts), smallest(violated), smallest(nonfinite), mean_delta)
    packed = [(zlib.compress(array.tobytes(), 1), array.dtype, array.shape) for array in arrays]
    return _Kept(packed, tallies.notes)
