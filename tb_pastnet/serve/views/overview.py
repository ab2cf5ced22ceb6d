"""All layers of a run on one time axis, in as many columns as the picture has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import pooling, states
from tb_pastnet.core.account import Account
from tb_pastnet.serve.http import container
from tb_pastnet.serve.http.failures import SCHEMA
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.movement import Movement
from tb_pastnet.serve.store.notes import Notes
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import Store
from tb_pastnet.serve.views import csv_export
from tb_pastnet.serve.views.rows import Row, make_row, stack
from tb_pastnet.serve.views.sparsity import Pruned, Sparsity
from tb_pastnet.serve.views.violations import mark

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Overview:
    """What the Network view shows of a run.

    Attributes:
        run: the run.
        threshold: relative delta under which a channel is quiet.
        first_steps: int64 (columns,), the first step of each column.
        steps: int64 (columns,), the last one.
        rows: one for each layer of the run, in its order.
        accounts: likewise, of the variable that the layer is drawn by.
        pruned: likewise, what is pruned of all its variables.
        violated_channels: of all variables, found by the audit.
        notes: what could not be read of any of them.
    """

    run: Run
    threshold: float
    first_steps: Integers
    steps: Integers
    rows: tuple[Row, ...]
    accounts: tuple[Account, ...]
    pruned: tuple[Pruned, ...]
    violated_channels: int
    notes: Notes

    def container(self) -> bytes:
        """The answer of the route."""
        header = {
            "schema": SCHEMA,
            "run": self.run.name,
            "threshold": self.threshold,
            "patience": states.PATIENCE,
            "past": self.run.past,
            "layers": [layer.id for layer in self.run.layers],
            "prunable": [one.prunable for one in self.pruned],
            "violated_channels": self.violated_channels,
            "accounts": [asdict(account) for account in self.accounts],
            "notes": notes.listed(self.notes),
        }
        axis = self.run.axis
        rates = _looked_up(axis.steps, axis.learning_rates, self.steps)
        sections: dict[str, npt.NDArray[Any]] = {
            "first_steps": self.first_steps.astype(np.float64),
            "steps": self.steps.astype(np.float64),
            "wall_times": _looked_up(axis.steps, axis.wall_times, self.steps),
            "learning_rates": rates.astype(np.float32),
            **stack(self.rows, len(self.steps)),
            "pruned": self._pruned(),
        }
        return container.pack(header, sections)

    def _pruned(self) -> Floats:
        counts = [one.counts for one in self.pruned]
        return np.array(counts, np.float64).reshape(len(counts), len(self.steps))

    def table(self) -> str:
        """The same as CSV."""
        layers = [
            csv_export.LayerLines(layer.id, self.run.variables[layer.main].channels, row, pruned)
            for layer, row, pruned in zip(self.run.layers, self.rows, self.pruned, strict=True)
        ]
        return csv_export.table(csv_export.OVERVIEW, csv_export.overview_rows(self.steps, layers))


def make_overview(
    store: Store, caller: Caller, run: Run, threshold: float, most: int | None
) -> Overview:
    """Reads all layers of a run and pools them.

    Args:
        store: the records.
        caller: on whose behalf.
        run: from the catalog.
        threshold: relative delta under which a channel is quiet.
        most: columns at most; None: one for each record.
    """
    rows: list[Row] = []
    accounts: list[Account] = []
    pruned: list[Pruned] = []
    held = store.held(caller, run)
    sparsity = Sparsity(run, held)
    needs = [sparsity.needs(layer) for layer in run.layers]
    steps, movements = _with_steps(
        run, store.each_movement(caller, run, list(chain.from_iterable(needs)))
    )
    starts = pooling.columns(steps, most or max(len(steps), 1))
    ends = np.append(starts[1:], len(steps))[: len(starts)] - 1
    edges, lasts = steps[starts], steps[ends]
    found = run.notes + held.notes
    for layer, names in zip(run.layers, needs, strict=True):
        some = dict(zip(names, movements, strict=False))
        moves = some[layer.main]
        # Of a lost timeline's end only the first layer knows.
        known = slice(np.searchsorted(moves.steps, steps[-1], side="right") if len(steps) else 0)
        told = mark(moves.told(threshold), moves.steps, held.violations.get(layer.main, ()))
        rows.append(make_row(told[known], moves.delta[known], moves.steps[known], edges))
        accounts.append(moves.account)
        pruned.append(sparsity.count(layer, some, lasts))
        found.update(moves.notes)
    found.update(sparsity.notes)
    return Overview(
        run,
        threshold,
        edges,
        lasts,
        tuple(rows),
        tuple(accounts),
        tuple(pruned),
        len({(one.variable, one.channel) for some in held.violations.values() for one in some}),
        found,
    )


def _with_steps(run: Run, movements: Iterator[Movement]) -> tuple[Integers, Iterator[Movement]]:
    """The run's steps: of its timeline and, where a part of that is lost, of the first layer."""
    first = next(movements, None)
    if first is None:
        return run.axis.steps, movements
    return np.union1d(run.axis.steps, first.steps), chain([first], movements)


def _looked_up(known: Integers, values: Floats, steps: Integers) -> Floats:
    """The values at some steps, NaN where the axis doesn't know them."""
    found = np.full(len(steps), np.nan)
    if len(known):
        at = np.minimum(np.searchsorted(known, steps), len(known) - 1)
        hit = known[at] == steps
        found[hit] = values[at[hit]]
    return found
