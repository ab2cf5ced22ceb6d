"""Sets of weights or of channels, as overlaps ask for them: which set stands when, and its bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_pastnet.core import channel_states, overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.core.statistics import KEPT, NONFINITE, NORM, PAST_NORM, TRAINABLE
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.state_series import make_state_series
from tb_pastnet.reader.store import RunReader

WEIGHTS, CHANNELS = UNITS = ("weights", "channels")

UNKNOWN = -1
"""The position of a set that isn't known: `numpy.searchsorted` tells it, less one."""

NEEDS = NORM, PAST_NORM, NONFINITE, KEPT, TRAINABLE
"""The statistics that tell which channels are pruned or frozen."""

Layers = Sequence[Mapping[int, VariableEntry]]
"""Of each layer the variables to read, by the position of their runs."""

_OBJECT_BYTES = 1024


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets that one variable of one run has at some steps."""

    positions: Integers  # (columns,), that of the set at each step, `UNKNOWN` where it isn't known
    sizes: Floats  # (sets,), how many elements are in each; NaN where only its bits tell
    bits: Callable[[int], Words | None]  # gives the bits of a set; None where they can't be read
    elements: int  # how many there could be

    def size(self, position: int) -> float:
        """How many elements are in a set, NaN where that isn't known."""
        if position == UNKNOWN:
            return math.nan
        size = float(self.sizes[position])
        if not math.isnan(size):
            return size
        bits = self.bits(position)
        return math.nan if bits is None else float(overlap.count(bits))

    def plain(self, position: int) -> bool:
        """Whether a set is empty or holds everything: its bits needn't be read."""
        return self.sizes[position] in (0, self.elements)

    def without(self, columns: Flags) -> Sets:
        """The same with nothing known in some columns."""
        if not columns.any():
            return self
        return replace(self, positions=np.where(columns, UNKNOWN, self.positions))


def intersection(first: Sets, position: int, second: Sets, of: int) -> float:
    """How many elements two sets share, NaN where that isn't known."""
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
    """The variables that the layers of a run, or one of them, are drawn by, by layer.

    One that two layers share stands for the first of them.
    """
    if layer is not None:
        return {
            candidate.id: run.variables[candidate.main]
            for candidate in run.layers
            if candidate.id == layer
        }
    firsts: dict[str, str] = {}
    for candidate in run.layers:
        firsts.setdefault(candidate.main, candidate.id)
    return {id_: run.variables[main] for main, id_ in firsts.items()}


def count_of(variable: VariableEntry, unit: str) -> int:
    """How many weights or channels a variable has."""
    return variable.channels if unit == CHANNELS else math.prod(variable.shape)


def likeness(variables: Sequence[VariableEntry], unit: str) -> Integers:
    """Numbers that are equal where elements of one layer in several runs stand for each other.

    By position: weights of one shape, channels along the same axis, too.
    """
    kinds: dict[object, int] = {}
    keys = (
        variable.shape if unit == WEIGHTS else (variable.shape, variable.axis, variable.channels)
        for variable in variables
    )
    return np.array([kinds.setdefault(key, len(kinds)) for key in keys], np.int64)


def records_in_force(steps: Integers, firsts: Integers, lasts: Integers) -> Integers:
    """The record that stands in each column, from its first step to its last; int64 (columns,).

    It is the last one in the column or before it; -1 before the first record, and where the last
    one has ended, which is as long as the gap before it.

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
    """The columns that differ, in the order in which they first come, and the kind of each.

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
    """The sets of channels of one variable, a row where one of them changed.

    They don't depend on a threshold: that tells settled channels from moving ones.
    """

    steps: Integers  # (changes,), increasing: the record from which each row stands
    kept: Words  # (changes, words), the channels that aren't pruned
    trainable: Words  # (changes, words), those that aren't frozen either
    channels: int  # how many there are
    notes: Notes  # what could not be read of the records, and why

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return _OBJECT_BYTES + self.steps.nbytes + self.kept.nbytes + self.trainable.nbytes

    def sets(self, mask: str, steps: Integers) -> Sets:
        """The sets of a mask, "kept" or "trainable", at some steps, int64 (columns,)."""
        rows = self.kept if mask == "kept" else self.trainable
        positions = np.searchsorted(self.steps, steps, side="right") - 1
        sizes = overlap.count(rows).astype(np.float64)
        return Sets(positions, sizes, rows.__getitem__, self.channels)

    def held(self, steps: Integers) -> Flags:
        """Where all channels are held and some aren't pruned: no update changes the variable.

        bool (columns,): False before the first record.
        """
        still = self.kept.any(axis=1) & ~self.trainable.any(axis=1)
        return np.append(still, False)[np.searchsorted(self.steps, steps, side="right") - 1]


def make_channel_sets(series: RecordSeries, variable: VariableEntry) -> ChannelSets:
    """Tells the sets of channels from records, of which the statistics of `NEEDS` are looked at.

    In kernels alone channels of zeros count as pruned without a mask.
    """
    _, records, channels = series.codes.shape
    state = make_state_series(series, variable, None).unsettled & np.uint8(channel_states.STATE)
    kept = state != channel_states.PRUNED
    sets = np.stack([kept, kept & (state != channel_states.FROZEN)], axis=1)
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

    by_variable = reader.kept_each("channel sets", variables, make, NEEDS)
    lost.update(sum((sets.notes for sets in by_variable.values()), Notes()))
    return by_variable


def each_channels(
    readers: Sequence[RunReader],
    steps: Sequence[Integers],
    mask: str,
    layers: Layers,
    lost: Notes,
) -> Iterator[Mapping[int, Sets]]:
    """The sets of channels of many runs, layer by layer; of each layer those of the runs with it.

    Args:
        readers: of the runs.
        steps: int64 (columns,) for each of them: of records, -1 for none.
        mask: "kept": what isn't pruned; "trainable": what isn't frozen either.
        layers: what to read.
        lost: gets what could not be read.
    """
    by_run = [
        read_channel_sets(reader, names_in(layers, run), lost) for run, reader in enumerate(readers)
    ]
    for layer in layers:
        yield {
            run: by_run[run][variable.id].sets(mask, steps[run]) for run, variable in layer.items()
        }


def names_in(layers: Layers, run: int) -> list[str]:
    """The variables that layers have in the run of a position."""
    return list(dict.fromkeys(layer[run].id for layer in layers if run in layer))
