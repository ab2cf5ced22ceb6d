"""Sets of weights or channels for overlaps: which set is in force when, and its bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tb_pastnet.core import channel_states, overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.core.statistics import KEPT, NONFINITE, NORM, PAST_NORM, TRAINABLE
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.tags import DESCRIPTIONS, MASKS, TAG_MASKS, TAG_VIOLATIONS, mask_of
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.mask_changes import StoredMask
from tb_pastnet.reader.mask_history import MaskHistory
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.series_source import Readings, SeriesName, grouped
from tb_pastnet.reader.state_series import KERNEL
from tb_pastnet.reader.store import MOST_ELEMENTS, RunReader

UNITS = ("weights", "channels")
WEIGHTS, CHANNELS = UNITS

UNKNOWN = -1
"""The position of an unknown set: what `numpy.searchsorted` returns, minus one."""

NEEDS = NORM, PAST_NORM, NONFINITE, KEPT, TRAINABLE
"""The statistics that show which channels are pruned or frozen."""

Layers = Sequence[Mapping[int, VariableEntry]]
"""The variables to read for each layer, by the position of their runs."""

BYTES_A_CALL = 16 << 20
"""Bytes of masks in one provider call, if nothing deflates."""

MOST_BYTES = 256 << 20
"""Bytes of masks of one layer that are unpacked at once, one bit per element.

A hostile log claims any number of them in a few bytes.
"""

_OBJECT_BYTES = 1024
_STILL = -2
_HEAD = (*DESCRIPTIONS, TAG_MASKS, TAG_VIOLATIONS)


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets that one variable of one run has at some steps."""

    positions: Integers  # (columns,), that of the set at each step, or `UNKNOWN`
    sizes: Floats  # (sets,), how many elements are in each; NaN if that needs the bits
    bits: Callable[[int], Words | None]  # returns the bits of a set; None if they can't be read
    elements: int  # how many there could be

    def size(self, position: int) -> float:
        """How many elements are in a set, NaN where unknown."""
        if position == UNKNOWN:
            return math.nan
        size = float(self.sizes[position])
        if not math.isnan(size):
            return size
        bits = self.bits(position)
        return math.nan if bits is None else float(overlap.count(bits))

    def plain(self, position: int) -> bool:
        """Whether a set is empty or holds everything: its bits aren't needed."""
        return self.sizes[position] in (0, self.elements)

    def without(self, columns: Flags) -> Sets:
        """The same, unknown in some columns."""
        if not columns.any():
            return self
        return replace(self, positions=np.where(columns, UNKNOWN, self.positions))


def intersection(first: Sets, position: int, second: Sets, of: int) -> float:
    """How many elements two sets share, NaN where unknown."""
    if UNKNOWN in (position, of):
        return math.nan
    if first.plain(position):
        return second.size(of) if first.sizes[position] else 0.0
    if second.plain(of):
        return first.size(position) if second.sizes[of] else 0.0
    bits, more = first.bits(position), second.bits(of)
    if bits is None or more is None or bits.shape != more.shape:
        return math.nan
    return float(overlap.count(bits & more))


def drawn(run: CatalogRun, layer: str | None = None) -> dict[str, VariableEntry]:
    """The main variable of each layer of a run, or of one layer, by layer.

    A variable that two layers share belongs to the first of them.
    """
    firsts: dict[str, str] = {}
    for candidate in run.layers:
        if layer in (None, candidate.id):
            firsts.setdefault(candidate.main, candidate.id)
    return {id_: run.variables[main] for main, id_ in firsts.items()}


def likeness(variables: Sequence[VariableEntry], unit: str) -> Integers:
    """Numbers that are equal for runs whose elements of a layer correspond.

    By position: weights of the same shape; for channels, also along the same axis.
    """
    kinds: dict[object, int] = {}
    keys = (
        variable.shape if unit == WEIGHTS else (variable.shape, variable.axis, variable.channels)
        for variable in variables
    )
    return np.array([kinds.setdefault(key, len(kinds)) for key in keys], np.int64)


def records_in_force(steps: Integers, firsts: Integers, lasts: Integers) -> Integers:
    """The record in force in each column, from its first step to its last; int64 (columns,).

    It is the last one in the column or before it; -1 before the first record, and after the end of
    the last one, which is as long as the gap before it.

    Example:
        >>> ends = np.array([0, 10, 25, 29, 30])
        >>> records_in_force(np.array([10, 20]), ends, ends).tolist()
        [-1, 0, 1, 1, -1]
    """
    rows = np.searchsorted(steps, lasts, side="right") - 1
    if len(steps):
        gap = max(int(steps[-1] - steps[-2]), 1) if len(steps) > 1 else 1
        rows[firsts >= steps[-1] + gap] = -1
    return rows


def distinct(columns: Integers) -> tuple[Integers, Integers]:
    """The distinct columns, in the order of their first occurrence, and the kind of each.

    Example:
        >>> distinct(np.array([[7, 5, 7], [1, 1, 1]]))[1].tolist()
        [0, 1, 0]
    """
    if columns.shape[1] == 1:
        return columns, np.zeros(1, np.int64)
    new = np.ones(columns.shape[1], bool)
    new[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    starts = columns[:, new].T.tolist()
    kinds: dict[tuple[int, ...], int] = {}
    kinds_of = np.array([kinds.setdefault(tuple(start), len(kinds)) for start in starts], np.int64)
    different = np.array(list(kinds), np.int64).reshape(-1, len(columns)).T
    return different, np.repeat(kinds_of, np.diff(np.append(np.flatnonzero(new), len(new))))


@dataclass(frozen=True, eq=False)
class ChannelSets:
    """The sets of channels of one variable, one row per change.

    They don't depend on the threshold, which only separates quiet channels from moving ones.
    """

    steps: Integers  # (changes,), increasing: the record from which each row is in force
    kept: Words  # (changes, words), the channels that aren't pruned
    trainable: Words  # (changes, words), those that aren't frozen either
    channels: int  # how many there are
    notes: Notes  # what could not be read of the records, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return _OBJECT_BYTES + self.steps.nbytes + self.kept.nbytes + self.trainable.nbytes

    def sets(self, mask: str, steps: Integers) -> Sets:
        """The sets of a mask, "kept" or "trainable", at some steps, int64 (columns,)."""
        rows = self.kept if mask == "kept" else self.trainable
        positions = np.searchsorted(self.steps, steps, side="right") - 1
        sizes = overlap.count(rows).astype(np.float64)
        return Sets(positions, sizes, rows.__getitem__, self.channels)

    def held(self, steps: Integers) -> Flags:
        """Whether all channels are held and some aren't pruned: no update changes the variable.

        bool (columns,): False before the first record.
        """
        still = self.kept.any(axis=1) & ~self.trainable.any(axis=1)
        return np.append(still, False)[np.searchsorted(self.steps, steps, side="right") - 1]


def make_channel_sets(series: RecordSeries, variable: VariableEntry) -> ChannelSets:
    """Finds the sets of channels from records; only the statistics in `NEEDS` matter.

    Only in kernels do channels of zeros count as pruned without a mask.
    """
    _, records, channels = series.codes.shape
    measured = channel_states.seen(series.codes) if variable.role == KERNEL else None
    pruned, frozen = channel_states.held_channels(series.codes, measured)
    sets = np.stack([~pruned, ~(pruned | frozen)], axis=1)
    changed = np.ones(records, bool)
    changed[1:] = (sets[1:] != sets[:-1]).any(axis=(1, 2))
    rows = overlap.words(np.packbits(sets[changed], axis=2))
    return ChannelSets(
        series.steps[changed],
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1]),
        channels,
        series.notes,
    )


def read_channel_sets(
    reader: RunReader, variables: Sequence[str], lost: Notes
) -> Mapping[str, ChannelSets]:
    """The sets of channels of a run by variable, read in few calls and kept."""

    def make(name: str, records: RecordSeries) -> ChannelSets:
        return make_channel_sets(records, reader.run.variables[name])

    return reader.kept_each("channel sets", variables, make, lost, NEEDS)


def names_in(layers: Layers, run: int) -> list[str]:
    """The variables that layers have in the run of a position."""
    return list(dict.fromkeys(layer[run].id for layer in layers if run in layer))


@dataclass(frozen=True, eq=False)
class Plan:
    """The sets of one variable of one run before their bits are read."""

    positions: Integers  # as in `Sets`
    sizes: Floats  # as in `Sets`
    masks: tuple[tuple[StoredMask, ...], ...]  # the masks of each set that don't let all through
    elements: int  # of the variable

    def series(self, alone: bool) -> dict[SeriesName, int]:
        """The series to read, and how large they are at most."""
        sizes = zip(self.masks, self.sizes.tolist(), strict=True)
        needed = (masks for masks, size in sizes if math.isnan(size) or (size and not alone))
        return {mask.series: mask.cost for mask in chain.from_iterable(needed)}


def make_plan(
    history: MaskHistory,
    steps: Integers,
    variable: VariableEntry,
    mask: str,
    still: Flags | None = None,
) -> Plan:
    """Finds which masks make the sets of a variable at some steps, -1 for none; reads no bits.

    `mask` is "kept", for weights that aren't pruned, or "trainable", for those that an update may
    change; `still`, bool (columns,), is True where `trainable=False` holds all of it.
    """
    elements = math.prod(variable.shape)
    chosen = MASKS[:1] if mask == "kept" else MASKS
    table, is_known = history.in_force(variable.id, chosen, elements, steps)
    is_known &= steps >= 0
    if still is not None:
        table[:, still] = _STILL
        is_known |= still
    positions = np.full(len(steps), UNKNOWN)
    kinds, positions[is_known] = distinct(table[:, is_known])
    masks = []
    sizes = []
    for *changes, lineage in kinds.T.tolist():
        stored = tuple(
            history.stored(lineage, variable.id, name, elements, change)
            for name, change in zip(chosen, changes, strict=True)
            if change >= 0
        )
        masks.append(stored)
        sizes.append(0.0 if lineage == _STILL else _size(stored, elements))
    return Plan(positions, np.array(sizes, np.float64), tuple(masks), elements)


def _size(masks: Sequence[StoredMask], elements: int) -> float:
    """The size of a set if the log has it: not if two masks restrict the set."""
    if len(masks) > 1 and all(mask.through for mask in masks):
        return math.nan
    return float(min((mask.through for mask in masks), default=elements))


def moment(history: MaskHistory, step: int) -> Hashable:
    """A key that is equal for all steps of a run with the same masks, as far as is known."""
    position = int(history.standing(np.array([step]))[0])
    log = history.logs[position] if position >= 0 else None
    changes = () if log is None else log.changes.values()
    changing = [log.gaps_from] if log is not None else []
    changing += [changed.steps for changed in changes]
    passed = sum(int(np.searchsorted(steps, step, side="right")) for steps in changing)
    return position, passed, tuple(map(_written, history.lineages))


def _written(lineage: LineageHead) -> Hashable:
    """Changes with a lineage's mask data; small, for a key of the cache."""
    versions = (pair for pair in lineage.versions.items() if pair[0] in _HEAD or mask_of(pair[0]))
    return lineage.tb_run, lineage.start, hash(tuple(versions))


def _sets(plan: Plan, readings: Readings, most: int, lost: Notes) -> Sets:
    """The sets of a plan; their bits are decoded on demand, and the latest kept."""
    latest: dict[SeriesName, tuple[StoredMask, Words | None]] = {}

    def decoded(stored: StoredMask) -> Words | None:
        if stored.series not in latest or latest[stored.series][0] != stored:
            mask = stored.decode(readings.get(stored.series, ()), most)
            if mask is None:
                lost[notes.MASKS_UNREAD] += 1
            latest[stored.series] = stored, None if mask is None else overlap.words(mask.bits)
        return latest[stored.series][1]

    def bits(position: int) -> Words | None:
        joined: Words | None = None
        for stored in plan.masks[position]:
            mask = decoded(stored)
            if mask is None:
                return None
            joined = mask if joined is None else joined & mask
        return joined

    return Sets(plan.positions, plan.sizes, bits, plan.elements)


def each_weights(
    readers: Sequence[RunReader],
    steps: Sequence[Integers],
    mask: str,
    layers: Layers,
    lost: Notes,
    alone: Flags,
) -> Iterator[Mapping[int, Sets]]:
    """The sets of weights of many runs, layer by layer, read in few calls.

    For runs that are `alone`, bool (runs,), only the sizes of the sets matter.
    """
    for reader in readers:
        lost.update(reader.masks.notes)
    still = _still(readers, steps, layers, lost) if mask == "trainable" else {}
    plans = (
        {
            run: make_plan(
                readers[run].masks, steps[run], variable, mask, still.get((run, variable.id))
            )
            for run, variable in layer.items()
        }
        for layer in layers
    )

    def series(layer: Mapping[int, Plan]) -> dict[SeriesName, int]:
        each = (plan.series(bool(alone[run])) for run, plan in layer.items())
        return {name: size for own in each for name, size in own.items()}

    for group in grouped(plans, lambda layer: sum(series(layer).values()), BYTES_A_CALL):
        readings = _read(readers[0], set().union(*map(series, group)), lost)
        for layer in group:
            most = min(8 * MOST_BYTES // max(len(layer), 1), MOST_ELEMENTS)
            yield {run: _sets(plan, readings, most, lost) for run, plan in layer.items()}


def _read(reader: RunReader, series: Collection[SeriesName], lost: Notes) -> Readings:
    """Reads series of any runs."""
    runs, tags = ({name[part] for name in series} for part in (0, 1))
    readings, _ = reader.store.source.read_listed(reader.context, sorted(runs), sorted(tags))
    # A listed series that comes back empty was withheld, too.
    gone = sum(not readings.get(name) for name in series)
    if gone:
        lost[notes.WITHHELD] += gone
    return readings


def _still(
    readers: Sequence[RunReader], steps: Sequence[Integers], layers: Layers, lost: Notes
) -> dict[tuple[int, str], Flags]:
    """Whether `trainable=False` holds a variable: only records show that, not masks."""
    return {
        (run, name): sets.held(steps[run])
        for run, reader in enumerate(readers)
        for name, sets in read_channel_sets(reader, names_in(layers, run), lost).items()
    }
