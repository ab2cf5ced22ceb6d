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
from tb_pastnet.reader.series import Needs, RecordSeries
from tb_pastnet.reader.sparsity import Pruned, Shares, Sparsity
from tb_pastnet.reader.state_series import (
    AUDITED_ROWS,
    STATE_ROWS,
    StateSeries,
    make_state_series,
)
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.tally import Tally, make_tally
from tb_pastnet.reader.violation_list import mark

Integers = npt.NDArray[np.int64]


class Stalled(NamedTuple):
    """What of a variable is meant to train and stands still.

    Attributes:
        channels: how many.
        since: the step since which all of them do, None where there are none.
    """

    channels: int
    since: int | None


@dataclass(frozen=True, eq=False)
class RunSummary:
    """What is known of a run, record by record.

    Attributes:
        steps: int64 (records,), of the run.
        tallies: one for each layer of the run, in its order.
        rows: likewise, int64 (records,): the layer's record at each step, -1 for none.
        accounts: likewise, of the variable that the layer is drawn by.
        stalled: likewise, of that variable.
        pruned: likewise, what is pruned of all its variables.
        violated_channels: of all variables: found by the audit, or else by the records.
        notes: what could not be read of any of them.
    """

    steps: Integers
    tallies: tuple[Tally, ...]
    rows: tuple[Integers, ...]
    accounts: tuple[Account, ...]
    stalled: tuple[Stalled, ...]
    pruned: tuple[Pruned, ...]
    violated_channels: int
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        arrays = {id(rows): rows.nbytes for rows in self.rows}
        counts = sum(pruned.counts.nbytes for pruned in self.pruned)
        return sum(tally.size for tally in self.tallies) + sum(arrays.values()) + counts


class _VariableSummary(NamedTuple):
    """What is kept of one variable's records."""

    steps: Integers
    tally: Tally
    shares: Shares
    marked: int
    stalled: Stalled
    account: Account
    notes: Notes


def summary_of(reader: RunReader) -> RunSummary:
    """The summary of a run, made anew only where there is something new."""

    def make() -> tuple[RunSummary, int | None]:
        summary = _make_summary(reader)
        return summary, notes.kept_size(summary.notes, summary.size)

    return reader.kept(("summary",), make)


def _make_summary(reader: RunReader) -> RunSummary:
    run, masks = reader.run, reader.masks
    sparsity = Sparsity(run, masks)
    needs = [sparsity.needs(layer) for layer in run.layers]
    steps, variables = _read(reader, list(dict.fromkeys(chain(*needs))))
    mains = [variables[layer.main] for layer in run.layers]
    lost = run.notes + masks.notes
    for main in mains:
        lost.update(main.notes)
    pruned = tuple(
        sparsity.count(layer, {name: variables[name].shares for name in names}, steps)
        for layer, names in zip(run.layers, needs, strict=True)
    )
    lost.update(sparsity.notes)
    violations = chain.from_iterable(masks.violations.values())
    audited = {(violation.variable, violation.channel) for violation in violations}
    return RunSummary(
        steps,
        tuple(main.tally for main in mains),
        tuple(_rows(main.steps, steps) for main in mains),
        tuple(main.account for main in mains),
        tuple(main.stalled for main in mains),
        pruned,
        len(audited) or sum(main.marked for main in mains),
        lost,
    )


def _rows(own: Integers, steps: Integers) -> Integers:
    """The record of a variable at each step of its run, -1 for none."""
    rows = np.searchsorted(own, steps)
    rows[~np.isin(steps, own)] = -1
    return rows


def _read(
    reader: RunReader, variables: Sequence[str]
) -> tuple[Integers, dict[str, _VariableSummary]]:
    """Reads variables, and the steps of the run: where a timeline is lost the first knows more."""
    run, masks = reader.run, reader.masks
    audited = all(masks.commanded(name) is None for name in variables[:1])
    needs = Needs(AUDITED_ROWS if audited else STATE_ROWS)

    def summary(name: str, records: RecordSeries) -> _VariableSummary:
        series = make_state_series(records, run.variables[name], masks.commanded(name))
        return _variable_summary(series, records, masks.violations.get(name, ()))

    summaries = dict(zip(variables, reader.each(variables, summary, needs), strict=True))
    first = [summaries[name].steps for name in variables[:1]]
    return np.union1d(run.axis.steps, first[0]) if first else run.axis.steps, summaries


def _variable_summary(
    series: StateSeries, records: RecordSeries, violations: Sequence[Violation]
) -> _VariableSummary:
    marked = mark(series.unsettled, series.steps, violations)
    violated = ((marked & np.uint8(states.VIOLATED)) != 0).any(axis=0)
    return _VariableSummary(
        series.steps,
        make_tally(marked, series.delta),
        Shares(series.steps, series.pruned, series.partial),
        int(np.count_nonzero(violated)),
        _stalled(records, series.unsettled),
        series.account,
        series.notes,
    )


def _stalled(records: RecordSeries, state: states.States) -> Stalled:
    since = states.stalled(records.codes, state)
    since = since[since >= 0]
    return Stalled(len(since), int(records.steps[since.max()]) if len(since) else None)
