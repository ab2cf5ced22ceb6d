"""Columns into DataFrames; pandas is imported only here, and only when a DataFrame is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame


def table(columns: Mapping[str, Any]) -> DataFrame:
    """Makes a DataFrame.

    Args:
        columns: by name, all of one length.

    Raises:
        ImportError: pandas isn't installed.
    """
    return _pandas().DataFrame(dict(columns))


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
    joined.insert(0, name, labels(list(tables), np.repeat(np.arange(len(tables)), lengths)))
    return joined


def labels(names: Sequence[str], which: npt.NDArray[Any]) -> Any:
    """A column of few names that repeat: a byte or two a row.

    Args:
        names: those that there are, in their order; no two are equal.
        which: int (rows,), the position of each row's name.

    Raises:
        ImportError: pandas isn't installed.
    """
    return _pandas().Categorical.from_codes(which, categories=list(names))


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ImportError(
            "Could not make a DataFrame: expected pandas to be installed, got none. "
            'Run: pip install "tb-pastnet[pandas]"'
        ) from error
    return pandas
