"""What an overlap is asked of: unit, mask and layer, and how the sets of them are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import Variable
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_channels import each_channels
from tb_pastnet.reader.overlap_masks import each_weights
from tb_pastnet.reader.overlap_plan import moment
from tb_pastnet.reader.overlap_reader import Layers, Reader
from tb_pastnet.reader.overlap_sets import WEIGHTS, Sets, drawn
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

ORIGIN, LAYERS = "origin", "layers"

_KERNEL = "kernel"


def origin(run: Run) -> str:
    """Equal where weights come from the same initial values, "" where nothing is known of that."""
    return run.description.origin if run.description else ""


def related(one: Run, other: Run) -> bool:
    """Whether weights and channels of two runs stand for each other."""
    return bool(origin(one)) and origin(one) == origin(other)


@dataclass(frozen=True, eq=False)
class Question:
    """What is compared.

    Attributes:
        store: the records.
        caller: on whose behalf.
        unit: "weights" or "channels".
        mask: "kept" or "trainable".
        layer: the id of one layer, None for all of them.
    """

    store: Store
    caller: Caller
    unit: str
    mask: str
    layer: str | None = None
    _helds: dict[str, Held] = field(default_factory=dict)

    def held(self, run: Run) -> Held:
        """What a run tells of its masks, asked for once."""
        if run.name not in self._helds:
            self._helds[run.name] = self.store.held(self.caller, run)
        return self._helds[run.name]

    def steps(self, run: Run, said: Notes) -> Integers:
        """The steps of a run's records, as the overview has them.

        Args:
            run: from the catalog.
            said: gets what could not be read.
        """
        if not any(one.damaged or one.start is None for one in run.lineages) or not run.layers:
            return run.axis.steps
        # A part of the timeline is lost: the first layer may know of more.
        first = self.store.movement(self.caller, run, run.layers[0].main)
        said.update(first.notes)
        return np.union1d(run.axis.steps, first.steps)

    def record_at(self, run: Run, step: int | None, said: Notes) -> int | None:
        """The step of the newest record at or before a step, of the last one by default."""
        steps = self.steps(run, said)
        if step is None:
            return int(steps[-1]) if len(steps) else None
        at = int(np.searchsorted(steps, step, side="right")) - 1
        return int(steps[at]) if at >= 0 else None

    def moment(self, run: Run, step: int | None) -> Hashable:
        """The same for steps of a run at which its sets are the same, as far as that is known.

        Args:
            run: from the catalog.
            step: of a record; None where there is none.
        """
        if step is None or (self.unit, self.mask) != (WEIGHTS, "kept"):
            return run.version, step
        return moment(self.held(run), run, step)

    def meet(self, runs: Sequence[Run], there: Sequence[bool]) -> Flags:
        """Which of the runs are compared with each other, bool (runs, runs).

        Args:
            runs: from the catalog.
            there: whether each has a record.
        """
        origins = [origin(run) if here else "" for run, here in zip(runs, there, strict=True)]
        found = np.array([[a != "" and a == b for b in origins] for a in origins])
        np.fill_diagonal(found, False)
        return found

    def layers(
        self, runs: Sequence[Run], steps: Sequence[Integers]
    ) -> dict[str, dict[int, Variable]]:
        """Of each layer the variables that it is drawn by, by the position of the runs.

        Args:
            runs: from the catalog.
            steps: int64 (columns,) for each of them: of records, -1 for none. What a run had
                before it was resumed without it is left out.
        """
        found: dict[str, dict[int, Variable]] = {}
        for at, run in enumerate(runs):
            for id_, variable in drawn(run, self.layer).items():
                absent = self._absent(run, variable, steps[at])[steps[at] >= 0]
                if not len(absent) or not absent.all():
                    found.setdefault(id_, {})[at] = variable
        return found

    def each(
        self, runs: Sequence[Run], steps: Sequence[Integers], layers: Layers, said: Notes
    ) -> Iterator[Mapping[int, Sets]]:
        """The sets of each layer.

        Args:
            runs: from the catalog.
            steps: int64 (columns,) for each of them: of records, -1 for none.
            layers: what to read.
            said: gets what could not be read.
        """
        reader = Reader(self.store, self.caller, runs, steps, self.mask, said)
        for layer, sets in zip(layers, self._read(reader, layers), strict=True):
            yield {
                at: one.without(self._absent(runs[at], layer[at], steps[at]))
                for at, one in sets.items()
            }

    def _read(self, reader: Reader, layers: Layers) -> Iterator[Mapping[int, Sets]]:
        if self.unit != WEIGHTS:
            return each_channels(reader, layers)
        meet = self.meet(reader.runs, [bool((one >= 0).any()) for one in reader.steps])
        alone = np.array([not some.any() for some in meet])
        return each_weights(reader, [self.held(run) for run in reader.runs], layers, alone)

    def _absent(self, run: Run, variable: Variable, steps: Integers) -> Flags:
        """Where the network of that time doesn't have a variable: another lineage had it."""
        absent = np.zeros(len(steps), bool)
        if len(run.lineages) > 1:
            standing = self.held(run).standing(steps)
            for at, one in enumerate(run.lineages):
                if one.description is not None and variable.id not in one.described:
                    absent |= standing == at
        return absent

    def counted(self, runs: Sequence[Run], layers: Layers) -> list[Flags]:
        """Which layers count, bool (runs,) each: of weights those that can or ever could be pruned.

        Args:
            runs: from the catalog.
            layers: theirs.
        """
        found = [np.zeros(len(runs), bool) for _ in layers]
        for flags, layer in zip(found, layers, strict=True):
            for at, one in layer.items():
                kernel = self.unit != WEIGHTS or one.role == _KERNEL
                flags[at] = kernel or self.held(runs[at]).pruned_once(one.id)
        return found
