"""State and relative delta of a variable's records: a fifth of the bytes, all of the picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.account import Account
from tb_pastnet.core.quantize import Codes, dequantize
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, KEPT, TRAINABLE
from tb_pastnet.format.block import ROWS
from tb_pastnet.format.description import Variable
from tb_pastnet.reader.marks import Marks, find_marks, join_marks, pruned_weights
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series import Series
from tb_pastnet.reader.threads import Each, in_turn

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Event = dict[str, Any]

_KERNEL = "kernel"
_NO_STEPS = np.zeros(0, np.int64)
_SLAB = 1 << 18
_RATE_FACTOR = 1.5

MOVING_ROWS = tuple(row for row in ROWS if row != DELTA_MAX)
"""The statistics that a movement is made from; only its marks look at the largest change."""

AUDITED_ROWS = tuple(row for row in MOVING_ROWS if row != CHANGED)
"""The same where the writer itself looked for held weights that moved: nothing is marked."""

MOST_EVENTS = 256
"""Events of a layer that are told."""


@dataclass(frozen=True, eq=False)
class Movement:
    """What the pictures of a variable are drawn from, for every threshold.

    Attributes:
        steps: int64 (records,), increasing.
        past_steps: int64 (records,), of the value that each is compared with.
        wall_times: float64 (records,), NaN where unknown.
        learning_rates: float64 (records,), NaN where unknown.
        unsettled: uint8 (records, channels), states with none settled; see `told`.
        delta: int16 (records, channels), codes of the relative delta.
        marks: channels that moved although all of them was held.
        pruned: float64 (records,), weights that the kept mask holds at zero, by the shares.
        partial: float64 (records,), weights of channels of which it holds a part: where there are
            none, `pruned` is exact.
        account: what became of all records.
        notes: what could not be read, and why.
        events: masks changed, learning rate changed, training resumed; see `events`. Left out
            where nobody asks for them.
    """

    steps: Integers
    past_steps: Integers
    wall_times: Floats
    learning_rates: Floats
    unsettled: states.States
    delta: Codes
    marks: Marks
    pruned: Floats
    partial: Floats
    account: Account
    notes: Notes
    events: tuple[Event, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        whole = self.unsettled.nbytes + self.delta.nbytes + self.marks.size
        return whole + 6 * self.steps.nbytes

    def told(self, threshold: float) -> states.States:
        """The states, uint8 (records, channels), where quiet means under this relative delta."""
        return states.settle(self.unsettled, self.delta, threshold=threshold)


def make_movement(
    series: Series,
    variable: Variable,
    commanded: Integers | None = _NO_STEPS,
    *,
    seen: Flags | None = None,
    each: Each = in_turn,
) -> Movement:
    """Tells the state and the relative delta of each record and channel.

    Args:
        series: the records.
        variable: whose. In kernels alone channels of zeros count as pruned without a mask.
        commanded: int64 (changes,), increasing: the steps at which its kept mask changed, as far as
            they are known. Weights that were held and are pruned then don't violate anything.
            None: the writer itself looked for held weights that moved, so that none are marked.
        seen: of a kernel, as from `states.seen` of all its channels; None: these are all.
        each: how some channels after the other are dealt with.
    """
    calm = np.uint8(0xFF) if commanded is None else _calm(series, commanded)
    _, records, channels = series.codes.shape
    state = np.empty((records, channels), np.uint8)
    delta = np.empty((records, channels), np.int16)
    measured = measured_in(series, variable) if seen is None else seen
    # In slabs of channels: what is computed in between stays small.
    wide = max(_SLAB // max(records, 1), 1)

    def slab(at: int) -> tuple[Marks, tuple[Floats, Floats]]:
        codes = series.codes[:, :, at : at + wide]
        delta[:, at : at + wide] = states.relative_delta(codes)
        told = states.unsettled_states(
            codes, series.steps, series.past_steps, measured=measured, audited=commanded is None
        )
        told &= calm
        state[:, at : at + wide] = told
        return find_marks(told, codes, at), pruned_weights(codes, variable.elements)

    slabs = list(each(slab, range(0, channels, wide)))
    return Movement(
        series.steps,
        series.past_steps,
        series.wall_times,
        series.learning_rates,
        state,
        delta,
        join_marks([marks for marks, _ in slabs]),
        sum((pruned for _, (pruned, _) in slabs), np.zeros(records)),
        sum((partial for _, (_, partial) in slabs), np.zeros(records)),
        series.account,
        series.notes,
    )


def measured_in(series: Series, variable: Variable) -> Flags | None:
    """Where channels of zeros count as pruned without a mask, bool (records,); None: nowhere."""
    return states.seen(series.codes) if variable.role == _KERNEL else None


def _calm(series: Series, commanded: Integers) -> npt.NDArray[np.uint8]:
    """The bits that stay, uint8 (records, 1): no `VIOLATED` where a change lies since the past."""
    first, last = (
        np.searchsorted(commanded, at, side="right") for at in (series.past_steps, series.steps)
    )
    bits = np.where(last > first, 0xFF & ~states.VIOLATED, 0xFF)
    return bits.astype(np.uint8)[:, None]


def events(series: Series) -> list[Event]:
    """What happened to a layer: masks changed, the learning rate changed, training was resumed.

    Args:
        series: the records.

    Returns:
        Step, kind and a text of each, in order, the first 256. Beside these a "learning_rate" has
        `from` and `to`; "trainable" has how many of all `channels` are `frozen` and `pruned` from
        then on; a "restart" has no more. A learning rate that glides is told once for each factor
        of 1.5.
    """
    found = [*_restarts(series), *_rates(series), *_masks(series)]
    return sorted(found, key=lambda event: int(event["step"]))[:MOST_EVENTS]


def _event(step: np.int64, kind: str, text: str, **values: float) -> Event:
    return {"step": int(step), "kind": kind, "text": text, **values}


def _restarts(series: Series) -> list[Event]:
    at = np.flatnonzero(np.diff(series.writers)) + 1
    return [_event(series.steps[i], "restart", "training was resumed here") for i in at]


def _rates(series: Series) -> list[Event]:
    found = []
    last = math.nan
    for step, rate in zip(series.steps, series.learning_rates.tolist(), strict=True):
        if not math.isfinite(rate) or rate == last:
            continue
        if math.isnan(last):
            last = rate
        elif rate <= 0 or last <= 0 or max(rate / last, last / rate) >= _RATE_FACTOR:
            text = f"learning rate {last:.3g} → {rate:.3g}"
            found.append(_event(step, "learning_rate", text, **{"from": last, "to": rate}))
            last = rate
    return found


def _masks(series: Series) -> list[Event]:
    planes = [series.codes[KEPT], series.codes[TRAINABLE]]
    # Views, one after the other: a copy of both takes ten times as long.
    changed = [(plane[1:] != plane[:-1]).any(axis=1) for plane in planes]
    at = np.flatnonzero(np.logical_or(*changed)) + 1
    found = []
    for i in at[:MOST_EVENTS]:
        kept, trainable = (dequantize(plane[i]) for plane in planes)
        pruned = int((kept == 0).sum())
        frozen = int(((trainable == 0) & (kept != 0)).sum())
        text = f"{frozen} of {len(kept)} channels frozen, {pruned} pruned"
        if 0 < trainable.mean() < 1 and frozen + pruned in (0, len(kept)):
            text += f", {100 * trainable.mean():.3g} % of weights trainable"
        counts = {"frozen": frozen, "pruned": pruned, "channels": len(kept)}
        found.append(_event(series.steps[i], "trainable", text, **counts))
    return found
