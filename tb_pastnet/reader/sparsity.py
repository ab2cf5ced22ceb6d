"""How many weights of each layer are pruned, exactly where the log of mask changes says it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.reader import notes
from tb_pastnet.reader.mask_history import MaskHistory
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import SINK, CatalogRun

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_KERNEL = "kernel"
_PRECISION = 0.045


class Shares(NamedTuple):
    """What the records of a variable say of its kept mask.

    Attributes:
        steps: int64 (records,), increasing.
        pruned: float64 (records,), weights that it holds at zero.
        partial: float64 (records,), see `StateSeries`.
    """

    steps: Integers
    pruned: Floats
    partial: Floats


@dataclass(frozen=True, eq=False)
class Pruned:
    """What is pruned of a layer.

    Attributes:
        counts: float64 (columns,), pruned weights, NaN where unknown.
        prunable: how many could be: of its kernels, and of each variable that ever was pruned.
    """

    counts: Floats
    prunable: int


class Sparsity:
    """Counts pruned weights of a run, a variable once however many layers share it.

    Attributes:
        notes: where records and log disagree.
    """

    def __init__(self, run: CatalogRun, masks: MaskHistory) -> None:
        self._run = run
        self._masks = masks
        self._counted: set[str] = set()
        self.notes = Notes()

    def needs(self, layer: LayerEntry) -> list[str]:
        """The variables whose records a layer is drawn from, the main one first.

        Others are needed where weights of theirs may be pruned and the log doesn't tell of all:
        kernels, and where a log is damaged, any.
        """
        variables = self._run.variables
        besides = [
            name
            for name in layer.variables
            if name != layer.main
            and (self._run.source == SINK or variables[name].role == _KERNEL)
            and not self._masks.sure(name, math.prod(variables[name].shape))
        ]
        return [layer.main, *besides]

    def count(self, layer: LayerEntry, shares: Mapping[str, Shares], steps: Integers) -> Pruned:
        """Counts a layer's weights at some steps, int64 (columns,), given what it needs."""
        counts, prunable = np.zeros(len(steps)), 0
        for name in layer.variables:
            variable, own = self._run.variables[name], shares.get(name)
            if name not in self._counted and self._is_prunable(variable, own):
                self._counted.add(name)
                counts += self._counts(variable, own, steps)
                prunable += math.prod(variable.shape)
        return Pruned(counts, prunable)

    def _is_prunable(self, variable: VariableEntry, shares: Shares | None) -> bool:
        return (
            variable.role == _KERNEL
            or self._masks.pruned_once(variable.id)
            or (shares is not None and bool(shares.pruned.any()))
        )

    def _counts(self, variable: VariableEntry, shares: Shares | None, steps: Integers) -> Floats:
        counts = self._masks.count(variable.id, "kept", math.prod(variable.shape), steps)
        if shares is None or not len(shares.steps):
            return counts
        row = np.minimum(np.searchsorted(shares.steps, steps), len(shares.steps) - 1)
        estimated = np.where(shares.steps[row] == steps, shares.pruned[row], np.nan)
        # A log whose end is lost doesn't know that: its records do.
        wrong = np.abs(counts - estimated) > _PRECISION * shares.partial[row]
        if wrong.any():
            self.notes[notes.MASKS_DISAGREE] += int(wrong.sum())
        return np.where(wrong | np.isnan(counts), estimated, counts)
