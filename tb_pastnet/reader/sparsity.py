"""How many weights of each layer are pruned, exactly where the log of mask changes says it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import Layer, Variable
from tb_pastnet.reader import notes
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import SINK, Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_KERNEL = "kernel"
_PRECISION = 0.045


class Shares(NamedTuple):
    """What the records of a variable say of its kept mask.

    Attributes:
        steps: int64 (records,), increasing.
        pruned: float64 (records,), weights that it holds at zero.
        partial: float64 (records,), see `Movement`.
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
    """Counts pruned weights, a variable once however many layers share it.

    Args:
        run: the run.
        held: what it tells of its masks.

    Attributes:
        notes: where records and log disagree.
    """

    def __init__(self, run: Run, held: Held) -> None:
        self._run = run
        self._held = held
        self._seen: set[str] = set()
        self.notes = Notes()

    def needs(self, layer: Layer) -> list[str]:
        """The variables whose records a layer is drawn from, the main one first.

        Others are needed where weights of theirs may be pruned and the log doesn't tell of all:
        kernels, and where a log is damaged, any.
        """
        others = [
            one
            for one in layer.variables
            if one != layer.main
            and (self._run.source == SINK or self._run.variables[one].role == _KERNEL)
            and not self._held.sure(one, math.prod(self._run.variables[one].shape))
        ]
        return [layer.main, *others]

    def count(self, layer: Layer, shares: Mapping[str, Shares], steps: Integers) -> Pruned:
        """Counts a layer's weights.

        Args:
            layer: of the run.
            shares: of what it needs.
            steps: int64 (columns,), the steps to count at.
        """
        counts, prunable = np.zeros(len(steps)), 0
        for name in layer.variables:
            variable, moves = self._run.variables[name], shares.get(name)
            if name not in self._seen and self._is_prunable(variable, moves):
                self._seen.add(name)
                counts += self._counts(variable, moves, steps)
                prunable += math.prod(variable.shape)
        return Pruned(counts, prunable)

    def _is_prunable(self, variable: Variable, moves: Shares | None) -> bool:
        return (
            variable.role == _KERNEL
            or self._held.pruned_once(variable.id)
            or (moves is not None and bool(moves.pruned.any()))
        )

    def _counts(self, variable: Variable, moves: Shares | None, steps: Integers) -> Floats:
        counts = self._held.count(variable.id, "kept", math.prod(variable.shape), steps)
        if moves is None or not len(moves.steps):
            return counts
        at = np.minimum(np.searchsorted(moves.steps, steps), len(moves.steps) - 1)
        shares = np.where(moves.steps[at] == steps, moves.pruned[at], np.nan)
        # A log whose end is lost doesn't know that: its records do.
        wrong = np.abs(counts - shares) > _PRECISION * moves.partial[at]
        if wrong.any():
            self.notes[notes.MASKS_DISAGREE] += int(wrong.sum())
        return np.where(wrong | np.isnan(counts), shares, counts)
