"""All records of one variable of one run, from the messages that hold them."""

from __future__ import annotations

import re
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
from tb_pastnet.format.tags import variable_of
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import NO_FLOATS, Flags, Floats, Integers, rows_of, values_at
from tb_pastnet.reader.cells import CellBudget
from tb_pastnet.reader.joined_blocks import MOST_CELLS, choose, concatenate, join_open_blocks
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all, once
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import SeriesPart
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

WIDE = 256
"""Channels from which on a few blocks at once, in threads, take less time than one by one."""


@dataclass(frozen=True, eq=False)
class RecordSeries:
    """The records of one variable that count, oldest first."""

    steps: Integers  # (records,), increasing
    past_steps: Integers  # (records,), of the value that each is compared with
    wall_times: Floats  # (records,), NaN where unknown
    learning_rates: Floats  # (records,), NaN where unknown
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
    """The part of a variable's records in one lineage, whose blocks can be read once."""

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
    """The part of a variable's records in one lineage."""

    records: Block
    wall_times: Floats
    learning_rates: Floats
    damaged: int
    left_out: int
    notes: Notes


def make_series(
    parts: Sequence[SeriesPart],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    channels: int,
    *,
    budget: CellBudget | None = None,
    withheld: Sequence[SeriesName] = (),
    sampled: bool = False,
    rows: Rows = ROWS,
) -> RecordSeries:
    """Decodes and joins the parts of a variable, in the order of the lineages, within a budget.

    Without one, it is that of a run of no other variables. `withheld` are series that TensorBoard
    could not return; `sampled` means that only a part of the events was read. Statistics that
    aren't among `rows` may come back as NaN.
    """
    opened = open_parts(parts, readings, channels, budget or CellBudget(), withheld, rows)
    joined = [join_part(own, channels) for own in opened]
    return join_parts(opened, joined, channels, sampled)


def open_parts(
    parts: Sequence[SeriesPart],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    channels: int,
    budget: CellBudget,
    withheld: Sequence[SeriesName],
    rows: Rows,
    heads: Heads | None = None,
) -> list[OpenedPart]:
    """The parts of a variable; their blocks are opened as they are read. See `make_series`."""
    within = [budget.within(readings.get((part.tb_run, part.tag), ())) for part in parts]
    rooms = _rooms([own.cells for own in within], channels)
    axes = list(map(_axis, parts))
    latest = next(filter(None, reversed(axes)), None)
    opened = []
    for part, axis, own, room in zip(parts, axes, within, rooms, strict=True):
        messages, beyond, cells, largest = own
        lost: Notes = Counter({notes.IN_PART: beyond} if beyond else {})
        noted: Notes = Counter()
        lineage = part.lineage.name.lineage if part.lineage else 0
        opening = partial(open_block, rows=rows, heads=heads)
        wide = channels >= WIDE
        blocks = decode_all(messages, opening, part.tag, lineage, lost, at_once=wide)
        fitting = _of_width(blocks, None if axis not in (None, latest) else channels, noted)
        if part.lineage is None:
            fitting = _as_written(fitting)
        gone = (part.tb_run, part.tag) in withheld
        sizes = cells, largest
        opened.append(OpenedPart(part, messages, *sizes, gone, room, fitting, lost, noted))
    return opened


def _rooms(cells: Sequence[int], channels: int) -> list[int]:
    """How many cells of each lineage may be in memory: `MOST_CELLS` of all together.

    At least those of one record, of as many of the latest lineages as there is room for.
    """
    most = min(MOST_CELLS / max(sum(cells), 1), 1)
    least = max(channels, 1)
    recorded = [number for number, own in enumerate(cells) if own]
    left_out = {*recorded[: -max(MOST_CELLS // least, 1)]}
    return [
        0 if number in left_out else max(int(most * own) if most < 1 else MOST_CELLS, least)
        for number, own in enumerate(cells)
    ]


def join_part(opened: OpenedPart, channels: int) -> tuple[Block, int]:
    """Its records, and how many were left out."""
    return join_open_blocks(opened.blocks, channels, opened.most_cells, opened.largest)


def join_parts(
    opened: Sequence[OpenedPart],
    joined: Sequence[tuple[Block, int]],
    channels: int,
    sampled: bool,
) -> RecordSeries:
    """Joins the records of all parts, each with the number of those that were left out."""
    parts = [_closed(own, *records) for own, records in zip(opened, joined, strict=True)]
    lineages = [own.part.lineage for own in opened]
    stand = supersede(
        [part.records.steps for part in parts],
        [lineage.start if lineage else None for lineage in lineages],
    )
    account = Account()
    for lineage, part, keep in zip(lineages, parts, stand, strict=True):
        account += _account(lineage, part, keep, sampled)
    return _join(parts, stand, channels, account)


def _axis(part: SeriesPart) -> str | None:
    """How its lineage splits the variable into channels; None if that is unknown."""
    entry = part.lineage.described.get(variable_of(part.tag) or "") if part.lineage else None
    if entry is None:
        return None
    # The last of two axes may be "-1" or "1".
    return re.sub(r"-\d{1,9}", lambda found: str(int(found[0]) + len(entry.shape)), entry.axis)


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
    walls, rates = _clock(opened.part, opened.messages, records)
    return _Part(records, walls, rates, damaged, left_out, lost + opened.noted)


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


def _of_width(
    blocks: Iterable[OpenBlock], channels: int | None, noted: Notes
) -> Iterator[OpenBlock]:
    """The blocks of the latest network's width; others, and unknown statistics, are noted.

    None fits none: the channels are along another axis.
    """
    for block in blocks:
        if block.unknown:
            noted[notes.LATER_STATISTICS] += len(block.steps)
        if block.channels == channels:
            yield block
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


def _clock(
    part: SeriesPart, messages: Sequence[StoredMessage], records: Block
) -> tuple[Floats, Floats]:
    """Wall times and learning rates of the records."""
    if part.lineage is None:
        times = {message.step: message.wall_time for message in messages}
        walls = [times.get(step, np.nan) for step in records.steps.tolist()]
        return np.array(walls, np.float64), np.full(len(walls), np.nan)
    line = part.lineage.timeline
    row = rows_of(records.sequence, line.sequence)
    return values_at(row, line.wall_times), values_at(row, part.lineage.rates_of(part.tag))


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


def _join(
    parts: Sequence[_Part], stand: Sequence[Flags], channels: int, account: Account
) -> RecordSeries:
    pairs = list(zip(parts, stand, strict=True))
    joined = concatenate([choose(part.records, keep) for part, keep in pairs], channels)
    order = np.argsort(joined.steps, kind="stable")
    records = choose(joined, order)
    counts = np.array([keep.sum() for keep in stand], np.int64)
    return RecordSeries(
        records.steps,
        records.past_steps,
        np.concatenate([NO_FLOATS, *(part.wall_times[keep] for part, keep in pairs)])[order],
        np.concatenate([NO_FLOATS, *(part.learning_rates[keep] for part, keep in pairs)])[order],
        np.repeat(np.arange(len(parts)), counts)[order],
        records.codes,
        account,
        sum((part.notes for part in parts), Counter()),
    )
