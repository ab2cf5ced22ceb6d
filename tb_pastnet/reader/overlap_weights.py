"""Which weights the masks of many runs let through, as sets, read in few calls."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tb_pastnet.core import overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.tags import MASKS, TAG_DESCRIPTION, TAG_MASKS, TAG_VIOLATIONS, mask_of
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Floats, Integers
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
from tb_pastnet.reader.series_source import SeriesName, StoredMessage, grouped
from tb_pastnet.reader.store import RunReader

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

    def series(self, alone: bool) -> dict[SeriesName, int]:
        """The series to read, and how large they are at most."""
        sizes = zip(self.masks, self.sizes.tolist(), strict=True)
        needed = (masks for masks, size in sizes if math.isnan(size) or (size and not alone))
        return {mask.series: mask.cost for mask in chain.from_iterable(needed)}


def _in_force(
    history: MaskHistory,
    steps: Integers,
    variable: str,
    masks: Sequence[str],
    elements: int,
) -> tuple[Integers, Flags]:
    """A row a mask, then one for the lineage: equal columns, equal sets; and what is known."""
    table = np.full((len(masks) + 1, len(steps)), ALL_THROUGH)
    is_known = np.zeros(len(steps), bool)
    standing = np.where(steps >= 0, history.standing(steps), UNKNOWN)
    for position, log in enumerate(history.logs):
        own = standing == position
        if log is None or not own.any():
            continue
        is_known[own], table[-1, own] = True, position
        for row, mask in enumerate(masks):
            table[row, own] = log.positions(variable, mask, elements, steps[own])
    is_known &= (table[:-1] != LOST).all(axis=0)
    table[-1, (table[:-1] == ALL_THROUGH).all(axis=0)] = ALL_THROUGH
    return table, is_known


def make_plan(
    history: MaskHistory,
    steps: Integers,
    variable: VariableEntry,
    mask: str,
    still: Flags | None = None,
) -> Plan:
    """Tells which masks make the sets of a variable at some steps, -1 for none; reads no bits.

    `mask` is "kept", of weights that aren't pruned, or "trainable", of those that an update may
    change; `still`, bool (columns,), tells where `trainable=False` holds all of it.
    """
    elements = math.prod(variable.shape)
    chosen = MASKS[:1] if mask == "kept" else MASKS
    table, is_known = _in_force(history, steps, variable.id, chosen, elements)
    if still is not None:
        table[:, still] = _STILL
        is_known |= still
    positions = np.full(len(steps), UNKNOWN)
    kinds, positions[is_known] = distinct(table[:, is_known])
    masks = []
    sizes = []
    for *changes, lineage in kinds.T.tolist():
        stored = tuple(
            history.logs[lineage].stored(
                history.lineages[lineage], variable.id, name, elements, change
            )
            for name, change in zip(chosen, changes, strict=True)
            if change >= 0
        )
        masks.append(stored)
        sizes.append(0.0 if lineage == _STILL else _size(stored, elements))
    return Plan(positions, np.array(sizes, np.float64), tuple(masks), elements)


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


def _sets(plan: Plan, readings: Readings, most: int, lost: Notes) -> Sets:
    """The sets of a plan; their bits are decoded when they are asked for, and the latest kept."""
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
    """The sets of weights of many runs, layer by layer, read in few calls. See `each_channels`.

    Of runs that stand `alone`, bool (runs,), only the sizes of the sets matter.
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
            most = 8 * MOST_BYTES // max(len(layer), 1)
            yield {run: _sets(plan, readings, most, lost) for run, plan in layer.items()}


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
