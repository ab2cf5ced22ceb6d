"""The statistics of a block: their names, and which one predicts which.

A block of version 2 has a head for each plane, see docs/reference/record_format.md. Statistics can
thus be added or removed: a reader skips unknown ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tb_pastnet.core.statistics import COUNTS, STATISTICS, TABLE
from tb_pastnet.format import limits, varint

Rows = tuple[int, ...]

ROWS: Rows = tuple(range(len(STATISTICS)))
"""All statistics, as the rows of a block's codes."""

_NUMBERED = (
    "norm", "past_norm", "delta_norm", "delta_max", "changed", "nonfinite", "kept", "trainable",
    "nonfinite_count", "moved",
)  # fmt: skip
"""Names that are stored as a number, permanently; append only. Version 1 has eight."""

_STORED = tuple(f"{each.name}_count" if each.whole else each.name for each in TABLE)
"""Names of planes: a count that was rounded like a value had the name without `_count`."""


class Head(NamedTuple):
    """A plane's statistic, and the number of the plane that predicts it."""

    name: str
    predictor: int | None


class Layout(NamedTuple):
    """The planes of a block for this version: the row of each, None if it can't be used.

    `predicted` are pairs of rows: a statistic, and the one that its plane differs from.
    `rounded` are rows of counts that are stored as codes of values; `unknown` are names of the
    statistics that can't be used.
    """

    rows: tuple[int | None, ...]
    predicted: tuple[tuple[int, int], ...]
    rounded: tuple[int, ...]
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, heads: Sequence[Head]) -> Layout:
        """The layout that heads describe."""
        known_rows = {
            name: row for names in (STATISTICS, _STORED) for row, name in enumerate(names)
        }
        rows: list[int | None] = []
        predicted = []
        for name, predictor in heads:
            row = known_rows.get(name)
            base = None if predictor is None else known_rows.get(heads[predictor].name)
            if row is not None and base is not None:
                predicted.append((row, base))
            rows.append(row if predictor is None or base is not None else None)
        unknown = tuple(head.name for head, row in zip(heads, rows, strict=True) if row is None)
        named = {head.name for head in heads}
        rounded = tuple(row for row in COUNTS if STATISTICS[row] in named)
        return cls(tuple(rows), tuple(predicted), rounded, unknown)


_EIGHT = [Head(name, {1: 0, 3: 2}.get(plane)) for plane, name in enumerate(_NUMBERED[:8])]
VERSION_1 = Layout.of(_EIGHT)
"""Blocks without heads: past_norm predicted by norm, delta_max by delta_norm."""

WRITTEN = Layout.of(
    [
        Head(name, STATISTICS.index(each.near) if each.near else None)
        for name, each in zip(_STORED, TABLE, strict=True)
    ]
)
"""All statistics, in the order of `TABLE`, in which each follows the one that it is near to."""


def encode_heads() -> bytes:
    """The heads of `WRITTEN`, behind their number of bytes."""
    heads = bytearray()
    predictors = dict(WRITTEN.predicted)
    for row, name in enumerate(_STORED):
        number = _NUMBERED.index(name) + 1 if name in _NUMBERED else 0
        heads += varint.encode([2 * number + (row in predictors)])
        if not number:
            text = name.encode()
            heads += varint.encode([len(text)]) + text
        if row in predictors:
            heads += varint.encode([predictors[row]])
    return varint.encode([len(heads)]) + heads


def read_layout(reader: varint.Reader) -> Layout:
    """Reads heads, behind their number of bytes; raises DamagedRecord."""
    return _decoded(reader.take(reader.number(limits.MAX_HEADS)))


@lru_cache(maxsize=16)
def _decoded(data: bytes) -> Layout:
    """The layout of heads, cached: nearly all blocks have the same."""
    reader = varint.Reader(data)
    heads: list[Head] = []
    while reader.left:
        number, predicted = divmod(reader.number(), 2)
        if number:
            name = _NUMBERED[number - 1] if number <= len(_NUMBERED) else f"number {number}"
        else:
            name = reader.take(reader.number()).decode("utf-8", "backslashreplace")
        predictor = reader.number() if predicted else None
        if predictor is not None and not (
            predictor < len(heads) and heads[predictor].predictor is None
        ):
            raise varint.damaged("a plane predicted by an earlier one", f"plane {predictor}")
        heads.append(Head(name, predictor))
    if len({head.name for head in heads}) < len(heads):
        raise varint.damaged("each statistic once", "one twice")
    return Layout.of(heads)


@lru_cache(maxsize=64)
def wanted(layout: Layout, rows: Rows) -> tuple[bool, ...]:
    """Which planes are needed for some rows."""
    needed = {*rows, *(base for row, base in layout.predicted if row in rows)}
    return tuple(row in needed for row in layout.rows)
