"""Statistics, such as BatchNorm's, that move though all parameters of their layer are frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tb_pastnet.core.finding_kinds import MovedStatistics
from tb_pastnet.core.quantize import NAN, ONE, ZERO
from tb_pastnet.core.statistics import CHANGED, MOVED, TRAINABLE
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.run_summary import RunSummary
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.state_series import STATISTIC
from tb_pastnet.reader.store import RunReader

_COLLECTIONS = "batch_stats/", "params/"
"""Linen keeps the statistics of a layer apart from its parameters."""


@dataclass(frozen=True)
class FrozenStatistics:
    """The moved statistics in a run."""

    moved: tuple[MovedStatistics, ...]
    notes: Notes
    size: int = 256  # bytes that it holds, about


def statistics_of(reader: RunReader, summary: RunSummary) -> tuple[MovedStatistics, ...]:
    """Reads only layers that have statistics and are frozen at the newest record."""

    def make() -> FrozenStatistics:
        lost: Notes = Counter()
        return FrozenStatistics(tuple(_moved(reader, summary, lost)), lost)

    return reader.kept(("frozen statistics",), make).moved


def _moved(reader: RunReader, summary: RunSummary, lost: Notes) -> Iterator[MovedStatistics]:
    run = reader.run
    frozen = {
        layer.id
        for layer, lasting in zip(run.layers, summary.lasting, strict=True)
        if "frozen" in lasting and lasting["frozen"].channels == run.variables[layer.main].channels
    }
    groups: dict[str, list[VariableEntry]] = {}
    for layer in run.layers:
        own = [run.variables[name] for name in layer.variables]
        groups.setdefault(_without_collection(layer.id), []).extend(own)
    for variables in groups.values():
        statistics = [each for each in variables if each.role == STATISTIC and not each.follows]
        parameters = [each for each in variables if each.role != STATISTIC]
        if statistics and parameters and any(each.layer in frozen for each in parameters):
            names = [each.id for each in (*statistics, *parameters)]
            read = dict(zip(names, reader.each(names, lambda _, records: records), strict=True))
            for records in read.values():
                lost.update(records.notes)
            moved = _of_layer(statistics, parameters, read)
            if moved is not None:
                yield moved


def _without_collection(layer: str) -> str:
    return next((layer.removeprefix(c) for c in _COLLECTIONS if layer.startswith(c)), layer)


def _of_layer(
    statistics: list[VariableEntry],
    parameters: list[VariableEntry],
    read: Mapping[str, RecordSeries],
) -> MovedStatistics | None:
    begins = [_frozen_since(read[each.id]) for each in parameters]
    known = [begin for begin in begins if begin is not None]
    if len(known) < len(begins):
        return None
    begin = max(known)
    steps: list[int] = []
    first_moved: dict[int, str] = {}  # variables by the step at which they moved first
    channels: set[int] = set()
    for each in statistics:
        records = read[each.id]
        codes = records.codes[CHANGED]
        moved = (codes != ZERO) & (codes != NAN)
        # Up to the first frozen record the layer may have trained, unless it is the very first.
        at_once = len(records.steps) > 0 and begin == records.steps[0]
        moved &= ((records.steps if at_once else records.past_steps) >= begin)[:, None]
        # Only this shows what moves in other steps than those with a record.
        before = np.append(-1, records.steps[:-1])
        moved |= (records.codes[MOVED] == ONE) & (before >= begin)[:, None]
        own = records.steps[moved.any(axis=1)].tolist()
        if own:
            first_moved.setdefault(own[0], each.id)
        steps += own
        channels |= set(np.flatnonzero(moved.any(axis=0)).tolist())
    if not steps:
        return None
    first, last = min(steps), max(steps)
    return MovedStatistics(statistics[0].layer, len(channels), first, last, first_moved[first])


def _frozen_since(records: RecordSeries) -> int | None:
    """The step of the first record since which a variable has been frozen as a whole."""
    frozen = (records.codes[TRAINABLE] == ZERO).all(axis=1)
    if not len(frozen) or not frozen[-1]:
        return None
    free = np.flatnonzero(~frozen)
    return int(records.steps[free[-1] + 1 if len(free) else 0])
