"""Exact figures of a run: channels of each layer in each state, record by record."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.checks import check_threshold
from tb_pastnet.reader.arrays import Flags, Floats, Integers, rows_of, values_at
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.run_summary import LayerTally, RunSummary, summary_of, tallies_of
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
    def size(self) -> int:
        """Bytes that it holds, without those of the summary."""
        return sum(own.nbytes for own in (*self.states, self.pruned))

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
            **self.run.axis.facts(),
        }

    def axis(self) -> tuple[Floats, npt.NDArray[np.float32]]:
        """The wall times and learning rates at its steps, NaN where unknown."""
        axis = self.run.axis
        row = rows_of(self.steps, axis.steps)
        rates = values_at(row, axis.learning_rates).astype(np.float32)
        return values_at(row, axis.wall_times), rates

    def at_end(self) -> tuple[Figures, Integers]:
        """These figures at the last record, with each layer's newest states, and their steps."""
        end = self.among(slice(-1, None))
        records = len(self.steps)
        if not records:
            return end, np.zeros(len(self.run.layers), np.int64)
        shown = newest(self._shows_states, slice(records - 1, records))
        layers = np.arange(len(shown))[:, None]
        return replace(end, states=self.states.at((layers, shown))), self.steps[shown[:, 0]]

    def _shows_states(self, part: slice) -> Flags:
        """Whether each layer shows a state: not where it lacks the record, or all past values."""
        unknown = self.states.counts[:, part, channel_states.NO_DATA]
        shows: Flags = unknown < np.array(self.channels, np.int64)[:, None]
        return shows

    def _recorded(self, part: slice) -> Flags:
        """Whether each layer has the record."""
        recorded: Flags = self.summary.rows[:, part] >= 0
        return recorded

    def block(self, step: int | None, count: int) -> Sections:
        """The block of records around the one in force at a step, for the route `records`.

        Blocks have `count` records. None stands for the last step; a step before all records is in
        the first block. For a layer whose record is missing, or shows no state, the newest earlier
        one that shows one is used, with its age. Pruned weights need no past values: they are
        those of the newest record.
        """
        begun = len(self.steps) if step is None else np.searchsorted(self.steps, step, side="right")
        record = max(int(begun) - 1, 0)
        first = record // count * count
        part = slice(first, min(first + count, len(self.steps)))
        shown = newest(self._shows_states, part)
        layers = np.arange(len(shown))[:, None]
        states = self.states.at((layers, shown))
        times, rates = self.among(part).axis()
        sections: dict[str, npt.NDArray[Any]] = {
            "steps": self.steps[part].astype(np.float64),
            "wall_times": times,
            "learning_rates": rates,
            "age": smallest((self.steps[part] - self.steps[shown]).astype(np.float64)),
            "counts": smallest(states.counts),
            "violated": smallest(states.violated),
            "mean_delta": states.mean_delta,
            "pruned": smallest(self.pruned[layers, newest(self._recorded, part)]),
        }
        return self.header(), sections, self.notes


def newest(flags: Callable[[slice], Flags], part: slice) -> Integers:
    """The newest record with the flag, of each layer up to each of some records; itself if none.

    `flags` returns those of each layer, (layers, records).
    """
    records = np.arange(part.start, part.stop)
    newest = np.maximum.accumulate(np.where(flags(part), records, -1), axis=1)
    if len(records) and (behind := newest[:, 0] < 0).any():
        # Most layers have it here: earlier records, which may be many, are rarely looked at.
        earlier = flags(slice(0, part.start))[behind]
        nearest = part.start - 1 - np.argmax(earlier[:, ::-1], axis=1) if part.start else -1
        last = np.where(earlier.any(axis=1), nearest, -1)
        newest[behind] = np.maximum(newest[behind], last[:, None])
    return np.where(newest >= 0, newest, records)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Counts, of which those of channels are deflated: many runs stay cached."""

    counts: bytes
    violated: bytes
    dtype: np.dtype[Any]  # of both
    mean_delta: npt.NDArray[np.float32]  # (layers, records); it hardly deflates
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return len(self.counts) + len(self.violated) + self.mean_delta.nbytes

    def restored(self) -> StateCounts:
        """The counts as uint32, the mean relative delta as float32."""
        shape = self.mean_delta.shape
        counts, violated = (
            np.frombuffer(zlib.decompress(data), self.dtype).astype(np.uint32)
            for data in (self.counts, self.violated)
        )
        states = len(channel_states.NAMES)
        counts, violated = counts.reshape(*shape, states), violated.reshape(shape)
        return StateCounts(counts, violated, self.mean_delta)


def figures_of(reader: RunReader, threshold: float) -> Figures:
    """Reads all layers of a run."""
    check_threshold(threshold)
    # Many requests in turn are about the same records: those under the pointer, those of a file.
    return reader.kept(("figures", threshold), lambda: _figures(reader, threshold), large=True)


def _figures(reader: RunReader, threshold: float) -> Figures:
    kept = reader.kept(("counts", threshold), lambda: _count(reader, threshold))
    summary = summary_of(reader)
    pruned = summary.pruned.astype(np.float64)
    return Figures(reader.run, threshold, summary, summary.steps, kept.restored(), pruned)


def _count(reader: RunReader, threshold: float) -> _Kept:
    tallies, run = tallies_of(reader), reader.run
    all_rows = tallies.summary.rows
    widths = np.array([run.variables[layer.main].channels for layer in run.layers], np.int64)
    dtype = np.min_scalar_type(widths.max(initial=0))
    counts = np.zeros((*all_rows.shape, len(channel_states.NAMES)), dtype)
    violated = np.zeros(all_rows.shape, dtype)
    mean_delta = np.full(all_rows.shape, np.nan, np.float32)

    def fill(own: LayerTally) -> None:
        # The records of a tally are the same for all of its layers.
        rows = all_rows[own.layers[0]]
        recorded = np.flatnonzero(rows >= 0)
        counts[own.layers, :, channel_states.NO_DATA] = widths[own.layers, None]
        by_variable = own.tally.counts(threshold)
        for array, values in zip((counts, violated, mean_delta), by_variable, strict=True):
            if len(recorded) == len(rows) == values.shape[1]:
                array[own.layers] = values[own.variables]
            else:
                array[np.ix_(own.layers, recorded)] = values[np.ix_(own.variables, rows[recorded])]

    list(in_threads(fill, tallies.tallies))
    mean_delta.setflags(write=False)
    deflated, deflated_violated = (zlib.compress(own.tobytes(), 1) for own in (counts, violated))
    return _Kept(deflated, deflated_violated, dtype, mean_delta, tallies.notes)
