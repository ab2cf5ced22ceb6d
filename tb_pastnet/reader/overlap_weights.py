"""Which weights the masks of many runs let through, as sets, read in few calls."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.tags import MASKS, TAG_DESCRIPTION, TAG_MASKS, TAG_VIOLATIONS, mask_of
from tb_pastnet.reader import notes
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.mask_changes import ALL_THROUGH, LOST, StoredMask
from tb_pastnet.reader.mask_history import MaskHistory
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import (
    UNKNOWN,
    Layers,
    Sets,
    distinct,
    names_in,
    read_channel_sets,
)
from tb_pastnet.reader.series_source import SeriesName, StoredMessage
from tb_pastnet.reader.store import RunReader

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Readings = Mapping[SeriesName, Sequence[StoredMessage]]

BYTES_A_CALL = 16 << 20
"""Bytes of masks that one provider call is asked for, if nothing deflates."""

MOST_BYTES = 256 << 20
"""Bytes of masks of one layer that are unpacked at once, a bit an element. A hostile log claims any
number of them in a few bytes."""

_STILL = -2
_HEAD = (TAG_DESCRIPTION, TAG_MASKS, TAG_VIOLATIONS)


@dataclass(frozen=True, eq=False)
class Plan:
    """The sets of one variable of one run before their bits are read."""

    positions: Integers  # as in `Sets`
    sizes: Floats  # likewise
    masks: tuple[tuple[StoredMask, ...], ...]  # of each set those masks that don't let all through
    elements: int  # of the variable

    def cost(self, alone: bool) -> dict[SeriesName, int]:
        """The series to read, and how large they are at most."""
        sizes = zip(self.masks, self.sizes.tolist(), strict=True)
        needed = (masks for masks, size in sizes if math.isnan(size) or (size and not alone))
        return {mask.series: mask.cost for mask in chain.from_iterable(needed)}


class Planner:
    """Tells which masks make the sets of variables of a run, before the bits of any are read."""

    def __init__(self, history: MaskHistory, steps: Integers) -> None:
        standing = history.standing(steps)
        self._steps = steps
        self._parts = [
            (position, history.lineages[position], log, own)
            for position, log in enumerate(history.logs)
            if log is not None and len(own := np.flatnonzero((standing == position) & (steps >= 0)))
        ]

    def plan(self, variable: VariableEntry, mask: str, still: Flags | None = None) -> Plan:
        """Tells which masks make the sets of one variable.

        Args:
            variable: the variable.
            mask: "kept": weights that aren't pruned; "trainable": those that an update may change.
            still: bool (columns,), where `trainable=False` holds all of it.
        """
        elements = math.prod(variable.shape)
        chosen = MASKS[:1] if mask == "kept" else MASKS
        table, is_known = self._table(variable.id, chosen, elements)
        if still is not None:
            table[:, still] = _STILL
            is_known |= still
        positions = np.full(len(self._steps), UNKNOWN)
        kinds, positions[is_known] = distinct(table[:, is_known])
        columns = kinds.T.tolist()
        masks = tuple(
            tuple(self._masks(variable.id, chosen, column, elements)) for column in columns
        )
        sizes = [
            0.0 if column[0] == _STILL else _size(held, elements)
            for column, held in zip(columns, masks, strict=True)
        ]
        return Plan(positions, np.array(sizes, np.float64), masks, elements)

    def _table(self, variable: str, chosen: Sequence[str], elements: int) -> tuple[Integers, Flags]:
        """A row a mask, then one for the lineage: equal columns, equal sets; and what is known."""
        table = np.full((len(chosen) + 1, len(self._steps)), ALL_THROUGH)
        is_known = np.zeros(len(self._steps), bool)
        for position, _, log, own in self._parts:
            is_known[own] = True
            for row, mask in enumerate(chosen):
                changes = log.positions(variable, mask, elements, self._steps[own])
                table[row, own] = changes
                is_known[own] &= changes != LOST
            table[-1, own] = position
        table[-1, (table[:-1] == ALL_THROUGH).all(axis=0)] = ALL_THROUGH
        return table, is_known

    def _masks(
        self, variable: str, chosen: Sequence[str], column: Sequence[int], elements: int
    ) -> Iterable[StoredMask]:
        *changes, lineage = column
        for position, writer, log, _ in self._parts:
            for mask, change in zip(chosen, changes, strict=True):
                if position == lineage and change >= 0:
                    yield log.stored(writer, variable, mask, elements, change)


def _size(masks: Sequence[StoredMask], elements: int) -> float:
    """The size of a set as far as the log tells it: not that of what two masks let through."""
    if len(masks) > 1 and all(mask.through for mask in masks):
        return math.nan
    return float(min((mask.through for mask in masks), default=elements))


def moment(history: MaskHistory, lineages: Sequence[LineageHead], step: int) -> Hashable:
    """The same for all steps of a run at which its masks are the same, as far as is known."""
    position = int(history.standing(np.array([step]))[0])
    log = history.logs[position] if position >= 0 else None
    changes = () if log is None else log.changes.values()
    changing = [log.gaps_from] if log is not None else []
    changing += [changed.steps for changed in changes]
    passed = sum(int(np.searchsorted(steps, step, side="right")) for steps in changing)
    return position, passed, tuple(map(_written, lineages))


def _written(lineage: LineageHead) -> Hashable:
    """Changes when anything does that a lineage tells of its masks; small: a key of the cache."""
    versions = (pair for pair in lineage.versions.items() if pair[0] in _HEAD or mask_of(pair[0]))
    return lineage.tb_run, lineage.begin, hash(tuple(versions))


class MaskSets:
    """The sets of one variable, their bits decoded when they are asked for; the latest are kept."""

    def __init__(self, readings: Readings, plan: Plan, most: int, lost: Notes) -> None:
        self._readings = readings
        self._plan = plan
        self._most = most
        self._lost = lost
        self._latest: dict[SeriesName, tuple[StoredMask, Words | None]] = {}

    def sets(self) -> Sets:
        """The sets, with their bits at hand."""
        return Sets(self._plan.positions, self._plan.sizes, self._bits, self._plan.elements)

    def _bits(self, position: int) -> Words | None:
        joined: Words | None = None
        for stored in self._plan.masks[position]:
            mask = self._mask(stored)
            if mask is None:
                return None
            joined = mask if joined is None else joined & mask
        return joined

    def _mask(self, stored: StoredMask) -> Words | None:
        latest = self._latest.get(stored.series)
        if latest is None or latest[0] != stored:
            mask = stored.decode(self._readings.get(stored.series, ()), self._most)
            if mask is None:
                self._lost[notes.MASKS_UNREAD] += 1
            words = None if mask is None else overlap.words(mask.bits)
            latest = self._latest[stored.series] = stored, words
        return latest[1]


def each_weights(
    readers: Sequence[RunReader],
    steps: Sequence[Integers],
    mask: str,
    layers: Layers,
    lost: Notes,
    alone: Flags,
) -> Iterator[Mapping[int, Sets]]:
    """The sets of weights of many runs, layer by layer, read in few calls.

    Args:
        readers: of the runs.
        steps: int64 (columns,) for each of them: of records, -1 for none.
        mask: "kept": weights that aren't pruned; "trainable": those that an update may change.
        layers: what to read.
        lost: gets what could not be read.
        alone: bool (runs,), those of which only the sizes of the sets matter.

    Yields:
        For each layer the sets of each run that has it.
    """
    for reader in readers:
        lost.update(reader.masks.notes)
    still = _still(readers, steps, layers, lost) if mask == "trainable" else {}
    planners = [Planner(reader.masks, own) for reader, own in zip(readers, steps, strict=True)]
    plans = (
        {
            run: planners[run].plan(variable, mask, still.get((run, variable.id)))
            for run, variable in layer.items()
        }
        for layer in layers
    )
    for group, series in _calls(plans, alone):
        readings = _read(readers[0], series, lost)
        for layer in group:
            most = 8 * MOST_BYTES // max(len(layer), 1)
            yield {run: MaskSets(readings, plan, most, lost).sets() for run, plan in layer.items()}


def _read(reader: RunReader, series: Collection[SeriesName], lost: Notes) -> Readings:
    """Reads series of any runs."""
    runs, tags = ({name[part] for name in series} for part in (0, 1))
    readings, _ = reader.store.source.read_listed(reader.context, sorted(runs), sorted(tags))
    # What is listed and comes back empty was withheld, too.
    gone = sum(not readings.get(name) for name in series)
    if gone:
        lost[notes.WITHHELD] += gone
    return readings


def _still(
    readers: Sequence[RunReader], steps: Sequence[Integers], layers: Layers, lost: Notes
) -> dict[tuple[int, str], Flags]:
    """Where `trainable=False` holds a variable: no mask tells that, records do."""
    return {
        (run, name): sets.held(steps[run])
        for run, reader in enumerate(readers)
        for name, sets in read_channel_sets(reader, names_in(layers, run), lost).items()
    }


def _calls(
    plans: Iterable[Mapping[int, Plan]], alone: Flags
) -> Iterator[tuple[list[Mapping[int, Plan]], dict[SeriesName, int]]]:
    """Layers whose masks one call can carry, and the series that hold these."""
    group: list[Mapping[int, Plan]] = []
    series: dict[SeriesName, int] = {}
    for layer in plans:
        more: dict[SeriesName, int] = {}
        for run, plan in layer.items():
            more |= plan.cost(bool(alone[run]))
        if group and sum(series.values()) + sum(more.values()) > BYTES_A_CALL:
            yield group, series
            group, series = [], {}
        group.append(layer)
        series |= more
    if group:
        yield group, series
