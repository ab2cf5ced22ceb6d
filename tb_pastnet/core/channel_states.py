"""The state of each channel at each record, computed from the records only.

The first that applies:

1. pruned: all of it held at zero by the kept mask. Without a mask it is only measured, for kernels
that are zero now and in the past and were once seen non-zero. 2. frozen: no update may change any
of it. 3. reactivated: it was one of these in one of the last `patience` records. 4. settled: its
relative delta stayed under the threshold for `patience` records, and since then neither reached ten
times the threshold nor stayed at or over it for `patience` records. One that has been exactly zero
since the first record is settled from there on. 5. moving: everything else.

If anything but an optimizer moves a weight on purpose, like a target network, it is following
instead of 3 to 5.

In addition to the state there are two marks: violated (all of it was held since the step of its
past value, and yet bits changed) and non-finite. Lineages don't matter here: a resumed run is one
series.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import statistics
from tb_pastnet.core.quantize import CODES_PER_OCTAVE, NAN, ZERO, Codes, ratio_codes

NO_DATA, MOVING, REACTIVATED, SETTLED, FROZEN, PRUNED, FOLLOWING = range(7)
NAMES = ("no data", "moving", "reactivated", "settled", "frozen", "pruned", "following")
STATE = 0x07
NONFINITE = 0x40
VIOLATED = 0x80

THRESHOLD = 1e-4
"""Relative delta under which a channel counts as quiet, unless the user chooses another."""

PATIENCE = 5
"""Records for which a channel has to be quiet or restless, or stays reactivated."""

STALLED = 20
"""Records without any change after which a channel that is meant to train counts as stalled."""

RESTLESS = 53
"""Codes from the threshold to the delta that ends settled at once: ten times, on the grid 9.94."""

NEVER = 32767
"""A limit that no threshold reaches."""

States = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def relative_delta(codes: Codes) -> Codes:
    """The relative delta ‖w − w_past‖ / ‖w_past‖ as codes: 0/0 is zero, x/0 infinite."""
    return ratio_codes(codes[statistics.DELTA_NORM], codes[statistics.PAST_NORM])


def unsettled_states(
    codes: Codes,
    steps: Integers,
    past_steps: Integers,
    *,
    measured: Flags | None,
    audited: bool = False,
    follows: bool | Flags = False,
    patience: int = PATIENCE,
) -> States:
    """The states before any is settled, which depend on no threshold: for `settle`.

    They are uint8 (records, channels): a state in the bits of `STATE`, and the marks `NONFINITE`
    and `VIOLATED`. Neither delta_norm nor delta_max of `codes`, int16 (statistics, records,
    channels), is looked at, and changed only where it isn't audited. Steps increase. A statistic
    that wasn't recorded marks nothing.

    `measured`, bool (records,) as from `seen`, or (records, channels), is True where a channel of
    zeros counts as pruned without a mask, unless it has NaN or infinity; None: nowhere, as for all
    but kernels. `follows`, for all or bool (channels,): not moved by an optimizer. If the writer
    `audited` held weights, none are marked as moved: in a record they look like weights that a
    command on the masks has set.
    """
    finite = codes[statistics.NONFINITE] == ZERO
    if not finite.all():
        finite |= codes[statistics.NONFINITE] == NAN  # it wasn't recorded
    masked = codes[statistics.KEPT] == ZERO
    held_by_mask = masked | (codes[statistics.TRAINABLE] == ZERO)
    pruned = masked
    if measured is not None:
        everywhere = measured if measured.ndim > 1 else measured[:, None]
        pruned = masked | (finite & ~_nonzero(codes) & everywhere)
    held = pruned | held_by_mask

    state = np.empty(held.shape, np.uint8)
    state[:] = np.where(follows, FOLLOWING, MOVING)
    if held.any():
        state[_any_before(held, patience) & ~np.asarray(follows)] = REACTIVATED
        state[held_by_mask] = FROZEN
        state[pruned] = PRUNED
    if not finite.all():
        state[~finite] |= NONFINITE
    if not audited and held_by_mask.any():
        changed = codes[statistics.CHANGED]
        moved = (changed != ZERO) & (changed != NAN)
        state[moved & _held_since(held_by_mask, steps, past_steps)] |= VIOLATED
    return state


def seen(codes: Codes) -> Flags:
    """Whether a kernel was seen non-zero by each record, as bool (records,).

    A kernel that is all zero since the first record was initialised so: it isn't pruned.
    """
    held: Flags = np.logical_or.accumulate(_nonzero(codes).any(axis=1))
    return held


def _nonzero(codes: Codes) -> Flags:
    values: Flags = (codes[statistics.NORM] != ZERO) | (codes[statistics.PAST_NORM] != ZERO)
    return values


def stalled(codes: Codes, state: States) -> Integers:
    """The position of the record since which each channel hasn't changed at all; -1 where it has.

    A channel is stalled if in each of the last `STALLED` records no mask held a part of it, it was
    finite, not pruned, and its delta was exactly zero.
    """
    still = codes[statistics.DELTA_NORM] == ZERO
    still &= (codes[statistics.KEPT] == 0) & (codes[statistics.TRAINABLE] == 0)
    still &= (codes[statistics.NONFINITE] == ZERO) & ((state & np.uint8(STATE)) != PRUNED)
    records = len(still)
    broken = records - still[::-1].argmin(axis=0) if records else np.zeros(still.shape[1], np.int64)
    since = np.where(still.all(axis=0), 0, broken)
    return np.where(records - since >= STALLED, since, -1)


def settle(state: States, delta: Codes, *, threshold: float, patience: int = PATIENCE) -> States:
    """Settles some of the moving channels by their relative delta, as codes; a new array.

    One with NaN or infinity never settles; with a threshold of 0 or less none does.
    """
    return settled_below(state, settling(delta, state, patience), quiet_limit(threshold))


def settled_below(unsettled: States, limits: Codes, limit: int) -> States:
    """The states at a limit, from the smallest limits at which channels settle (see `settling`)."""
    # SETTLED - MOVING keeps the marks as they are.
    return unsettled + (limits <= limit).astype(np.uint8) * np.uint8(SETTLED - MOVING)


class Carry(NamedTuple):
    """What `settling` needs from earlier records: nothing else decides the later ones."""

    quiet_from: Codes  # int16 (records, channels), of the last records, fewer than `patience`
    limit: Codes  # int16 (channels,), of the last record
    still: Flags  # bool (channels,), whether none has ever changed

    @classmethod
    def first(cls, channels: int) -> Carry:
        """Before the first record."""
        never = np.full(channels, NEVER, np.int16)
        return cls(np.zeros((0, channels), np.int16), never, np.ones(channels, bool))


def settling(delta: Codes, unsettled: States, patience: int = PATIENCE) -> Codes:
    """The smallest limit, as from `quiet_limit`, at which a record is settled, or `NEVER`.

    A larger threshold settles a channel sooner and for longer, never less. So one number per record
    answers every threshold: with E the smallest limit at which the channel would enter, and S the
    smallest at which it would stay, L[t] = min(E[t], max(L[t - 1], S[t])).
    """
    return settling_after(Carry.first(delta.shape[1]), delta, unsettled, patience)[0]


def settling_after(
    before: Carry, delta: Codes, unsettled: States, patience: int = PATIENCE
) -> tuple[Codes, Carry]:
    """The same for records that continue earlier ones, and what later records need."""
    plain = unsettled & np.uint8(STATE)
    quiet_from = np.minimum(delta, np.int16(NAN)) + np.int16(1)
    trained = (plain == MOVING) | (plain == REACTIVATED)
    quiet_from[~trained | ((unsettled & np.uint8(NONFINITE)) != 0)] = NEVER
    earlier = len(before.quiet_from)
    quiet_from = np.concatenate([before.quiet_from, quiet_from])
    enter, stay = quiet_from.copy(), quiet_from.copy()
    for back in range(1, patience):
        np.maximum(enter[back:], quiet_from[:-back], out=enter[back:])
        np.minimum(stay[back:], quiet_from[:-back], out=stay[back:])
    enter[: patience - 1] = NEVER
    calm = np.maximum(quiet_from, np.int16(ZERO + 1 + RESTLESS)) - np.int16(RESTLESS)
    calm[quiet_from == NEVER] = NEVER
    np.maximum(stay, calm, out=stay)
    last, still = before.limit, before.still
    some = bool(still.any())
    # Row by row: NumPy's accumulate along this axis takes ten times as long.
    rows = (enter[earlier:], stay[earlier:], quiet_from[earlier:])
    for enters, stays, quiet in zip(*rows, strict=True):
        if some:
            still = still & (quiet == ZERO + 1)
            some = bool(still.any())
            enters[still] = ZERO + 1
        np.maximum(stays, last, out=stays)
        last = np.minimum(enters, stays, out=enters)
    kept = max(len(quiet_from) - patience + 1, 0)
    carry = Carry(quiet_from[kept:].copy(), last.copy(), still)
    limits = enter[earlier:]
    limits[plain != MOVING] = NEVER
    return limits, carry


def quiet_limit(threshold: float) -> int:
    """The code under which a relative delta is quiet; none ever is at a threshold of 0 or less."""
    if threshold <= 0:
        return ZERO
    return max(math.ceil(math.log2(threshold) * CODES_PER_OCTAVE), ZERO + 1)


def _any_before(flags: Flags, count: int) -> Flags:
    """True where the flag held in one of the `count` records before."""
    result = np.zeros_like(flags)
    for back in range(1, count + 1):
        result[back:] |= flags[:-back]
    return result


def _held_since(held: Flags, steps: Integers, past_steps: Integers) -> Flags:
    """True where it was held at every record from the past value's step until now."""
    since = np.searchsorted(steps, past_steps, side="right") - 1
    free_before = np.zeros((len(held) + 1, held.shape[1]), np.int32)
    np.cumsum(~held, axis=0, out=free_before[1:])
    free_between = free_before[1:] - free_before[np.maximum(since, 0)]
    result: Flags = held & (free_between == 0) & (since >= 0)[:, None]
    return result


class LatestStates:
    """Computes the states of each record from earlier ones, as if for all records together.

    Of each variable there are the number of channels, int64 (variables,), and as bool (variables,)
    whether channels of zeros count as pruned, and whether anything but an optimizer moves it.
    """

    def __init__(
        self, widths: Integers, kernels: Flags, follows: Flags, threshold: float = THRESHOLD
    ) -> None:
        self._widths, self._kernels = widths, kernels
        self._starts = np.cumsum(widths) - widths
        self._follows = np.repeat(follows, widths)
        self._limit = quiet_limit(threshold)
        self._seen = np.zeros(len(widths), bool)
        self._codes: deque[Codes] = deque(maxlen=PATIENCE + 1)
        self._measured: deque[Flags] = deque(maxlen=PATIENCE + 1)
        self._carry = Carry.first(len(self._follows))

    def add(self, codes: Codes) -> tuple[States, Codes]:
        """The states of the next record, uint8 (channels,), and its relative deltas as codes.

        Codes are int16 (statistics, channels of all variables).
        """
        self._seen |= np.logical_or.reduceat(_nonzero(codes), self._starts)
        self._codes.append(codes)
        self._measured.append(np.repeat(self._seen & self._kernels, self._widths))
        steps = np.arange(len(self._codes))
        unsettled = unsettled_states(
            np.stack(self._codes, axis=1),
            steps,
            steps,
            measured=np.stack(self._measured),
            audited=True,
            follows=self._follows,
        )[-1:]
        delta = relative_delta(codes)[None]
        limits, self._carry = settling_after(self._carry, delta, unsettled)
        return settled_below(unsettled, limits, self._limit)[0], delta[0]
