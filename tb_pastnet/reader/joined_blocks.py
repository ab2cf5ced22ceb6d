"""Joins the blocks of a variable; leaves out records that would take too much memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tb_pastnet.core.quantize import Codes
from tb_pastnet.core.statistics import MASK_ROWS, MOVED, STATISTICS, either_moved
from tb_pastnet.format.block import Block, OpenBlock, restore, restore_row
from tb_pastnet.reader.arrays import Flags, Integers

MOST_CELLS = 1 << 23
"""Records times channels of one series in memory: 144 MiB of codes."""

MOST_RECORDS = 1 << 18
"""Records of one series in memory, however few channels it has."""

TOGETHER = 1 << 22
"""Records times channels that are restored together."""

_Held = tuple[Block, Flags]
"""Records, and in which of them a mask changed."""


def join_open_blocks(
    blocks: Iterable[OpenBlock], channels: int, most_cells: int, largest: int
) -> tuple[Block, int]:
    """Restores and joins blocks in their order; the largest has so many cells. See `join_blocks`.

    With no cells in memory all records are left out.
    """
    if not most_cells:
        return concatenate([], channels), sum(len(block.steps) for block in blocks)
    if largest > TOGETHER:
        return join_by_rows([block.deflated() for block in blocks], channels, most_cells)
    return join_blocks(restored(blocks), channels, most_cells)


def restored(blocks: Iterable[OpenBlock]) -> Iterator[Block]:
    """Restores blocks, consecutive ones together as long as memory stays small."""
    group: list[OpenBlock] = []
    cells = 0
    for block in blocks:
        more = block.channels * len(block.steps)
        goes_on = not group or bool(
            group[-1].sequence[-1] < block.sequence[0] and group[-1].steps[-1] < block.steps[0]
        )
        if group and (cells + more > TOGETHER or not goes_on):
            yield restore(group)
            group, cells = [], 0
        group.append(block)
        cells += more
    if group:
        yield restore(group)


def join_blocks(
    blocks: Iterable[Block], channels: int, most_cells: int = MOST_CELLS
) -> tuple[Block, int]:
    """Joins blocks in their order; returns how many records were left out.

    If there are too many, records are left out evenly, but no change of a mask. The rule depends
    only on sequence numbers, not on the order of the blocks.
    """
    room = _room(channels, most_cells)
    held: list[_Held] = []
    total = count = last = 0
    stride = 1
    mask: Codes | None = None
    unkept: Codes | None = None
    each = iter(blocks)
    while (block := next(each, None)) is not None:
        total += len(block.steps)
        last = max(last, int(block.sequence[-1]))
        more, unkept = _thin(
            [(block, _mask_changes(block.codes[[*MASK_ROWS]], mask))], stride, unkept
        )
        held += more
        del more
        mask = block.codes[MASK_ROWS, -1]
        count += len(held[-1][0].steps)
        while count > room:
            if stride <= last:
                stride *= 2
                held, left = _thin(held, stride)
            else:
                # Only changes of a mask remain, too many even of those.
                held, left = _halve(held)
            unkept = left if unkept is None else _either(unkept, left)
            count = sum(len(kept.steps) for kept, _ in held)
        del block  # of a wide variable, the next one takes most of what a reader may
    remaining = [kept for kept, _ in held if len(kept.steps)]
    held.clear()
    return concatenate(remaining, channels), total - count


def join_by_rows(blocks: Sequence[OpenBlock], channels: int, most_cells: int) -> tuple[Block, int]:
    """The same of blocks that aren't restored, one statistic of a block at a time.

    Each statistic of the largest block takes 32 MiB, all of them together would take 288 MiB.
    """
    if not blocks:
        return concatenate([], channels), 0
    changed, mask = [], None
    for block in blocks:
        masks = np.stack([restore_row(block, row) for row in MASK_ROWS])
        changed.append(_mask_changes(masks, mask))
        mask = masks[:, -1].copy()
        del masks
    room = _room(channels, most_cells)
    sequences = [np.array(block.sequence, np.int64) for block in blocks]
    stays = _places(sequences, changed, room)
    heads = [block.head for block in blocks]
    steps, lags = (
        np.concatenate([np.array(column, np.int64) for column in own])
        for own in ([head.steps for head in heads], [head.lags for head in heads])
    )
    codes = np.empty((len(STATISTICS), np.count_nonzero(stays), channels), np.int16)
    edges = np.cumsum([0, *map(len, sequences)])
    _restore_chosen(blocks, np.split(stays, edges[1:-1]), codes)
    sequence = np.concatenate(sequences)
    chosen = Block(sequence[stays], steps[stays], (steps - lags)[stays], codes)
    return chosen, len(stays) - len(chosen.steps)


def _places(sequences: Sequence[Integers], changed: Sequence[Flags], room: int) -> Flags:
    """Which records of blocks `join_blocks` doesn't leave out."""
    numbers = np.concatenate(sequences)
    has_changed = np.concatenate(changed)
    held, stride, last, end = np.zeros(0, np.int64), 1, 0, 0
    for sequence in sequences:
        new = np.arange(end, end + len(sequence))
        end += len(sequence)
        last = max(last, int(sequence[-1]))
        held = np.append(held, new[has_changed[new] | (sequence % stride == 0)])
        while len(held) > room:
            if stride <= last:
                stride *= 2
                held = held[has_changed[held] | (numbers[held] % stride == 0)]
            else:
                held = held[::2]
    stays = np.zeros(len(numbers), bool)
    stays[held] = True
    return stays


def _restore_chosen(blocks: Sequence[OpenBlock], stays: Sequence[Flags], codes: Codes) -> None:
    """Fills `codes` with some records, each of which has what moved in those left out before it."""
    first, unkept = 0, None
    for block, flags in zip(blocks, stays, strict=True):
        last = first + int(flags.sum())
        some = slice(None) if flags.all() else flags
        for row in range(len(codes)):
            if row == MOVED:
                moved = restore_row(block, row)
                unkept = _add_unkept(moved, flags, unkept)
                codes[row, first:last] = moved[some]
                del moved
            elif last > first:
                codes[row, first:last] = restore_row(block, row)[some]
        first = last


def _add_unkept(moved: Codes, flags: Flags, unkept: Codes | None) -> Codes | None:
    """Adds what moved in records that are left out to the next one; returns that after the last."""
    for row, stays in enumerate(flags.tolist()):
        moved[row] = _either(moved[row], unkept)
        unkept = None if stays else moved[row]
    return None if unkept is None else unkept.copy()


def _room(channels: int, most_cells: int) -> int:
    """How many records may be in memory."""
    return max(min(most_cells // max(channels, 1), MOST_RECORDS), 1)


def _mask_changes(masks: Codes, previous: Codes | None) -> Flags:
    """In which records, (mask rows, records, channels), a mask isn't that of the one before."""
    changed = np.zeros(masks.shape[1], bool)
    changed[0] = previous is None
    for number, mask in enumerate(masks):
        changed[1:] |= (mask[1:] != mask[:-1]).any(axis=1)
        changed[0] |= previous is not None and bool((mask[0] != previous[number]).any())
    return changed


def _thin(
    held: Sequence[_Held], stride: int, unkept: Codes | None = None
) -> tuple[list[_Held], Codes | None]:
    stay = [changed | (block.sequence % stride == 0) for block, changed in held]
    return _choose_each(held, stay, unkept)


def _halve(held: Sequence[_Held]) -> tuple[list[_Held], Codes | None]:
    lengths = [len(block.steps) for block, _ in held]
    even = np.arange(sum(lengths)) % 2 == 0
    return _choose_each(held, np.split(even, np.cumsum(lengths)[:-1]))


def _choose_each(
    held: Sequence[_Held], stay: Sequence[Flags], unkept: Codes | None = None
) -> tuple[list[_Held], Codes | None]:
    """Some of the records, each of which also has what moved in those left out before it.

    Takes and returns what moved in records that are left out, before the first and after the last.
    """
    chosen = []
    for (block, changed), flags in zip(held, stay, strict=True):
        some = choose(block, flags)
        if unkept is not None or some is not block:
            moved = block.codes[MOVED].copy()
            unkept = _add_unkept(moved, flags, unkept)
            some.codes[MOVED] = moved[flags]
        chosen.append((some, changed[flags]))
    return chosen, unkept


def _either(first: Codes, second: Codes | None) -> Codes:
    return first if second is None else either_moved(first, second)


def concatenate(blocks: list[Block], channels: int) -> Block:
    """Joins blocks in the given order and takes them from the list; none make an empty one."""
    if not blocks:
        none = np.zeros(0, np.int64)
        return Block(none, none, none, np.zeros((len(STATISTICS), 0, channels), np.int16))
    if len(blocks) == 1:
        return blocks[0]
    sequence, steps, past_steps = (
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("sequence", "steps", "past_steps")
    )
    codes = np.empty((len(STATISTICS), len(steps), channels), np.int16)
    end = len(steps)
    # From the last one on: the memory of each is free for the next.
    while blocks:
        block = blocks.pop()
        codes[:, end - len(block.steps) : end] = block.codes
        end -= len(block.steps)
    return Block(sequence, steps, past_steps, codes)


def choose(records: Block, chosen: Flags | Integers) -> Block:
    """Some of the records, by flags or by positions; the same object if all are chosen."""
    rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    if len(rows) == len(records.steps) and bool((rows == np.arange(len(rows))).all()):
        return records
    return Block(
        records.sequence[rows],
        records.steps[rows],
        records.past_steps[rows],
        records.codes[:, rows],
    )
