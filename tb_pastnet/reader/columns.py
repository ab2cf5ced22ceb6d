"""Tables by column: what DataFrames and exports are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Labels(NamedTuple):
    """A column of texts of which many are equal.

    Attributes:
        names: those that there are, no two of them equal.
        codes: integers (rows,), the position of each row's name.
    """

    names: tuple[str, ...]
    codes: npt.NDArray[Any]


Column = npt.NDArray[Any] | Labels

Columns = Mapping[str, Column]
"""By name, in their order, all of one length."""


def labels(texts: Sequence[str]) -> Labels:
    """Makes a column of texts.

    Example:
        >>> labels(["a", "b", "a"]).codes.tolist()
        [0, 1, 0]
    """
    names = tuple(dict.fromkeys(texts))
    at = {name: number for number, name in enumerate(names)}
    return Labels(names, np.array([at[text] for text in texts], np.int32))


def repeated(column: Labels, times: int) -> Labels:
    """The same rows again and again.

    Example:
        >>> repeated(labels(["a", "b"]), 2).codes.tolist()
        [0, 1, 0, 1]
    """
    return Labels(column.names, np.tile(column.codes, times))


def occurring(column: Labels) -> Labels:
    """The same column with those names alone that stand in it, in the order of the alphabet.

    Example:
        >>> occurring(Labels(("no data", "moving", "frozen"), np.array([1, 2, 1])))
        Labels(names=('frozen', 'moving'), codes=array([1, 0, 1], dtype=int32))
    """
    found = np.flatnonzero(np.bincount(column.codes, minlength=len(column.names)))
    names = sorted(column.names[at] for at in found)
    codes = np.zeros(len(column.names), np.int32)
    codes[found] = [names.index(column.names[at]) for at in found]
    return Labels(tuple(names), codes[column.codes])
