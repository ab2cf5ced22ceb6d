"""Records of several bundles at once, for what is computed of all of them.

The variables of a network are recorded together, so their records have the same steps. Side by side
they are one wide array: a network of hundreds of small layers takes hardly more time than one layer
of as many channels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tb_pastnet.format.block import Block, Heads, OpenBlock, restore_beside
from tb_pastnet.format.layout import Rows
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.bundles import Bundle
from tb_pastnet.reader.cells import CellBudget
from tb_pastnet.reader.joined_blocks import TOGETHER, concatenate
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series import (
    OpenedPart,
    RecordSeries,
    join_bundle,
    join_parts,
    open_parts,
    rates_of,
)
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

_SMALL = 1 << 20
"""Records times channels of a bundle up to which it is read together with others."""

_Blocks = list[list[OpenBlock]]
"""Those of a bundle, by lineage."""


@dataclass(frozen=True, eq=False)
class WideSeries:
    """The records of variables, channels side by side."""

    variables: tuple[str, ...]
    edges: Integers  # (variables + 1,), the first channel of each, and the number of all
    records: RecordSeries  # of all
    lineages: tuple[LineageHead | None, ...]  # the writers

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self.records.size

    @property
    def notes(self) -> Notes:
        """What could not be read, and why."""
        return self.records.notes

    def of(self, number: int) -> RecordSeries:
        """The records of one of the variables."""
        channels = slice(*self.edges[number : number + 2].tolist())
        own = self.records.part(slice(None), channels)
        rates = rates_of(self.variables[number], self.lineages, own.writers, own.steps)
        return replace(own, learning_rates=rates)


class _Opened(NamedTuple):
    bundle: Bundle
    parts: list[OpenedPart]
    blocks: _Blocks


def make_wide_series(
    bundles: Iterable[tuple[Bundle, CellBudget]],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    *,
    withheld: Sequence[SeriesName] = (),
    sampled: bool = False,
    rows: Rows,
) -> Iterator[WideSeries]:
    """Decodes and joins the records of bundles, side by side where these have the same steps."""
    heads: Heads = {}
    alike: dict[Hashable, list[_Opened]] = {}
    cells = 0
    for bundle, budget in bundles:
        opened = open_parts(bundle, readings, budget, withheld, rows, heads)
        if not _is_small(opened, bundle.channels):
            records = join_bundle(bundle, opened, sampled)
            yield _wide([bundle], opened, records)
            continue
        blocks = [list(own.blocks) for own in opened]
        alike.setdefault(_key(opened, blocks), []).append(_Opened(bundle, opened, blocks))
        cells += sum(block.channels * len(block.steps) for own in blocks for block in own)
        if cells > TOGETHER:
            yield from (_joined(group, sampled) for group in alike.values())
            alike, cells = {}, 0
    yield from (_joined(group, sampled) for group in alike.values())


def _is_small(opened: Sequence[OpenedPart], channels: int) -> bool:
    """Whether none of its records are left out, and all of its blocks may be in memory."""
    has_lineages = all(own.part.lineage is not None for own in opened)
    return has_lineages and channels > 0 and sum(own.cells for own in opened) <= _SMALL


def _key(opened: Sequence[OpenedPart], blocks: _Blocks) -> Hashable:
    """Equal for bundles whose series differ only in their codes."""
    return tuple(
        (
            own.part.tb_run,
            own.is_withheld,
            tuple(id(block.head) for block in part),
            frozenset(own.lost.items()),
            frozenset(own.noted.items()),
        )
        for own, part in zip(opened, blocks, strict=True)
    )


def _joined(group: list[_Opened], sampled: bool) -> WideSeries:
    """The series of bundles with equal keys."""
    # Neighbours of one width are counted at once.
    group.sort(key=lambda opened: sorted(opened.bundle.widths))
    channels = sum(opened.bundle.channels for opened in group)
    joined: list[tuple[Block, int]] = []
    for lineage, blocks in enumerate(group[0].blocks):
        beside = [opened.blocks[lineage] for opened in group]
        joined.append((restore_beside(beside) if blocks else concatenate([], channels), 0))
    bundles, parts = [opened.bundle for opened in group], group[0].parts
    return _wide(bundles, parts, join_parts(bundles[0].names[0], parts, joined, channels, sampled))


def _wide(
    bundles: Sequence[Bundle], parts: Sequence[OpenedPart], records: RecordSeries
) -> WideSeries:
    names = tuple(name for bundle in bundles for name in bundle.names)
    edges = np.cumsum([0, *(width for bundle in bundles for width in bundle.widths)])
    return WideSeries(names, edges, records, tuple(own.part.lineage for own in parts))
