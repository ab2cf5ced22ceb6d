"""Tables by column, for DataFrames, the CSV of the tab and exports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame

_ROWS = 1 << 14
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Labels(NamedTuple):
    """A column of texts, many of them equal."""

    names: tuple[str, ...]  # the distinct texts
    codes: npt.NDArray[Any]  # integers (rows,), the position of each row's name

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.codes)


Column = npt.NDArray[Any] | Labels

Columns = Mapping[str, Column]
"""By name, in their order, all of one length."""


def labels(texts: Sequence[str]) -> Labels:
    """Makes a column of texts."""
    names = tuple(dict.fromkeys(texts))
    codes = {name: number for number, name in enumerate(names)}
    return Labels(names, np.array([codes[text] for text in texts], np.int32))


def repeated(column: Labels, times: int) -> Labels:
    """The same rows again and again."""
    return Labels(column.names, np.tile(column.codes, times))


def occurring(column: Labels) -> Labels:
    """The same column with only the names that occur, in alphabetical order."""
    used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.names)))
    names = sorted(column.names[code] for code in used)
    codes = np.zeros(len(column.names), np.int32)
    codes[used] = [names.index(column.names[code]) for code in used]
    return Labels(tuple(names), codes[column.codes])


def to_dataframe(columns: Columns) -> DataFrame:
    """Makes a DataFrame; texts are categorical: a byte or two per row."""
    pandas = _pandas()
    return pandas.DataFrame({name: _series(pandas, column) for name, column in columns.items()})


def stacked(tables: Mapping[str, Columns], name: str) -> Columns:
    """Puts tables of the same columns below one another; no columns without tables.

    A first column of this name identifies the table of each row.
    """
    if not tables:
        return {}
    lengths = [max(map(len, table.values()), default=0) for table in tables.values()]
    origin = Labels(tuple(tables), np.repeat(np.arange(len(tables)), lengths))
    parts = list(tables.values())
    joined = {column: _joined([part[column] for part in parts]) for column in parts[0]}
    return {name: origin, **joined}


def _joined(columns: Sequence[Any]) -> Column:
    """Columns of one kind below one another."""
    if not isinstance(columns[0], Labels):
        return np.concatenate(columns)
    names = tuple(dict.fromkeys(chain(*(column.names for column in columns))))
    places = {name: place for place, name in enumerate(names)}
    codes = [
        np.array([places[name] for name in column.names], np.int32)[column.codes]
        for column in columns
    ]
    return Labels(names, np.concatenate(codes))


def _series(pandas: Any, column: Column) -> Any:
    if isinstance(column, Labels):
        return pandas.Categorical.from_codes(column.codes, categories=list(column.names))
    return column


def _pandas() -> Any:
    try:
        import pandas  # only here, for DataFrames
    except ModuleNotFoundError as error:
        raise ImportError(
            "Could not make a DataFrame: expected pandas to be installed, got none. "
            'Run: pip install "tb-pastnet[pandas]"'
        ) from error
    return pandas


def csv_pieces(
    tables: Iterable[Columns], digits: str = "", formats: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Writes tables of the same columns, at least one, below one another as CSV after RFC 4180.

    Python's csv module isn't used: in 3.10 it can't write a name with NUL. A name that a
    spreadsheet would take for a formula begins with an apostrophe.

    `digits` is the format of fractional numbers, such as ".4g", except for columns in `formats`; by
    default numbers read back exactly. NaN is empty.
    """
    formats = formats or {}
    for number, columns in enumerate(tables):
        if not number:
            yield ",".join(columns) + "\r\n"
        rows = max(map(len, columns.values()), default=0)
        for start in range(0, rows, _ROWS):
            part = slice(start, start + _ROWS)
            cells = [
                _cells(column, part, formats.get(name, digits)) for name, column in columns.items()
            ]
            yield "".join(f"{','.join(line)}\r\n" for line in zip(*cells, strict=True))


def _cells(column: Column, rows: slice, digits: str) -> list[str]:
    """Some rows of a column; equal texts and numbers are formatted once."""
    if isinstance(column, Labels):
        names = [_quoted(harmless(name)) for name in column.names]
        return [names[code] for code in column.codes[rows].tolist()]
    values = column[rows]
    if values.dtype.kind == "b":
        return ["1" if flag else "0" for flag in values.tolist()]
    if values.dtype.kind != "f":
        return list(map(str, values.tolist()))
    different, codes = np.unique(values, return_inverse=True)
    # For single precision the fewest digits that identify the number.
    single = different.dtype == np.float32
    texts = [number(value, digits) for value in (different if single else different.tolist())]
    return [texts[index] for index in codes.ravel().tolist()]


def harmless(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return "'" + name if name.startswith(_FORMULA) else name


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def number(value: float, digits: str = "") -> str:
    """A number as text, in a format; empty if unknown."""
    if math.isfinite(value):
        return f"{value:{digits}}" if digits else str(value).removesuffix(".0")
    return "" if math.isnan(value) else "inf"
