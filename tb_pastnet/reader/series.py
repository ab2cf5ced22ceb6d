"""All records of a variable or a bundle of one run, from the messages that hold them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tb_pastnet.core.account import Account, settle
from tb_pastnet.core.lineage import supersede
from tb_pastnet.core.quantize import NAN, ZERO, Codes
from tb_pastnet.core.statistics import MOVED
from tb_pastnet.format.block import Block, Heads, OpenBlock, open_block
from tb_pastnet.format.layout import ROWS, Rows
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import NO_FLOATS, Flags, Floats, Integers, rows_of, values_at
from tb_pastnet.reader.bundles import BUNDLE_CELLS, Bundle, SeriesPart
from tb_pastnet.reader.cells import CellBudget
from tb_pastnet.reader.joined_blocks import MOST_CELLS, choose, concatenate, join_open_blocks
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all, once
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

WIDE = 256
"""Channels from which on a few blocks at once, in threads, take less time than one by one."""

SEVERAL_CELLS = 5 * BUNDLE_CELLS // 4
"""Records times channels in memory of variables that share series: no true timeline has more."""


@dataclass(frozen=True, eq=False)
class RecordSeries:
    """The records that count, oldest first, of a variable or of some side by side."""

    steps: Integers  # (records,), increasing
    past_steps: Integers  # (records,), of the value that each is compared with
    wall_times: Floats  # (records,), NaN where unknown
    learning_rates: Floats  # (records,), NaN where unknown; of some, those of the first
    writers: Integers  # (records,), which lineage wrote each, counted from 0
    codes: Codes  # (statistics, records, channels), see `core.statistics` and `core.quantize`
    account: Account  # what became of all its records
    notes: Notes  # what could not be read, and why

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self.codes.nbytes + 5 * self.steps.nbytes

    def part(self, records: slice, channels: slice) -> RecordSeries:
        """Some channels at some records; the account and the notes stay those of all."""
        return replace(
            self,
            steps=self.steps[records],
            past_steps=self.past_steps[records],
            wall_times=self.wall_times[records],
            learning_rates=self.learning_rates[records],
            writers=self.writers[records],
            codes=self.codes[:, records, channels],
        )


@dataclass(frozen=True, eq=False)
class OpenedPart:
    """The part of a bundle's records in one lineage, whose blocks can be read once."""

    part: SeriesPart
    messages: Sequence[StoredMessage]  # within the budget
    cells: int  # that these claim to hold
    largest: int  # the most of one of them
    is_withheld: bool  # TensorBoard could not return it
    most_cells: int  # in memory
    blocks: Iterable[OpenBlock]
    lost: Notes  # what could not be read, complete once the blocks are read
    noted: Notes  # the same of what is readable, and isn't used


@dataclass(frozen=True, eq=False)
class _Part:
    """The part of a bundle's records in one lineage."""

    records: Block
    wall_times: Floats
    damaged: int
    left_out: int
    notes: Notes


def make_series(
    bundle: Bundle,
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    *,
    budget: CellBudget | None = None,
    withheld: Sequence[SeriesName] = (),
    sampled: bool = False,
    rows: Rows = ROWS,
) -> RecordSeries:
    """Decodes and joins the parts of a bundle, in the order of the lineages, within a budget.

    Without one, it is that of a run of no other variables. `withheld` are series that TensorBoard
    could not return; `sampled` means that only a part of the events was read. Statistics that
    aren't among `rows` may come back as NaN.
    """
    opened = open_parts(bundle, readings, budget or CellBudget(), withheld, rows)
    return join_bundle(bundle, opened, sampled)


def join_bundle(bundle: Bundle, opened: Sequence[OpenedPart], sampled: bool) -> RecordSeries:
    """Joins the opened parts of a bundle."""
    channels = bundle.channels
    joined = [join_open_blocks(own.blocks, channels, own.most_cells, own.largest) for own in opened]
    return join_parts(bundle.names[0], opened, joined, channels, sampled)


def open_parts(
    bundle: Bundle,
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    budget: CellBudget,
    withheld: Sequence[SeriesName],
    rows: Rows,
    heads: Heads | None = None,
) -> list[OpenedPart]:
    """The parts of a bundle; their blocks are opened as they are read. See `make_series`."""
    within = [
        (part, budget.within(readings.get((part.tb_run, part.tag), ()), part.share))
        for part in bundle.parts
    ]
    rooms = _rooms(
        [math.ceil(own.cells * part.share) for part, own in within],
        bundle.all_channels,
        SEVERAL_CELLS if bundle.is_shared else MOST_CELLS,
    )
    # Also where only some of its variables are asked for, the records are the same.
    own_share = bundle.channels / max(bundle.all_channels, 1)
    opened = []
    for (part, own), room in zip(within, rooms, strict=True):
        messages, beyond, cells, largest = own
        lost: Notes = Counter({notes.IN_PART: beyond} if beyond else {})
        noted: Notes = Counter()
        lineage = part.lineage.name.lineage if part.lineage else 0
        opening = partial(open_block, rows=rows, heads=heads)
        wide = part.width >= WIDE
        blocks = decode_all(messages, opening, part.tag, lineage, lost, at_once=wide)
        fitting = _fitting(blocks, part, noted)
        if part.lineage is None:
            fitting = _as_written(fitting)
        gone = (part.tb_run, part.tag) in withheld
        sizes = cells, largest
        most_cells = math.ceil(own_share * room)
        opened.append(OpenedPart(part, messages, *sizes, gone, most_cells, fitting, lost, noted))
    return opened


def _rooms(cells: Sequence[int], channels: int, room: int) -> list[int]:
    """How many cells of each lineage may be in memory, where all together have some room.

    At least those of one record, of as many of the latest lineages as there is room for.
    """
    most = min(room / max(sum(cells), 1), 1)
    least = max(channels, 1)
    recorded = [number for number, own in enumerate(cells) if own]
    left_out = {*recorded[: -max(room // least, 1)]}
    return [
        0 if number in left_out else max(int(most * own) if most < 1 else room, least)
        for number, own in enumerate(cells)
    ]


def join_parts(
    variable: str,
    opened: Sequence[OpenedPart],
    joined: Sequence[tuple[Block, int]],
    channels: int,
    sampled: bool,
) -> RecordSeries:
    """Joins the records of all parts, each with the number of those that were left out.

    They are of a variable, or of some of which it is the first one.
    """
    parts = [_closed(own, *records) for own, records in zip(opened, joined, strict=True)]
    lineages = [own.part.lineage for own in opened]
    stand = supersede(
        [part.records.steps for part in parts],
        [lineage.start if lineage else None for lineage in lineages],
    )
    account = Account()
    for lineage, part, keep in zip(lineages, parts, stand, strict=True):
        account += _account(lineage, part, keep, sampled)
    pairs = list(zip(parts, stand, strict=True))
    standing = concatenate([choose(part.records, keep) for part, keep in pairs], channels)
    order = np.argsort(standing.steps, kind="stable")
    records = choose(standing, order)
    counts = np.array([keep.sum() for keep in stand], np.int64)
    writers = np.repeat(np.arange(len(parts)), counts)[order]
    return RecordSeries(
        records.steps,
        records.past_steps,
        np.concatenate([NO_FLOATS, *(part.wall_times[keep] for part, keep in pairs)])[order],
        rates_of(variable, lineages, writers, records.steps),
        writers,
        records.codes,
        account,
        sum((part.notes for part in parts), Counter()),
    )


def rates_of(
    variable: str, lineages: Sequence[LineageHead | None], writers: Integers, steps: Integers
) -> Floats:
    """The learning rates of a variable at records of lineages."""
    rates = np.full(len(steps), np.nan)
    for number, lineage in enumerate(lineages):
        own = writers == number
        if lineage is not None and own.any():
            row = rows_of(steps[own], lineage.timeline.steps)
            rates[own] = values_at(row, lineage.rates_of(variable))
    return rates


def _closed(opened: OpenedPart, records: Block, left_out: int) -> _Part:
    """A part whose blocks are read."""
    if opened.part.lineage is not None:
        records = choose(records, once(records.sequence, records.steps))
    if opened.lost:
        records = _unknown_after_gaps(records)
    lost = opened.lost + Counter({notes.WITHHELD: 1} if opened.is_withheld else {})
    damaged = lost.total()
    if left_out:
        lost[notes.SAMPLED] += left_out
    walls = _clock(opened.part, opened.messages, records)
    return _Part(records, walls, damaged, left_out, lost + opened.noted)


def _unknown_after_gaps(records: Block) -> Block:
    """Records that are lost may have said what moved: after a gap, what didn't is unknown.

    A writer adds what it leaves out to the next record.
    """
    gaps = np.flatnonzero(np.diff(records.sequence, prepend=-1) > 1)
    moved = records.codes[MOVED, gaps]
    if not (moved == ZERO).any():
        return records
    codes = records.codes.copy()
    codes[MOVED, gaps] = np.where(moved == ZERO, np.int16(NAN), moved)
    return replace(records, codes=codes)


def _fitting(blocks: Iterable[OpenBlock], part: SeriesPart, noted: Notes) -> Iterator[OpenBlock]:
    """The part's columns of the blocks that fit; others, and unknown statistics, are noted."""
    for block in blocks:
        if block.unknown:
            noted[notes.LATER_STATISTICS] += len(block.steps)
        if part.fits and block.channels == part.width:
            yield block if part.columns is None else block._replace(columns=part.columns)
        else:
            noted[notes.RESHAPED] += len(block.steps)


def _as_written(blocks: Iterable[OpenBlock]) -> Iterator[OpenBlock]:
    """A user's own writer: a block that goes back replaces what was written from there on.

    Sources do this by the steps of events (`standing`); a crafted block may hold others.
    """
    stand: list[OpenBlock] = []
    for block in blocks:
        while stand and stand[-1].steps[-1] >= block.steps[0]:
            stand.pop()
        stand.append(block)
    yield from stand


def _clock(part: SeriesPart, messages: Sequence[StoredMessage], records: Block) -> Floats:
    """Wall times of the records."""
    if part.lineage is None:
        times = {message.step: message.wall_time for message in messages}
        walls = [times.get(step, np.nan) for step in records.steps.tolist()]
        return np.array(walls, np.float64)
    line = part.lineage.timeline
    return values_at(rows_of(records.sequence, line.sequence), line.wall_times)


def _account(lineage: LineageHead | None, part: _Part, keep: Flags, sampled: bool) -> Account:
    shown, superseded = int(keep.sum()), int((~keep).sum()) + part.notes[notes.RESHAPED]
    read = shown + superseded + part.left_out
    offered, thinned, dropped = read + part.damaged, part.left_out, 0
    if lineage is not None:
        line = lineage.timeline
        # In a run that is being written, blocks may be newer than the timeline, which was read
        # before.
        offered = line.offered + int((part.records.sequence >= line.offered).sum())
        missing = max(offered - read - line.thinned - line.dropped - part.damaged, 0)
        thinned += line.thinned + (missing if sampled else 0)
        dropped = line.dropped
    return settle(
        offered=offered,
        shown=shown,
        superseded=superseded,
        thinned=thinned,
        dropped=dropped,
        damaged=part.damaged,
    )
