"""Columns into DataFrames; pandas is imported only here, and only when a DataFrame is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tb_pastnet.reader.columns import Columns, Labels

if TYPE_CHECKING:
    from pandas import DataFrame


def table(columns: Columns) -> DataFrame:
    """Makes a DataFrame; texts are categorical: a byte or two a row.

    Args:
        columns: of the table.

    Raises:
        ImportError: pandas isn't installed.
    """
    pandas = _pandas()
    return pandas.DataFrame({name: _values(pandas, one) for name, one in columns.items()})


def stacked(tables: Mapping[str, DataFrame], name: str) -> DataFrame:
    """Puts tables below one another, with a first column that tells which one a row is of.

    Args:
        tables: of the same columns, at least one.
        name: of the new column.

    Raises:
        ImportError: pandas isn't installed.
    """
    pandas = _pandas()
    lengths = [len(one) for one in tables.values()]
    joined = pandas.concat(list(tables.values()), ignore_index=True)
    which = Labels(tuple(tables), np.repeat(np.arange(len(tables)), lengths))
    joined.insert(0, name, _values(pandas, which))
    return joined


def _values(pandas: Any, column: Any) -> Any:
    if isinstance(column, Labels):
        return pandas.Categorical.from_codes(column.codes, categories=list(column.names))
    return column


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ImportError(
            "Could not make a DataFrame: expected pandas to be installed, got none. "
            'Run: pip install "tb-pastnet[pandas]"'
        ) from error
    return pandas
