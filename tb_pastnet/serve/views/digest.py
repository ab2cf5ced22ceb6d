"""What of a run's records the Network view needs, for every threshold: some megabytes a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import pooling, states
from tb_pastnet.core.account import Account
from tb_pastnet.core.violation import Violation
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.movement import AUDITED_ROWS, MOVING_ROWS, Movement, make_movement
from tb_pastnet.serve.store.notes import Notes
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.series import Needs, Series
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import UNKEPT, Store
from tb_pastnet.serve.views.sparsity import Pruned, Shares, Sparsity
from tb_pastnet.serve.views.tally import Tally, make_tally
from tb_pastnet.serve.views.violations import mark

Integers = npt.NDArray[np.int64]

_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True, eq=False)
class Digest:
    """What is known of a run in some columns.

    Attributes:
        first_steps: int64 (columns,), the first step of each column.
        steps: int64 (columns,), the last one.
        tallies: one for each layer of the run, in its order.
        accounts: likewise, of the variable that the layer is drawn by.
        pruned: likewise, what is pruned of all its variables.
        violated_channels: of all variables, found by the audit.
        notes: what could not be read of any of them.
    """

    first_steps: Integers
    steps: Integers
    tallies: tuple[Tally, ...]
    accounts: tuple[Account, ...]
    pruned: tuple[Pruned, ...]
    violated_channels: int
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return sum(tally.size + self.steps.nbytes for tally in self.tallies)


class Part(NamedTuple):
    """Which steps are asked for, and in how many columns.

    Attributes:
        most: columns at most; None: one for each record.
        first: the first step; None: that of the first record.
        last: likewise.
        latest: how many of the last records there; None: all.
    """

    most: int | None = None
    first: int | None = None
    last: int | None = None
    latest: int | None = None

    def among(self, steps: Integers) -> Part:
        """The same with the first step of the latest records, int64 (steps,), increasing."""
        inside = steps[self.of(steps)]
        if self.latest is None or self.latest >= len(inside):
            return self._replace(latest=None)
        return self._replace(first=int(inside[-self.latest]), latest=None)

    def of(self, steps: Integers) -> slice:
        """Where these steps lie among some, int64 (steps,), increasing."""
        first = None if self.first is None else int(np.searchsorted(steps, self.first))
        last = None if self.last is None else int(np.searchsorted(steps, self.last, side="right"))
        return slice(first, last)


class _Columns(NamedTuple):
    """The first and the last step of each column."""

    edges: Integers
    lasts: Integers


class _Reading(NamedTuple):
    """What is kept of one variable's records."""

    tally: Tally
    shares: Shares
    account: Account
    notes: Notes


def digest_of(store: Store, caller: Caller, run: Run, part: Part) -> Digest:
    """The digest of a run, made anew only where there is something new.

    Args:
        store: the records.
        caller: on whose behalf.
        run: from the catalog.
        part: which steps, in how many columns.
    """

    def make() -> tuple[Digest, int]:
        made = _make_digest(store, caller, run, part)
        return made, UNKEPT if notes.WITHHELD in made.notes else made.size

    return store.kept_small(("digest", caller.experiment, run.name, part), run.version, make)


def _make_digest(store: Store, caller: Caller, run: Run, part: Part) -> Digest:
    held = store.held(caller, run)
    sparsity = Sparsity(run, held)
    needs = [sparsity.needs(layer) for layer in run.layers]
    columns, readings = _read(store, caller, run, part, list(dict.fromkeys(chain(*needs))))
    mains = [readings[layer.main] for layer in run.layers]
    found = run.notes + held.notes
    for one in mains:
        found.update(one.notes)
    pruned = tuple(
        sparsity.count(layer, {one: readings[one].shares for one in names}, columns.lasts)
        for layer, names in zip(run.layers, needs, strict=True)
    )
    found.update(sparsity.notes)
    violations = chain.from_iterable(held.violations.values())
    return Digest(
        columns.edges,
        columns.lasts,
        tuple(one.tally for one in mains),
        tuple(one.account for one in mains),
        pruned,
        len({(one.variable, one.channel) for one in violations}),
        found,
    )


def _read(
    store: Store, caller: Caller, run: Run, part: Part, variables: Sequence[str]
) -> tuple[_Columns, dict[str, _Reading]]:
    """Reads variables, the first one before the others: it may know more steps than the run."""
    held = store.held(caller, run)
    audited = all(held.commanded(one) is None for one in variables[:1])
    rows = AUDITED_ROWS if audited else MOVING_ROWS
    series = [*store.each(caller, run, variables[:1], lambda _, found: found, Needs(rows))]
    steps = np.union1d(run.axis.steps, series[0].steps) if series else run.axis.steps
    part = part.among(steps)
    columns = _columns(steps[part.of(steps)], part.most)
    # Without an audit a record is compared with all since its past value.
    needs = Needs(rows, _since(steps, part) if audited else None)

    def reading(name: str, records: Series) -> _Reading:
        moves = make_movement(records, run.variables[name], held.commanded(name))
        return _reading(moves, held.violations.get(name, ()), columns, part)

    def tried(name: str, records: Series) -> _Reading | None:
        return reading(name, records) if _reaches(records.steps, needs.since, part) else None

    made = {name: reading(name, series.pop()) for name in variables[:1]}
    found = store.each(caller, run, variables[1:], tried, needs)
    some = dict(zip(variables[1:], found, strict=True))
    again = [name for name, one in some.items() if one is None]
    made |= zip(again, store.each(caller, run, again, reading, Needs(rows)), strict=True)
    return columns, made | {name: one for name, one in some.items() if one is not None}


def _since(steps: Integers, part: Part) -> int | None:
    """The step from which on records tell the states of a part; None: all do."""
    at = part.of(steps).start or 0
    return int(steps[at - states.PATIENCE]) if at > states.PATIENCE else None


def _reaches(steps: Integers, since: int | None, part: Part) -> bool:
    """Whether there are enough records since a step: some may be lost, or have been thinned out."""
    if since is None:
        return True
    before = int(np.searchsorted(steps, since))
    return not before or (part.of(steps).start or 0) - before >= states.PATIENCE


def _columns(steps: Integers, most: int | None) -> _Columns:
    starts = pooling.columns(steps, most or max(len(steps), 1))
    ends = np.append(starts[1:], len(steps))[: len(starts)] - 1
    return _Columns(steps[starts], steps[ends])


def _reading(
    moves: Movement, violations: Sequence[Violation], columns: _Columns, part: Part
) -> _Reading:
    # Of a lost timeline's end only the first layer knows.
    last = int(columns.lasts[-1]) if len(columns.lasts) else _BEFORE_ALL
    counted = part._replace(last=last).of(moves.steps)
    told = mark(moves.unsettled, moves.steps, violations)
    return _Reading(
        make_tally(told, moves.delta, moves.steps, columns.edges, counted),
        Shares(moves.steps, moves.pruned, moves.partial),
        moves.account,
        moves.notes,
    )
