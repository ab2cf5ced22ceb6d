"""The facts of a run at every threshold: its records are read once.

Pruned weights are counted exactly if the log of mask changes has them; otherwise the shares in the
records are used.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account
from tb_pastnet.core.channel_states import Lasting
from tb_pastnet.core.standing import may_move
from tb_pastnet.core.travel import Ending
from tb_pastnet.format.budget import FIGURES
from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Floats, Integers, rows_of, values_at
from tb_pastnet.reader.lasting import add_moving, cause_at_end, lasting_of
from tb_pastnet.reader.mask_history import MaskHistory
from tb_pastnet.reader.notes import Notes, is_damaged
from tb_pastnet.reader.runs import SINK, CatalogRun
from tb_pastnet.reader.sections import smallest
from tb_pastnet.reader.state_series import KERNEL
from tb_pastnet.reader.store import MARKS, RunReader
from tb_pastnet.reader.tally import BINS, CELL_BYTES, Tally, make_tally
from tb_pastnet.reader.verdicts import ending_of
from tb_pastnet.reader.violation_list import mark
from tb_pastnet.reader.wide_series import WideSeries

_PRECISION = 0.045

_SWITCHED = "unfrozen", "refrozen"

_UNPACKED = 1 / 20
"""The share of the cache up to which the tallies of a run aren't packed."""


@dataclass(frozen=True, eq=False)
class RunSummary:
    """The facts of a run, record by record, with its layers in order."""

    steps: Integers  # (records,), of the run
    # int32 (layers, records), the layer's record at each step, -1 for none
    rows: npt.NDArray[np.int32]
    accounts: tuple[Account, ...]  # of each layer's main variable
    damaged: tuple[Account, ...]  # the same where messages can't be read, elsewhere empty
    lasting: tuple[Mapping[str, Lasting], ...]  # of each layer's main variable; see `lasting_of`
    endings: tuple[Ending, ...]  # of each layer's main variable
    # why it is idle, and whether that shows that it doesn't learn; "" if it doesn't, or that
    # is unknown
    causes: tuple[tuple[str, bool], ...]
    deltas: Integers  # (`BINS`,), see `Tally`, of all layers together
    # (layers, records), pruned weights, NaN where unknown; whole numbers in the smallest dtype
    pruned: npt.NDArray[Any]
    # how many weights of each layer can be pruned: of its kernels, and of each variable that ever
    # was
    prunable: tuple[int, ...]
    violated_channels: int  # of all layers: found by the audit, or else by the records
    notes: Notes  # notes on what could not be read

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self.rows.nbytes + self.pruned.nbytes


class LayerTally(NamedTuple):
    """The tally of variables, and some layers whose main variables are among these."""

    tally: Tally
    layers: Integers  # (layers,), their numbers
    variables: Integers  # (layers,), the number of the main variable of each in the tally


@dataclass(frozen=True, eq=False)
class RunTallies:
    """The counts for every threshold: much larger than the summary that is made with them."""

    summary: RunSummary
    tallies: tuple[LayerTally, ...]  # those of all layers

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self.summary.size + sum(each.tally.size for each in self.tallies)

    @property
    def notes(self) -> Notes:
        """What could not be read."""
        return self.summary.notes


class _VariableSummary(NamedTuple):
    """A summary of one variable's records; `pruned` and `partial` as in `StateSeries`."""

    steps: Integers
    tally: Tally
    number: int  # of the variable in the tally
    pruned: Floats
    partial: Floats
    marked: int
    lasting: Mapping[str, Lasting]
    ending: Ending
    cause: tuple[str, bool]
    account: Account
    notes: Notes


_Summaries = Mapping[str, _VariableSummary]


def summary_of(reader: RunReader) -> RunSummary:
    """The summary of a run, made again only if there is new data."""
    return reader.kept(("summary",), lambda: tallies_of(reader).summary)


def tallies_of(reader: RunReader) -> RunTallies:
    """The tallies of a run's layers, which others may evict."""
    return reader.kept(("tallies",), lambda: _make_tallies(reader), large=True)


def _make_tallies(reader: RunReader) -> RunTallies:
    run, masks = reader.run, reader.masks
    needs = [_needs(layer, run, masks) for layer in run.layers]
    steps, variables = _read(reader, list(dict.fromkeys(chain(*needs))))
    mains = [variables[layer.main] for layer in run.layers]
    lost = run.notes + masks.notes + reader.standing.notes
    for main in mains:
        lost.update(main.notes)
    most = (FIGURES + sum(len(main.steps) for main in mains)) // max(len(mains), 1)
    if len(steps) > most:
        lost[notes.IN_PART] += len(steps) - most
        steps = steps[:most]
    pruned, prunable = _count_pruned(reader, needs, variables, steps, lost)
    layers = {name: layer.id for layer in run.layers for name in layer.variables}
    violations = chain.from_iterable(masks.violations.values())
    audited = {(layers.get(each.variable), each.channel) for each in violations}
    tallies = tuple(_by_tally(mains))
    summary = RunSummary(
        steps,
        np.array([rows_of(steps, main.steps) for main in mains], np.int32).reshape(pruned.shape),
        tuple(main.account for main in mains),
        tuple(main.account if is_damaged(main.notes) else Account() for main in mains),
        tuple(map(partial(_lasting, run=run, variables=variables), run.layers)),
        tuple(main.ending for main in mains),
        tuple(main.cause for main in mains),
        sum((own.tally.deltas for own in tallies), np.zeros(BINS, np.int64)),
        smallest(pruned),
        prunable,
        len(audited) or sum(main.marked for main in mains),
        lost,
    )
    return RunTallies(summary, tallies)


def _by_tally(mains: Sequence[_VariableSummary]) -> Iterator[LayerTally]:
    """The tallies of the main variables of layers, each once."""
    layers: dict[int, list[int]] = {}
    for layer, main in enumerate(mains):
        layers.setdefault(id(main.tally), []).append(layer)
    for own in layers.values():
        numbers = [mains[layer].number for layer in own]
        yield LayerTally(mains[own[0]].tally, np.array(own), np.array(numbers))


def _needs(layer: LayerEntry, run: CatalogRun, masks: MaskHistory) -> list[str]:
    """The variables that a picture of a layer needs, the main one first.

    Others are needed if their weights may be pruned and the log isn't complete: kernels, and, with
    a damaged log, any.
    """
    besides = [
        name
        for name in layer.variables
        if name != layer.main
        and (run.source == SINK or run.variables[name].role == KERNEL)
        and not masks.sure(name, math.prod(run.variables[name].shape))
    ]
    return list(dict.fromkeys((layer.main, *besides, *_adapters(layer, run))))


def _adapters(layer: LayerEntry, run: CatalogRun) -> list[str]:
    """The matrices B of a layer with LoRA: which of them train is switched, and not its weight."""
    channels = run.variables[layer.main].channels
    own = [run.variables[name] for name in layer.variables if name != layer.main]
    return [each.id for each in own if each.name.startswith("lora_") and each.channels == channels]


def _lasting(layer: LayerEntry, run: CatalogRun, variables: _Summaries) -> Mapping[str, Lasting]:
    """What lasts of its main variable, and of the adapters what was switched."""
    lasting: dict[str, Lasting] = {}
    for name in _adapters(layer, run):
        switched = variables[name].lasting
        lasting |= {kind: switched[kind] for kind in _SWITCHED if kind in switched}
    return lasting | dict(variables[layer.main].lasting)


def _read(reader: RunReader, variables: Sequence[str]) -> tuple[Integers, _Summaries]:
    """Reads variables, and the steps of the run: the first has more if a timeline is lost."""
    run = reader.run
    channels = sum(run.variables[name].channels for name in variables)
    most = _UNPACKED * reader.store.large.ceiling

    def summaries(wide: WideSeries) -> _Summaries:
        # By the records that there are: a timeline may claim any number.
        pack = CELL_BYTES * channels * len(wide.records.steps) > most
        return _summaries(reader, wide, pack=pack)

    each = reader.each_wide(variables, summaries, reader.state_rows)
    read = {name: summary for group in each for name, summary in group.items()}
    first = [read[name].steps for name in variables[:1]]
    return np.union1d(run.axis.steps, first[0]) if first else run.axis.steps, read


def _summaries(reader: RunReader, wide: WideSeries, *, pack: bool) -> _Summaries:
    """The summaries of variables whose channels are side by side."""
    masks, records, edges = reader.masks, wide.records, wide.edges
    states = reader.wide_states(wide)
    for number, name in enumerate(wide.variables):
        if not masks.audited:
            # Violations are listed from the same records.
            reader.kept((MARKS, name), partial(operator.itemgetter(number), states.marks))
        own = states.before_quiet[:, edges[number] : edges[number + 1]]
        mark(own, records.steps, masks.violations.get(name, ()))
    mains = Counter(layer.main for layer in reader.run.layers)
    times = [mains[name] for name in wide.variables]
    widths = np.diff(edges).tolist()
    tally = make_tally(states.before_quiet, states.delta, widths, times, pack=pack)
    variables = [reader.run.variables[name] for name in wide.variables]
    types = {layer.id: layer.type for layer in reader.run.layers}
    still = reader.standing.variables
    each_lasting = lasting_of(records, states.before_quiet, variables, edges, types)
    for number, name in enumerate(wide.variables):
        if name in still and may_move(still[name].cause):
            own = states.before_quiet[:, edges[number] : edges[number + 1]]
            add_moving(each_lasting[number], still[name], records.steps, own)
    return {
        name: _VariableSummary(
            records.steps,
            tally,
            number,
            states.pruned[number],
            states.partial[number],
            len(states.marks[number].channels),
            each_lasting[number],
            ending_of(wide.of(number)),
            cause_at_end(records.steps, still.get(name)),
            records.account,
            records.notes,
        )
        for number, name in enumerate(wide.variables)
    }


def _count_pruned(
    reader: RunReader,
    needs: Sequence[Sequence[str]],
    summaries: _Summaries,
    steps: Integers,
    lost: Notes,
) -> tuple[Floats, tuple[int, ...]]:
    """`pruned` and `prunable` of the summary; a variable counts once however many layers share it.

    A layer is counted from the summaries of what it needs; `lost` counts where records and log
    disagree.
    """
    run, masks = reader.run, reader.masks
    counts, prunable = np.zeros((len(run.layers), len(steps))), [0] * len(run.layers)
    counted: set[str] = set()
    for number, (layer, needed) in enumerate(zip(run.layers, needs, strict=True)):
        for name in layer.variables:
            variable, own = run.variables[name], summaries[name] if name in needed else None
            if name not in counted and _is_prunable(variable, masks, own):
                counted.add(name)
                counts[number] += _pruned_of(variable, masks, own, steps, lost)
                prunable[number] += math.prod(variable.shape)
    return counts, tuple(prunable)


def _is_prunable(
    variable: VariableEntry, masks: MaskHistory, records: _VariableSummary | None
) -> bool:
    was_pruned = records is not None and bool(records.pruned.any())
    return variable.role == KERNEL or masks.pruned_once(variable.id) or was_pruned


def _pruned_of(
    variable: VariableEntry,
    masks: MaskHistory,
    records: _VariableSummary | None,
    steps: Integers,
    lost: Notes,
) -> Floats:
    counts = masks.count(variable.id, "kept", math.prod(variable.shape), steps)
    if records is None:
        return counts
    row = rows_of(steps, records.steps)
    estimated, partial = (values_at(row, own) for own in (records.pruned, records.partial))
    # A log doesn't show that its end is lost: its records do.
    wrong = np.abs(counts - estimated) > _PRECISION * partial
    if wrong.any():
        lost[notes.MASKS_DISAGREE] += int(wrong.sum())
    return np.where(wrong | np.isnan(counts), estimated, counts)
