"""What an overlap is asked of: unit, mask and layer, and how the sets of them are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.description import Variable
from tb_pastnet.serve.store.notes import Notes
from tb_pastnet.serve.store.overlap_channels import each_channels
from tb_pastnet.serve.store.overlap_masks import each_weights
from tb_pastnet.serve.store.overlap_sets import WEIGHTS, Layers, Sets, drawn, in_force
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import Store

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_KERNEL = "kernel"


def origin(run: Run) -> str:
    """Equal where weights come from the same initial values, "" where nothing is known of that."""
    return run.description.origin if run.description else ""


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
        """The step of the record that stands at a step, the last one by default."""
        steps = self.steps(run, said)
        if step is None:
            return int(steps[-1]) if len(steps) else None
        at = int(in_force(steps, *np.full((2, 1), step))[0])
        return int(steps[at]) if at >= 0 else None

    def layers(self, runs: Sequence[Run]) -> list[dict[int, Variable]]:
        """Of each layer the variables that it is drawn by, by the position of the runs."""
        found: dict[str, dict[int, Variable]] = {}
        for at, run in enumerate(runs):
            for id_, variable in drawn(run, self.layer).items():
                found.setdefault(id_, {})[at] = variable
        return list(found.values())

    def each(
        self, runs: Sequence[Run], steps: Sequence[Integers], layers: Layers, said: Notes
    ) -> Iterator[Mapping[int, Sets]]:
        """The sets of each layer. See `each_weights` and `each_channels`."""
        read = each_weights if self.unit == WEIGHTS else each_channels
        return read(self.store, self.caller, runs, steps, layers, self.mask, said)


def prunable(question: Question, runs: Sequence[Run], layers: Layers) -> list[Flags]:
    """Which layers count, bool (runs,) each: of weights those that can be pruned or ever were."""
    if question.unit != WEIGHTS:
        return [np.isin(np.arange(len(runs)), list(layer)) for layer in layers]
    helds = [question.store.held(question.caller, run) for run in runs]
    found = [np.zeros(len(runs), bool) for _ in layers]
    for flags, layer in zip(found, layers, strict=True):
        for at, one in layer.items():
            flags[at] = one.role == _KERNEL or helds[at].pruned_once(one.id)
    return found
