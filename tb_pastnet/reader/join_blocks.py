"""Records of one variable, joined block by block without ever holding too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import KEPT, STATISTICS, TRAINABLE
from tb_pastnet.format.block import Block, OpenBlock, restore
from tb_pastnet.reader.arrays import Flags, Integers

MASK_ROWS = (KEPT, TRAINABLE)
"""The statistics that `join_blocks` looks at."""

MOST_CELLS = 1 << 24
"""Records times channels of one series that are held at once: 256 MiB of codes."""

_TOGETHER = 1 << 22


def restored(blocks: Iterable[OpenBlock]) -> Iterator[Block]:
    """Restores blocks, as many together as go on from one another and don't take much memory."""
    group: list[OpenBlock] = []
    cells = 0
    for block in blocks:
        more = block.channels * len(block.steps)
        goes_on = not group or bool(
            group[-1].sequence[-1] < block.sequence[0] and group[-1].steps[-1] < block.steps[0]
        )
        if group and (cells + more > _TOGETHER or not goes_on):
            yield restore(group)
            group, cells = [], 0
        group.append(block)
        cells += more
    if group:
        yield restore(group)


def join_blocks(
    blocks: Iterable[Block], channels: int, most_cells: int = MOST_CELLS
) -> tuple[Block, int]:
    """Joins blocks in their order, and tells how many records were left out.

    Where they are too many, records go evenly but no change of a mask. The rule looks at sequence
    numbers alone, so that the choice doesn't depend on the order in which the blocks come.
    """
    room = max(most_cells // max(channels, 1), 1)
    held: list[Block] = []
    changes: list[Flags] = []
    total = count = last = 0
    stride = 1
    mask: npt.NDArray[np.int16] | None = None
    for block in blocks:
        total += len(block.steps)
        last = max(last, int(block.sequence[-1]))
        held.append(block)
        count += len(block.steps)
        if count <= room and not changes:
            continue
        # Only where something has to go, and then from the first block on.
        for index in range(len(changes), len(held)):
            changed = _mask_changes(held[index], mask)
            mask = held[index].codes[MASK_ROWS, -1]
            stays = changed | (held[index].sequence % stride == 0)
            held[index] = choose(held[index], stays)
            changes.append(changed[stays])
        count = sum(len(kept.steps) for kept in held)
        while count > room:
            if stride <= last:
                stride *= 2
                _thin(held, changes, stride)
            else:
                # All that is left are changes of a mask, too many even of those.
                _halve(held, changes)
            count = sum(len(kept.steps) for kept in held)
    return concatenate(held, channels), total - count


def _mask_changes(block: Block, previous: npt.NDArray[np.int16] | None) -> Flags:
    masks = block.codes[MASK_ROWS,]
    changed = np.zeros(len(block.steps), bool)
    changed[1:] = (masks[:, 1:] != masks[:, :-1]).any(axis=(0, 2))
    changed[0] = previous is None or bool((masks[:, 0] != previous).any())
    return changed


def _thin(held: list[Block], changes: list[Flags], stride: int) -> None:
    for index, (block, changed) in enumerate(zip(held, changes, strict=True)):
        stays = changed | (block.sequence % stride == 0)
        held[index], changes[index] = choose(block, stays), changed[stays]


def _halve(held: list[Block], changes: list[Flags]) -> None:
    passed = 0
    for index, (block, changed) in enumerate(zip(held, changes, strict=True)):
        stays = (np.arange(len(block.steps)) + passed) % 2 == 0
        passed += len(block.steps)
        held[index], changes[index] = choose(block, stays), changed[stays]


def concatenate(blocks: Sequence[Block], channels: int) -> Block:
    """Joins blocks in the order given; none make an empty one."""
    if not blocks:
        none = np.zeros(0, np.int64)
        return Block(none, none, none, np.zeros((len(STATISTICS), 0, channels), np.int16))
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        np.concatenate([block.sequence for block in blocks]),
        np.concatenate([block.steps for block in blocks]),
        np.concatenate([block.past_steps for block in blocks]),
        np.concatenate([block.codes for block in blocks], axis=1),
    )


def choose(records: Block, chosen: Flags | Integers) -> Block:
    """Some of the records, by flags or by positions; the same object where it is all of them."""
    rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    if len(rows) == len(records.steps) and bool((rows == np.arange(len(rows))).all()):
        return records
    return Block(
        records.sequence[rows],
        records.steps[rows],
        records.past_steps[rows],
        records.codes[:, rows],
    )
