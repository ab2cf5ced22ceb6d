"""Records of several variables at once, for what is computed of all of them.

The variables of a network are recorded together, so their records have the same steps. Side by side
they are one wide array: a network of hundreds of small layers takes hardly more time than one layer
of as many channels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_pastnet.format.block import Block, Heads, OpenBlock, restore_beside
from tb_pastnet.format.layout import Rows
from tb_pastnet.format.tags import variable_of
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.cells import CellBudget
from tb_pastnet.reader.joined_blocks import TOGETHER, concatenate
from tb_pastnet.reader.runs import SeriesPart
from tb_pastnet.reader.series import (
    OpenedPart,
    RecordSeries,
    join_part,
    join_parts,
    open_parts,
)
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

_SMALL = 1 << 20
"""Records times channels of a variable up to which it is read together with others."""

_Blocks = list[list[OpenBlock]]
"""Those of a variable, by lineage."""


@dataclass(frozen=True, eq=False)
class WideSeries:
    """The records of variables, channels side by side; variables of one width are neighbours."""

    variables: tuple[str, ...]
    edges: Integers  # (variables + 1,), the first channel of each, and the number of all
    records: RecordSeries  # of all

    def of(self, number: int) -> RecordSeries:
        """The records of one of the variables."""
        return self.records.part(slice(None), slice(*self.edges[number : number + 2].tolist()))


class VariableToRead(NamedTuple):
    """A variable that is read, see `make_series`."""

    name: str
    parts: Sequence[SeriesPart]
    channels: int
    budget: CellBudget


class _Opened(NamedTuple):
    variable: VariableToRead
    parts: list[OpenedPart]
    blocks: _Blocks


def make_wide_series(
    variables: Iterable[VariableToRead],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    *,
    withheld: Sequence[SeriesName] = (),
    sampled: bool = False,
    rows: Rows,
) -> Iterator[WideSeries]:
    """Decodes and joins the records of variables, side by side where these have the same steps."""
    heads: Heads = {}
    alike: dict[Hashable, list[_Opened]] = {}
    cells = 0
    for variable in variables:
        name, parts, channels, budget = variable
        opened = open_parts(parts, readings, channels, budget, withheld, rows, heads)
        if not _is_small(opened, channels):
            joined = [join_part(own, channels) for own in opened]
            records = join_parts(opened, joined, channels, sampled)
            yield WideSeries((name,), np.array([0, channels]), records)
            continue
        blocks = [list(own.blocks) for own in opened]
        alike.setdefault(_key(opened, blocks), []).append(_Opened(variable, opened, blocks))
        cells += channels * sum(len(block.steps) for own in blocks for block in own)
        if cells > TOGETHER:
            yield from (_joined(group, sampled) for group in alike.values())
            alike, cells = {}, 0
    yield from (_joined(group, sampled) for group in alike.values())


def _is_small(opened: Sequence[OpenedPart], channels: int) -> bool:
    """Whether none of its records are left out, and all of its blocks may be in memory."""
    has_lineages = all(own.part.lineage is not None for own in opened)
    return has_lineages and channels > 0 and sum(own.cells for own in opened) <= _SMALL


def _key(opened: Sequence[OpenedPart], blocks: _Blocks) -> Hashable:
    """Equal for variables whose series differ only in their codes."""
    return tuple(
        (
            own.part.tb_run,
            own.is_withheld,
            _rate_group(own.part),
            tuple(id(block.head) for block in part),
            frozenset(own.lost.items()),
            frozenset(own.noted.items()),
        )
        for own, part in zip(opened, blocks, strict=True)
    )


def _rate_group(part: SeriesPart) -> int | None:
    entry = part.lineage.described.get(variable_of(part.tag) or "") if part.lineage else None
    return entry.group if entry else None


def _joined(group: list[_Opened], sampled: bool) -> WideSeries:
    """The series of variables with equal keys."""
    group.sort(key=lambda opened: opened.variable.channels)
    edges = np.cumsum([0, *(opened.variable.channels for opened in group)])
    channels = int(edges[-1])
    joined: list[tuple[Block, int]] = []
    for lineage, blocks in enumerate(group[0].blocks):
        beside = [opened.blocks[lineage] for opened in group]
        joined.append((restore_beside(beside) if blocks else concatenate([], channels), 0))
    names = tuple(opened.variable.name for opened in group)
    return WideSeries(names, edges, join_parts(group[0].parts, joined, channels, sampled))
