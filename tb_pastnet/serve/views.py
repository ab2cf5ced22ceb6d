"""What the pictures show, computed from records: pure functions on arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import pooling, states
from tb_pastnet.core.quantize import Codes, dequantize
from tb_pastnet.core.statistics import KEPT, NONFINITE, STATISTICS, TRAINABLE
from tb_pastnet.serve.series import Series

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SLAB = 1 << 20
_RATE_FACTOR = 1.5
_MOST_EVENTS = 256
_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Movement:
    """State and relative delta of a variable.

    Attributes:
        states: uint8 (records, channels), see `core.states`.
        delta: int16 (records, channels), codes of the relative delta, see `core.quantize`.
    """

    states: states.States
    delta: Codes


@dataclass(frozen=True, eq=False)
class Row:
    """A layer in the overview, a number a column.

    Attributes:
        counts: uint32 (columns, 6), channels in each state.
        violated: uint32 (columns,), channels that moved though held.
        nonfinite: uint32 (columns,), channels with NaN or infinity.
        mean_delta: float32 (columns,), mean over moving channels of the relative delta, each
            taken as 1 at most; NaN where none moves.
    """

    counts: npt.NDArray[np.uint32]
    violated: npt.NDArray[np.uint32]
    nonfinite: npt.NDArray[np.uint32]
    mean_delta: npt.NDArray[np.float32]


def _shares() -> npt.NDArray[np.float32]:
    """The relative delta of each code, 1 at most, by the code's bits."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    return np.minimum(dequantize(codes), 1.0).astype(np.float32)


_SHARE_OF_CODE = _shares()


def movement(series: Series, *, measured: bool, threshold: float) -> Movement:
    """Tells the state and the relative delta of each record and channel.

    Args:
        series: the records.
        measured: whether channels of zeros count as pruned without a mask (kernels only).
        threshold: relative delta under which a channel is quiet.
    """
    _, records, channels = series.codes.shape
    state = np.empty((records, channels), np.uint8)
    delta = np.empty((records, channels), np.int16)
    # In slabs of channels: what is computed in between stays in the processor's cache.
    wide = max(_SLAB // max(records, 1), 1)
    for at in range(0, channels, wide):
        codes = series.codes[:, :, at : at + wide]
        state[:, at : at + wide] = states.channel_states(
            codes, series.steps, series.past_steps, measured=measured, threshold=threshold
        )
        delta[:, at : at + wide] = states.relative_delta(codes)
    return Movement(state, delta)


def row(moves: Movement, steps: Integers, edges: Integers) -> Row:
    """Counts the channels in each state, column by column.

    Args:
        moves: of one variable.
        steps: int64 (records,), its steps.
        edges: int64 (columns,), the first step of each column; earlier records go to the first.
    """
    columns, channels = len(edges), moves.states.shape[1]
    first = np.searchsorted(steps, edges)
    first[:1] = 0
    filled = first < np.append(first[1:], len(steps))
    counts = np.zeros((columns, len(states.NAMES)), np.uint32)
    counts[:, states.NO_DATA] = channels
    violated, nonfinite = np.zeros((2, columns), np.uint32)
    mean_delta = np.full(columns, np.nan, np.float32)
    if filled.any() and channels:
        pooled = pooling.pool_states(moves.states, first[filled])
        delta = pooling.pool_delta(moves.delta, first[filled])
        plain = pooled & np.uint8(states.STATE)
        for code in range(len(states.NAMES)):
            counts[filled, code] = np.count_nonzero(plain == code, axis=1)
        violated[filled] = np.count_nonzero(pooled & states.VIOLATED, axis=1)
        nonfinite[filled] = np.count_nonzero(pooled & states.NONFINITE, axis=1)
        mean_delta[filled] = _mean_of_moving(plain, delta)
    return Row(counts, violated, nonfinite, mean_delta)


def _mean_of_moving(plain: states.States, delta: Codes) -> npt.NDArray[np.float32]:
    shares = _SHARE_OF_CODE[delta.view(np.uint16)]
    counted = (plain == states.MOVING) & ~np.isnan(shares)
    number = np.count_nonzero(counted, axis=1).astype(np.float64)
    number[number == 0] = np.nan
    total: Floats = np.where(counted, shares, 0).sum(axis=1, dtype=np.float64)
    mean: npt.NDArray[np.float32] = (total / number).astype(np.float32)
    return mean


def events(series: Series) -> list[dict[str, Any]]:
    """What happened to a layer: masks changed, the learning rate changed, training restarted.

    Args:
        series: the records.

    Returns:
        Step, kind ("trainable", "learning_rate" or "restart") and a text of each, in order. A
        learning rate that glides is told once for each factor of 1.5.
    """
    found = [*_restarts(series), *_rates(series), *_masks(series)]
    return sorted(found, key=lambda event: event["step"])[:_MOST_EVENTS]


def _event(step: np.int64, kind: str, text: str) -> dict[str, Any]:
    return {"step": int(step), "kind": kind, "text": text}


def _restarts(series: Series) -> list[dict[str, Any]]:
    at = np.flatnonzero(np.diff(series.writers)) + 1
    return [_event(series.steps[i], "restart", "training was resumed here") for i in at]


def _rates(series: Series) -> list[dict[str, Any]]:
    found = []
    last = math.nan
    for step, rate in zip(series.steps, series.learning_rates.tolist(), strict=True):
        if not math.isfinite(rate) or rate == last:
            continue
        if math.isnan(last):
            last = rate
        elif rate <= 0 or last <= 0 or max(rate / last, last / rate) >= _RATE_FACTOR:
            found.append(_event(step, "learning_rate", f"learning rate {last:.3g} → {rate:.3g}"))
            last = rate
    return found


def _masks(series: Series) -> list[dict[str, Any]]:
    masks = series.codes[[KEPT, TRAINABLE]]
    at = np.flatnonzero((masks[:, 1:] != masks[:, :-1]).any(axis=(0, 2))) + 1
    found = []
    for i in at[:_MOST_EVENTS]:
        kept, trainable = dequantize(masks[:, i])
        pruned, held = int((kept == 0).sum()), int((trainable == 0).sum())
        text = f"{held - pruned} of {len(kept)} channels frozen, {pruned} pruned"
        if 0 < trainable.mean() < 1 and held in (0, len(kept)):
            text += f", {100 * trainable.mean():.3g} % of weights trainable"
        found.append(_event(series.steps[i], "trainable", text))
    return found


def channel(series: Series, moves: Movement, index: int) -> dict[str, Any]:
    """All that is known of one channel, as JSON values.

    Args:
        series: the records.
        moves: their states and relative deltas.
        index: the channel, from 0.

    Returns:
        Lists of one value a record; what JSON has no number for is None.
    """
    state = moves.states[:, index]
    plain = state & states.STATE
    values = dequantize(series.codes[:, :, index])
    values[NONFINITE] = np.rint(values[NONFINITE])
    at = np.flatnonzero(np.diff(plain)) + 1
    return {
        "steps": series.steps.tolist(),
        "past_steps": series.past_steps.tolist(),
        "state": [states.NAMES[code] for code in plain],
        "violated": ((state & states.VIOLATED) != 0).tolist(),
        "relative_delta": numbers(dequantize(moves.delta[:, index])),
        **{name: numbers(values[i]) for i, name in enumerate(STATISTICS)},
        "changes": [
            {
                "step": int(series.steps[i]),
                "from": states.NAMES[plain[i - 1]],
                "to": states.NAMES[plain[i]],
            }
            for i in at
        ],
    }


def numbers(values: Floats) -> list[float | None]:
    """Values for people: four digits, None where JSON has no number.

    Example:
        >>> numbers(np.array([0.0, 1.0, 0.123456, np.inf, np.nan]))
        [0.0, 1.0, 0.1235, None, None]
    """
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]


def narrow(series: Series, index: int) -> Series:
    """The records of one channel alone."""
    return replace(series, codes=series.codes[:, :, index : index + 1])


def stack(rows: Sequence[Row], columns: int) -> dict[str, npt.NDArray[Any]]:
    """The rows of an overview as arrays with the layers first.

    Args:
        rows: any number of them, 0 included.
        columns: how many columns each has.
    """
    none = np.zeros(columns, np.uint32)
    counts = np.zeros((columns, len(states.NAMES)), np.uint32)
    blank = Row(counts, none, none, np.zeros(columns, np.float32))
    # One row too many, taken off again: numpy can't stack nothing.
    return {
        field.name: np.stack([getattr(one, field.name) for one in (*rows, blank)])[:-1]
        for field in fields(Row)
    }
