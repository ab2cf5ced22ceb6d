"""Exact figures of a run: channels of each layer in each state, record by record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.format.description import LayerEntry
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import smallest
from tb_pastnet.reader.run_summary import RunSummary, summary_of
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.tally import StateCounts
from tb_pastnet.reader.threads import in_threads

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCK = 64
"""Records in one answer at most."""


class StepSpan(NamedTuple):
    """Which steps are asked for.

    Attributes:
        first: the first step; None: that of the first record.
        last: likewise.
    """

    first: int | None = None
    last: int | None = None

    def of(self, steps: Integers) -> slice:
        """Where these steps lie among some, int64 (steps,), increasing."""
        first = None if self.first is None else int(np.searchsorted(steps, self.first))
        last = None if self.last is None else int(np.searchsorted(steps, self.last, side="right"))
        return slice(first, last)


@dataclass(frozen=True, eq=False)
class Figures:
    """All layers of a run at some of its records.

    Attributes:
        run: the run.
        threshold: relative delta under which a channel is quiet.
        summary: what is known of the run.
        steps: int64 (records,).
        rows: one for each layer of the run, in its order, on these steps.
        pruned: float64 (layers, records), pruned weights, NaN where unknown.
    """

    run: CatalogRun
    threshold: float
    summary: RunSummary
    steps: Integers
    rows: tuple[StateCounts, ...]
    pruned: Floats

    @property
    def channels(self) -> list[int]:
        """Of each layer."""
        return [self.run.variables[layer.main].channels for layer in self.run.layers]

    @property
    def prunable(self) -> list[int]:
        """Weights that can be pruned, of each layer."""
        return [pruned.prunable for pruned in self.summary.pruned]

    @property
    def layers(self) -> tuple[LayerEntry, ...]:
        """Of the run."""
        return self.run.layers

    def among(self, records: slice) -> Figures:
        """The same at some of the records."""
        return replace(
            self,
            steps=self.steps[records],
            rows=tuple(row.among(records) for row in self.rows),
            pruned=self.pruned[:, records],
        )

    def header(self) -> dict[str, Any]:
        """What answers about all layers begin with."""
        return {
            "run": self.run.name,
            "threshold": self.threshold,
            "patience": states.PATIENCE,
            "past": self.run.past,
            "layers": [layer.id for layer in self.layers],
            "channels": self.channels,
            "prunable": self.prunable,
        }

    def axis(self) -> tuple[Floats, npt.NDArray[np.float32]]:
        """The wall times and learning rates at its steps, NaN where they aren't known."""
        axis = self.run.axis
        times = _looked_up(axis.steps, axis.wall_times, self.steps)
        return times, _looked_up(axis.steps, axis.learning_rates, self.steps).astype(np.float32)

    def block(self, step: int, count: int) -> Sections:
        """The records that hold the one in force at a step, as the route `records` gives them.

        Args:
            step: of the record, or after it; before the first one the first block is meant.
            count: records in a block.
        """
        record = max(int(np.searchsorted(self.steps, step, side="right")) - 1, 0)
        first = record // count * count
        part = slice(first, first + count)
        steps = self.steps[part]
        layers = [self._in_force(layer, part) for layer in range(len(self.rows))]
        shape = (len(layers), len(steps))

        def stack(name: str, *tail: int) -> npt.NDArray[Any]:
            return np.array([getattr(row, name) for row, _, _ in layers]).reshape(*shape, *tail)

        ages = np.array([age for _, age, _ in layers]).reshape(shape)
        times, rates = self.among(part).axis()
        sections: dict[str, npt.NDArray[Any]] = {
            "steps": steps.astype(np.float64),
            "wall_times": times,
            "learning_rates": rates,
            "age": smallest(ages.astype(np.float64)),
            "counts": smallest(stack("counts", len(states.NAMES))),
            "violated": smallest(stack("violated")),
            "nonfinite": smallest(stack("nonfinite")),
            "mean_delta": stack("mean_delta").astype(np.float32),
            "pruned": smallest(np.array([pruned for *_, pruned in layers]).reshape(shape)),
        }
        return self.header(), sections

    def _in_force(self, layer: int, part: slice) -> tuple[StateCounts, Integers, Floats]:
        """Of a layer its newest record at or before each step, and how many steps ago that was.

        Its pruned weights are those of that record, too; before its first one those of the step.
        """
        has = self.summary.rows[layer] >= 0
        newest = np.maximum.accumulate(np.where(has, np.arange(len(has)), -1))[part]
        ages = np.where(newest >= 0, self.steps[part] - self.steps[newest], 0)
        pruned = self.pruned[layer, np.where(newest >= 0, newest, np.arange(len(has))[part])]
        return self.rows[layer].on(newest, self.channels[layer]), ages, pruned


def figures_of(reader: RunReader, threshold: float) -> Figures:
    """Reads all layers of a run."""

    def make() -> tuple[Figures, int | None]:
        summary, run = summary_of(reader), reader.run
        layers = zip(run.layers, summary.tallies, summary.rows, strict=True)
        rows = in_threads(
            lambda layer: (
                layer[1].counts(threshold).on(layer[2], run.variables[layer[0].main].channels)
            ),
            list(layers),
        )
        counts = [pruned.counts for pruned in summary.pruned]
        pruned = np.array(counts, np.float64).reshape(len(counts), len(summary.steps))
        figures = Figures(run, threshold, summary, summary.steps, tuple(rows), pruned)
        size = sum(row.size for row in figures.rows) + pruned.nbytes
        return figures, notes.kept_size(summary.notes, size)

    return reader.kept(("figures", threshold), make)


def _looked_up(axis: Integers, values: Floats, steps: Integers) -> Floats:
    """The values at some steps, NaN where the axis doesn't know them."""
    result = np.full(len(steps), np.nan)
    if len(axis):
        row = np.minimum(np.searchsorted(axis, steps), len(axis) - 1)
        hit = axis[row] == steps
        result[hit] = values[row[hit]]
    return result
