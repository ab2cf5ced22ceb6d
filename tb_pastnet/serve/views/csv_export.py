"""The pictures as CSV, for spreadsheets and scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.serve.store.series import Series
from tb_pastnet.serve.views.rows import Row
from tb_pastnet.serve.views.sparsity import Pruned

OVERVIEW = (
    "step", "layer", "channels", "moving", "reactivated", "settled", "frozen", "pruned",
    "violated", "nonfinite", "mean_delta", "pruned_weights", "prunable_weights",
)  # fmt: skip
LAYER = ("step", "past_step", "channel", "state", "violated", "relative_delta", *STATISTICS)

_STATES = (states.MOVING, states.REACTIVATED, states.SETTLED, states.FROZEN, states.PRUNED)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def harmless(name: str) -> str:
    """A name that no spreadsheet takes for a formula.

    Example:
        >>> harmless("=1+1"), harmless("conv1")
        ("'=1+1", 'conv1')
    """
    return "'" + name if name.startswith(_FORMULA) else name


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Writes CSV after RFC 4180.

    Not with Python's own module: that of 3.10 can't write a name that holds NUL.

    Example:
        >>> table(["name", "value"], [["a, b", None], ["c", 0.5]]).splitlines()
        ['name,value', '"a, b",', 'c,0.5']
    """
    return "".join(",".join(map(_cell, row)) + "\r\n" for row in (head, *rows))


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


class LayerLines(NamedTuple):
    """A layer in the overview.

    Attributes:
        name: its id.
        channels: their number.
        row: how many of them are in each state.
        pruned: its pruned weights.
    """

    name: str
    channels: int
    row: Row
    pruned: Pruned


def overview_rows(
    steps: npt.NDArray[np.int64], layers: Sequence[LayerLines]
) -> Iterator[list[Any]]:
    """A line for each step and layer, as in `OVERVIEW`.

    Args:
        steps: int64 (columns,).
        layers: in their order.
    """
    for at, step in enumerate(steps.tolist()):
        for name, channels, row, pruned in layers:
            counts = row.counts[at]
            yield [
                step,
                harmless(name),
                channels,
                *(int(counts[code]) for code in _STATES),
                int(row.violated[at]),
                int(row.nonfinite[at]),
                number(float(row.mean_delta[at])),
                _whole(float(pruned.counts[at])),
                pruned.prunable,
            ]


def layer_rows(
    series: Series, told: states.States, records: Sequence[int], channels: Sequence[int]
) -> Iterator[list[Any]]:
    """A line for each record and channel, as in `LAYER`.

    Args:
        series: the records.
        told: uint8 (records, channels), their states.
        records: which records.
        channels: which channels.
    """
    for at in records:
        values = dequantize(series.codes[:, at])
        delta = dequantize(states.relative_delta(series.codes[:, at]))
        for index in channels:
            state = int(told[at, index])
            yield [
                int(series.steps[at]),
                int(series.past_steps[at]),
                index,
                states.NAMES[state & states.STATE],
                int(bool(state & states.VIOLATED)),
                number(float(delta[index])),
                *(number(float(value)) for value in values[:, index]),
            ]


def number(value: float, digits: int = 4) -> str:
    """A number for people and spreadsheets; empty where it isn't known.

    Example:
        >>> number(0.123456), number(math.inf), number(math.nan)
        ('0.1235', 'inf', '')
    """
    if math.isfinite(value):
        return f"{value:.{digits}g}"
    return "" if math.isnan(value) else "inf"


def _whole(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0f}"
