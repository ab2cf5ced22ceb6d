"""State and relative delta of a variable's records: a fifth of the bytes, enough for the picture.

In addition, facts about held weights from the records only: held channels that moved, and how many
weights the kept mask holds at zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.quantize import ZERO, Codes, dequantize
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, KEPT
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.layout import ROWS
from tb_pastnet.reader.arrays import NO_FLOATS, NO_INTEGERS, Flags, Floats, Integers
from tb_pastnet.reader.layer_events import Event
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.threads import in_threads
from tb_pastnet.reader.wide_series import WideSeries

KERNEL = "kernel"
"""The role of weights that may be pruned."""
STATISTIC = "statistic"
"""The role of what no gradient trains: a BatchNorm's moving mean, a buffer."""
_SLAB = 1 << 19
_ALL_BITS = np.full((1, 1), 0xFF, np.uint8)

AUDITED_ROWS = tuple(row for row in ROWS if row not in (CHANGED, DELTA_MAX))
"""The statistics that states are made from; if the writer didn't audit, marks need the rest."""


@dataclass(frozen=True, eq=False)
class Marks:
    """The channels with the mark `VIOLATED` at any record."""

    channels: Integers  # (marked,), increasing
    first_steps: Integers  # (marked,), of the first record with the mark
    last_steps: Integers  # (marked,), of the last one
    changed: Floats  # (marked,), the largest share of weights that changed in one such record
    largest: Floats  # (marked,), the largest change of a weight in one such record
    notes: Notes  # what could not be read of the records, and why

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return 5 * self.channels.nbytes


NO_MARKS = Marks(NO_INTEGERS, NO_INTEGERS, NO_INTEGERS, NO_FLOATS, NO_FLOATS, Counter())


@dataclass(frozen=True, eq=False)
class StateSeries:
    """The data that pictures of a variable are drawn from, for every threshold."""

    steps: Integers  # (records,), increasing
    past_steps: Integers  # (records,), of the value that each is compared with
    wall_times: Floats  # (records,), NaN where unknown
    learning_rates: Floats  # (records,), NaN where unknown
    before_quiet: channel_states.States  # (records, channels), states with none quiet; see `states`
    delta: Codes  # (records, channels), codes of the relative delta
    marks: Marks  # channels that moved while fully held
    pruned: Floats  # (records,), weights that the kept mask holds at zero, by the shares
    # (records,), weights of channels that it holds in part: if there are none, `pruned` is exact
    partial: Floats
    account: Account  # what became of all records
    notes: Notes  # what could not be read, and why
    # masks changed, learning rate changed, training resumed; see `layer_events`. Left out unless
    # requested.
    events: tuple[Event, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        cells = self.before_quiet.nbytes + self.delta.nbytes + self.marks.size
        return cells + 6 * self.steps.nbytes

    def states(self, threshold: float) -> channel_states.States:
        """The states, uint8 (records, channels), where quiet means under this relative delta."""
        quiet = np.empty_like(self.before_quiet)

        def slab(part: slice) -> None:
            own = self.before_quiet[:, part], self.delta[:, part]
            quiet[:, part] = channel_states.mark_quiet(*own, threshold=threshold)

        list(in_threads(slab, slabs(*quiet.shape)))
        return quiet


def slabs(records: int, channels: int) -> list[slice]:
    """Groups of channels, for threads: what is computed in between stays small."""
    width = max(_SLAB // max(records, 1), 1)
    return [slice(start, start + width) for start in range(0, channels, width)]


def make_state_series(
    series: RecordSeries,
    variable: VariableEntry,
    commanded: Integers | None = NO_INTEGERS,
) -> StateSeries:
    """Finds the state and the relative delta of each record and channel.

    `commanded`, int64 (changes,), increasing, are the known steps at which its kept mask changed:
    pruning held weights there isn't a violation. None: the writer audited held weights itself, so
    none are marked.
    """
    calm = _ALL_BITS if commanded is None else _calm(series, commanded)
    is_kernel = np.full(series.codes.shape[2], variable.role == KERNEL)
    follows = np.full(len(is_kernel), variable.follows)
    state, delta = _before_quiet(series, is_kernel, follows, calm, audited=commanded is None)
    pruned, partial = _pruned(series.codes, variable.elements)
    return StateSeries(
        series.steps,
        series.past_steps,
        series.wall_times,
        series.learning_rates,
        state,
        delta,
        NO_MARKS if commanded is None else find_marks(state, series),
        pruned,
        partial,
        series.account,
        series.notes,
    )


@dataclass(frozen=True, eq=False)
class WideStates:
    """States of variables whose channels are side by side; arrays as in `StateSeries`."""

    before_quiet: channel_states.States
    delta: Codes
    pruned: Floats  # (variables, records)
    partial: Floats  # (variables, records)
    marks: tuple[Marks, ...]  # of each variable


def make_wide_states(
    wide: WideSeries,
    variables: Sequence[VariableEntry],
    commanded: Sequence[Integers | None],
) -> WideStates:
    """The states of several variables; see `make_state_series`."""
    series, widths = wide.records, np.diff(wide.edges)
    is_kernel = np.repeat([variable.role == KERNEL for variable in variables], widths)
    follows = np.repeat([variable.follows for variable in variables], widths)
    known = [steps for steps in commanded if steps is not None]
    calm = _ALL_BITS
    if known:
        calm = np.repeat(np.hstack([_calm(series, steps) for steps in known]), widths, axis=1)
    state, delta = _before_quiet(series, is_kernel, follows, calm, audited=not known)
    pruned, partial = np.zeros((2, len(variables), len(series.steps)))
    marks = [NO_MARKS] * len(variables)
    is_partial = bool((series.codes[KEPT] != 0).any())
    for number, variable in enumerate(variables):
        own = slice(*wide.edges[number : number + 2].tolist())
        if is_partial:
            pruned[number], partial[number] = _pruned(series.codes[:, :, own], variable.elements)
        if known:
            marks[number] = find_marks(state[:, own], wide.of(number))
    return WideStates(state, delta, pruned, partial, tuple(marks))


def _before_quiet(
    series: RecordSeries,
    is_kernel: Flags,
    follows: Flags,
    calm: npt.NDArray[np.uint8],
    *,
    audited: bool,
) -> tuple[channel_states.States, Codes]:
    """The states before any is quiet, and the relative deltas; flags are (channels,)."""
    _, records, channels = series.codes.shape
    state = np.empty((records, channels), np.uint8)
    delta = np.empty((records, channels), np.int16)

    def slab(part: slice) -> None:
        codes = series.codes[:, :, part]
        delta[:, part] = channel_states.relative_delta(codes)
        kernels = is_kernel[part]
        own_calm = calm if calm.shape[1] == 1 else calm[:, part]
        state[:, part] = own_calm & channel_states.states_before_quiet(
            codes,
            series.steps,
            series.past_steps,
            measured=channel_states.seen(codes) & kernels if kernels.any() else None,
            audited=audited,
            follows=follows[part],
        )

    list(in_threads(slab, slabs(records, channels)))
    return state, delta


def _calm(series: RecordSeries, commanded: Integers) -> npt.NDArray[np.uint8]:
    """The bits that stay, uint8 (records, 1): no `VIOLATED` after a change since the past."""
    first, last = (
        np.searchsorted(commanded, steps, side="right")
        for steps in (series.past_steps, series.steps)
    )
    bits = np.where(last > first, 0xFF & ~channel_states.VIOLATED, 0xFF)
    return bits.astype(np.uint8)[:, None]


def find_marks(state: channel_states.States, series: RecordSeries) -> Marks:
    """The channels with a mark in their states, uint8 (records, channels)."""
    marked = (state & np.uint8(channel_states.VIOLATED)) != 0
    if not marked.any():
        return replace(NO_MARKS, notes=series.notes)
    channels = np.flatnonzero(marked.any(axis=0))
    marked = marked[:, channels]
    last = len(marked) - 1 - marked[::-1].argmax(axis=0)
    # ZERO is the smallest code, so unmarked records are never the largest.
    changed, largest = (
        np.where(marked, series.codes[row][:, channels], np.int16(ZERO)).max(axis=0)
        for row in (CHANGED, DELTA_MAX)
    )
    first = marked.argmax(axis=0)
    return Marks(
        channels,
        series.steps[first],
        series.steps[last],
        dequantize(changed),
        dequantize(largest),
        series.notes,
    )


def _pruned(codes: Codes, elements: int) -> tuple[Floats, Floats]:
    """`pruned_weights` of any number of channels."""

    def slab(part: slice) -> tuple[Floats, Floats]:
        return pruned_weights(codes[:, :, part], elements)

    _, records, channels = codes.shape
    counts = list(in_threads(slab, slabs(records, channels)))
    pruned: Floats = sum((own for own, _ in counts), np.zeros(records))
    return pruned, sum((own for _, own in counts), np.zeros(records))


def pruned_weights(codes: Codes, elements: int) -> tuple[Floats, Floats]:
    """Estimates from the recorded shares how many weights the kept mask holds at zero.

    Also returns how many weights are in channels that are kept in part, float64 (records,): their
    shares are stored within 4.5 %, all others exactly.
    """
    kept = codes[KEPT]
    records = len(kept)
    if not (kept != 0).any():
        return np.zeros(records), np.zeros(records)
    partial = (kept != 0) & (kept != ZERO)
    weights = np.rint(np.minimum(dequantize(kept), 1.0) * elements)
    # A share that isn't 0 or 1 never means all or nothing.
    weights = np.where(partial, np.clip(weights, min(1, elements), max(elements - 1, 0)), weights)
    pruned: Floats = (elements - weights).sum(axis=1)
    return pruned, elements * partial.sum(axis=1).astype(np.float64)
