"""What of a run's records the Network view needs, for every threshold: some megabytes a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.account import Account
from tb_pastnet.core.violation import Violation
from tb_pastnet.reader import notes
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.series import Needs, Series
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.sparsity import Pruned, Shares, Sparsity
from tb_pastnet.reader.state_series import AUDITED_ROWS, MOVING_ROWS, Movement, make_movement
from tb_pastnet.reader.store import UNKEPT, Store
from tb_pastnet.reader.tally import Tally, make_tally
from tb_pastnet.reader.violation_list import mark

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Digest:
    """What is known of a run, record by record.

    Attributes:
        steps: int64 (records,), of the run.
        tallies: one for each layer of the run, in its order.
        places: likewise, int64 (records,): the layer's record at each step, -1 for none.
        accounts: likewise, of the variable that the layer is drawn by.
        stalled: likewise, of that variable.
        pruned: likewise, what is pruned of all its variables.
        violated_channels: of all variables: found by the audit, or else by the records.
        notes: what could not be read of any of them.
    """

    steps: Integers
    tallies: tuple[Tally, ...]
    places: tuple[Integers, ...]
    accounts: tuple[Account, ...]
    stalled: tuple[Stalled, ...]
    pruned: tuple[Pruned, ...]
    violated_channels: int
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        arrays = {id(places): places.nbytes for places in self.places}
        counts = sum(pruned.counts.nbytes for pruned in self.pruned)
        return sum(tally.size for tally in self.tallies) + sum(arrays.values()) + counts


class Stalled(NamedTuple):
    """What of a variable is meant to train and stands still.

    Attributes:
        channels: how many.
        since: the step since which all of them do, None where there are none.
    """

    channels: int
    since: int | None


class _Reading(NamedTuple):
    """What is kept of one variable's records."""

    steps: Integers
    tally: Tally
    shares: Shares
    marked: int
    stalled: Stalled
    account: Account
    notes: Notes


def digest_of(store: Store, caller: Caller, run: Run) -> Digest:
    """The digest of a run, made anew only where there is something new.

    Args:
        store: the records.
        caller: on whose behalf.
        run: from the catalog.
    """

    def make() -> tuple[Digest, int]:
        digest = _make_digest(store, caller, run)
        return digest, UNKEPT if notes.WITHHELD in digest.notes else digest.size

    return store.kept_small(("digest", caller.experiment, run.name), run.version, make)


def _make_digest(store: Store, caller: Caller, run: Run) -> Digest:
    held = store.held(caller, run)
    sparsity = Sparsity(run, held)
    needs = [sparsity.needs(layer) for layer in run.layers]
    steps, readings = _read(store, caller, run, list(dict.fromkeys(chain(*needs))))
    mains = [readings[layer.main] for layer in run.layers]
    said = run.notes + held.notes
    for reading in mains:
        said.update(reading.notes)
    pruned = tuple(
        sparsity.count(layer, {name: readings[name].shares for name in names}, steps)
        for layer, names in zip(run.layers, needs, strict=True)
    )
    said.update(sparsity.notes)
    violations = chain.from_iterable(held.violations.values())
    audited = {(violation.variable, violation.channel) for violation in violations}
    return Digest(
        steps,
        tuple(reading.tally for reading in mains),
        tuple(_places(reading.steps, steps) for reading in mains),
        tuple(reading.account for reading in mains),
        tuple(reading.stalled for reading in mains),
        pruned,
        len(audited) or sum(reading.marked for reading in mains),
        said,
    )


def _places(own: Integers, steps: Integers) -> Integers:
    """The record of a variable at each step of its run, -1 for none."""
    places = np.searchsorted(own, steps)
    places[~np.isin(steps, own)] = -1
    return places


def _read(
    store: Store, caller: Caller, run: Run, variables: Sequence[str]
) -> tuple[Integers, dict[str, _Reading]]:
    """Reads variables, and the steps of the run: where a timeline is lost the first knows more."""
    held = store.held(caller, run)
    audited = all(held.commanded(name) is None for name in variables[:1])
    needs = Needs(AUDITED_ROWS if audited else MOVING_ROWS)

    def reading(name: str, records: Series) -> _Reading:
        moves = make_movement(records, run.variables[name], held.commanded(name))
        return _reading(moves, records, held.violations.get(name, ()))

    readings = dict(zip(variables, store.each(caller, run, variables, reading, needs), strict=True))
    first = [readings[name].steps for name in variables[:1]]
    return np.union1d(run.axis.steps, first[0]) if first else run.axis.steps, readings


def _reading(moves: Movement, series: Series, violations: Sequence[Violation]) -> _Reading:
    told = mark(moves.unsettled, moves.steps, violations)
    marked = ((told & np.uint8(states.VIOLATED)) != 0).any(axis=0)
    return _Reading(
        moves.steps,
        make_tally(told, moves.delta),
        Shares(moves.steps, moves.pruned, moves.partial),
        int(np.count_nonzero(marked)),
        _stalled(series, moves.unsettled),
        moves.account,
        moves.notes,
    )


def _stalled(series: Series, state: states.States) -> Stalled:
    since = states.stalled(series.codes, state)
    since = since[since >= 0]
    return Stalled(len(since), int(series.steps[since.max()]) if len(since) else None)
