"""What an overlap of masks is asked of: runs, unit, mask and layer, and how their sets are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader.arrays import Flags, Integers
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import WEIGHTS, Layers, Sets, drawn, each_channels
from tb_pastnet.reader.overlap_weights import each_weights, moment
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.state_series import KERNEL
from tb_pastnet.reader.store import RunReader


@dataclass(frozen=True, eq=False)
class MaskComparison:
    """Runs whose masks are compared."""

    readers: Sequence[RunReader]  # of the runs, all of one store and on one behalf
    unit: str  # "weights" or "channels"
    mask: str  # "kept" or "trainable"
    layer: str | None = None  # the id of one layer, None for all of them

    @property
    def runs(self) -> list[CatalogRun]:
        """The runs."""
        return [reader.run for reader in self.readers]

    def steps(self, number: int, lost: Notes) -> Integers:
        """The steps of a run's records, as the overview has them."""
        reader, run = self.readers[number], self.readers[number].run
        damaged = any(head.damaged or head.start is None for head in run.lineages)
        if not damaged or not run.layers:
            return run.axis.steps
        # A part of the timeline is lost: the first layer may know of more.
        first = reader.state_series(run.layers[0].main)
        lost.update(first.notes)
        return np.union1d(run.axis.steps, first.steps)

    def record_at(self, number: int, step: int | None, lost: Notes) -> int | None:
        """The step of a run's newest record at or before a step, of the last one by default."""
        steps = self.steps(number, lost)
        if step is None:
            return int(steps[-1]) if len(steps) else None
        row = int(np.searchsorted(steps, step, side="right")) - 1
        return int(steps[row]) if row >= 0 else None

    def moment(self, number: int, step: int | None) -> Hashable:
        """The same for records of a run at which its sets are the same, as far as is known."""
        reader = self.readers[number]
        if step is None or (self.unit, self.mask) != (WEIGHTS, "kept"):
            return reader.run.version, step
        return moment(reader.masks, reader.run.lineages, step)

    @cached_property
    def related(self) -> Flags:
        """Which runs' weights and channels stand for each other, bool (runs, runs)."""
        origins = [run.origin for run in self.runs]
        return np.array([[a != "" and a == b for b in origins] for a in origins])

    def meet(self, steps: Sequence[Integers]) -> Flags:
        """Which of the runs are compared with each other, as both have records there."""
        present = np.array([bool((own >= 0).any()) for own in steps])
        met: Flags = self.related & present & present[:, None]
        np.fill_diagonal(met, False)
        return met

    def layers(self, steps: Sequence[Integers]) -> dict[str, dict[int, VariableEntry]]:
        """Of each layer the variables that it is drawn by, by the position of the runs.

        What a run had before it was resumed without it is left out. The steps are int64 (columns,)
        of each run: of records, -1 for none.
        """
        layers: dict[str, dict[int, VariableEntry]] = {}
        for number, run in enumerate(self.runs):
            for id_, variable in drawn(run, self.layer).items():
                absent = self._absent(number, variable, steps[number])[steps[number] >= 0]
                if not len(absent) or not absent.all():
                    layers.setdefault(id_, {})[number] = variable
        return layers

    def each(
        self, steps: Sequence[Integers], layers: Layers, lost: Notes
    ) -> Iterator[Mapping[int, Sets]]:
        """The sets of each layer."""
        if self.unit == WEIGHTS:
            alone = np.logical_not(self.meet(steps).any(axis=1))
            every = each_weights(self.readers, steps, self.mask, layers, lost, alone)
        else:
            every = each_channels(self.readers, steps, self.mask, layers, lost)
        for layer, by_run in zip(layers, every, strict=True):
            yield {
                number: sets.without(self._absent(number, layer[number], steps[number]))
                for number, sets in by_run.items()
            }

    def _absent(self, number: int, variable: VariableEntry, steps: Integers) -> Flags:
        """Where the network of that time doesn't have a variable: another lineage had it."""
        lineages = self.readers[number].run.lineages
        absent = np.zeros(len(steps), bool)
        if len(lineages) > 1:
            standing = self.readers[number].masks.standing(steps)
            for position, head in enumerate(lineages):
                if head.description is not None and variable.id not in head.described:
                    absent |= standing == position
        return absent

    def counted(self, layers: Layers) -> list[Flags]:
        """Which layers count, bool (runs,) each: of weights those that could ever be pruned."""
        counted = [np.zeros(len(self.readers), bool) for _ in layers]
        for flags, layer in zip(counted, layers, strict=True):
            for number, variable in layer.items():
                counts = self.unit != WEIGHTS or variable.role == KERNEL
                flags[number] = counts or self.readers[number].masks.pruned_once(variable.id)
        return counted
