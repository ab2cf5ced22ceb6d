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
from tb_pastnet.reader.rows import Row
from tb_pastnet.reader.series import Series
from tb_pastnet.reader.sparsity import Pruned

OVERVIEW = (
    "step", "layer", "channels", "moving", "reactivated", "settled", "frozen", "pruned",
    "violated", "nonfinite", "mean_delta", "pruned_weights", "prunable_weights",
)  # fmt: skip
LAYER = ("step", "past_step", "channel", "state", "violated", "relative_delta", *STATISTICS)

_STATES = (states.MOVING, states.REACTIVATED, states.SETTLED, states.FROZEN, states.PRUNED)
_LINES = 1 << 14
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
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if any(mark in value for mark in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


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


def layer_table(
    series: Series, told: states.States, records: range, channels: range
) -> Iterator[str]:
    """The lines of one variable: a head, then one for each record and channel, as in `LAYER`.

    No cell needs quotes, and few numbers are different: each is written once.

    Args:
        series: the records.
        told: uint8 (records, channels), their states.
        records: which records.
        channels: which channels.

    Yields:
        Some lines at a time.
    """
    yield table(LAYER, [])
    some = max(1, _LINES // max(len(channels), 1))
    for first in records[::some]:
        piece = slice(first, min(first + some, records.stop)), slice(channels.start, channels.stop)
        lines = zip(*_layer_cells(series, told, *piece), strict=True)
        yield "".join(f"{','.join(line)}\r\n" for line in lines)


def _layer_cells(
    series: Series, told: states.States, records: slice, channels: slice
) -> Iterator[list[str]]:
    """The columns of `LAYER`, record by record."""
    width, state = channels.stop - channels.start, told[records, channels]
    for steps in (series.steps[records], series.past_steps[records]):
        yield [text for step in steps.tolist() for text in (str(step),) * width]
    yield [str(channel) for channel in range(channels.start, channels.stop)] * len(state)
    yield [states.NAMES[code] for code in (state & np.uint8(states.STATE)).ravel().tolist()]
    yield ["1" if held else "0" for held in (state & np.uint8(states.VIOLATED)).ravel().tolist()]
    codes = series.codes[:, records, channels]
    for row in (states.relative_delta(codes), *codes):
        known, which = np.unique(row, return_inverse=True)
        texts = [number(value) for value in dequantize(known).tolist()]
        yield [texts[at] for at in which.ravel().tolist()]


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
