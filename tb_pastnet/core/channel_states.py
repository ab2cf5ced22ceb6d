"""The state of each channel at each record, computed from the records only.

The first that applies:

1. nonfinite: it has NaN or infinity. 2. pruned: all of it held at zero by the kept mask. Without a
mask it is only measured: a kernel's channel that is zero now, and was seen non-zero earlier, at the
latest in this record's past. 3. frozen: no update may change any of it. 4. following: anything but
an optimizer moves it on purpose, like a target network. 5. reactivated: it was nonfinite, pruned or
frozen in one of the last `patience` records. 6. no data: the record has no past values, and so no
delta. 7. quiet: it moves less than the threshold per step. Its relative delta stayed under the
threshold for `patience` records, and since then neither reached ten times the threshold nor stayed
at or over it for `patience` records. One that has been exactly zero since the first record is quiet
from there on. 8. moving: everything else.

In addition to the state there is one mark, violated: all of it was held since the step of its past
value, and yet bits changed. Lineages don't matter here: a resumed run is one series.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import statistics
from tb_pastnet.core.quantize import CODES_PER_OCTAVE, NAN, ONE, ZERO, Codes, ratio_codes

NAMES = (
    "no data", "moving", "reactivated", "quiet", "frozen", "pruned", "following", "nonfinite",
)  # fmt: skip
NO_DATA, MOVING, REACTIVATED, QUIET, FROZEN, PRUNED, FOLLOWING, NONFINITE = range(len(NAMES))
STATE = 0x07
VIOLATED = 0x80

THRESHOLD = 1e-4
"""Relative delta under which a record counts for quiet, unless the user chooses another."""

PATIENCE = 5
"""Records under or over the threshold that make a channel quiet or moving, or for which it stays
reactivated."""

STALLED = 20
"""Records without any change after which a trainable channel may count as stalled."""

FEWEST_UNCHANGED = 2
"""Records after which a channel that never changed is worth a word."""

RESTLESS = 53
"""Codes from the threshold to the delta that ends quiet at once: ten times, on the grid 9.94."""

NEVER = 32767
"""A limit that no threshold reaches."""

States = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def relative_delta(codes: Codes) -> Codes:
    """The relative delta ‖w − w_past‖ / ‖w_past‖ as codes: 0/0 is zero, x/0 infinite.

    There is none, NaN, for a channel with NaN or infinity now, or with nothing else in the past.
    """
    delta = ratio_codes(codes[statistics.DELTA_NORM], codes[statistics.PAST_NORM])
    missing = ~_finite(codes)
    missing |= statistics.without_past(codes)
    if missing.any():
        delta[missing] = NAN
    return delta


def states_before_quiet(
    codes: Codes,
    steps: Integers,
    past_steps: Integers,
    *,
    measured: Flags | None,
    audited: bool = False,
    follows: bool | Flags = False,
    patience: int = PATIENCE,
) -> States:
    """The states before any is quiet, which depend on no threshold: for `mark_quiet`.

    They are uint8 (records, channels): a state in the bits of `STATE`, and the mark `VIOLATED`.
    Neither delta_norm nor delta_max of `codes`, int16 (statistics, records, channels), is looked
    at, and changed only where it isn't audited. Steps increase. A statistic that wasn't recorded
    marks nothing.

    `measured` and `follows` (not moved by an optimizer; for all, or bool (channels,)) are as for
    `held_channels`. If the writer `audited` held weights, none are marked as moved: in a record
    they look like weights that a command on the masks has set.
    """
    pruned, frozen = held_channels(codes, measured)
    finite = _finite(codes)
    apart = pruned | frozen | ~finite

    state = np.empty(apart.shape, np.uint8)
    state[:] = np.where(follows, np.uint8(FOLLOWING), np.uint8(MOVING))
    state[(codes[statistics.PAST_NORM] == NAN) & (state == MOVING)] = NO_DATA
    if apart.any():
        state[_any_before(apart, patience) & ~np.asarray(follows)] = REACTIVATED
        state[frozen] = FROZEN
        state[pruned] = PRUNED
        state[~finite] = NONFINITE
    if not audited:
        by_mask = (codes[statistics.KEPT] == ZERO) | (codes[statistics.TRAINABLE] == ZERO)
        if by_mask.any():
            changed = codes[statistics.CHANGED]
            moved = (changed != ZERO) & (changed != NAN)
            state[moved & _held_since(by_mask, steps, past_steps)] |= VIOLATED
    return state


def held_channels(codes: Codes, measured: Flags | None) -> tuple[Flags, Flags]:
    """Whether each channel is pruned, and whether it is frozen instead, (records, channels).

    `measured`, from `seen`, is True where a channel that is zero now counts as pruned without a
    mask, unless it has NaN or infinity; None: nowhere, as for all but kernels.
    """
    pruned = codes[statistics.KEPT] == ZERO
    if measured is not None:
        pruned |= (codes[statistics.NORM] == ZERO) & _finite(codes) & measured
    return pruned, (codes[statistics.TRAINABLE] == ZERO) & ~pruned


def seen(codes: Codes) -> Flags:
    """Whether each channel was seen non-zero, now or before, by each record, (records, channels).

    A channel that is zero since the first record was initialised so, like the padding row of an
    embedding: it isn't pruned.
    """
    held = _nonzero(codes)
    # Most channels are non-zero from the first record on.
    late = ~held[:1].all(axis=0)
    if np.count_nonzero(late) > late.size // 2:
        np.logical_or.accumulate(held, axis=0, out=held)
    else:
        some = np.flatnonzero(late)
        own = np.logical_or.accumulate(held[:, some], axis=0)
        held[:] = True
        held[:, some] = own
    return held


def _nonzero(codes: Codes) -> Flags:
    past = codes[statistics.PAST_NORM]
    values: Flags = (codes[statistics.NORM] != ZERO) | ((past != ZERO) & (past != NAN))
    return values


def _finite(codes: Codes) -> Flags:
    """False where a channel has NaN or infinity; True where that wasn't recorded."""
    count = codes[statistics.NONFINITE]
    finite: Flags = count == ZERO
    return finite if finite.all() else finite | (count == NAN)


def unchanged(
    codes: Codes,
    state: States,
    steps: Integers,
    *,
    rows: Sequence[bool] | bool = False,
    edges: Integers | None = None,
) -> dict[str, Flags]:
    """Channels that an optimizer could train, and unchanged up to the newest record, by kind.

    In all of these records no mask held a part of the channel, it was finite, not pruned, its delta
    was exactly zero, and its norm that of the newest record: another norm shows that it changed
    between records. A first record without a past counts, too. The kinds are:

    - "stalled": unchanged at the last `STALLED` records or more, over at least half of the steps.
    - "unchanged": others that never changed in 2 records or more, or not at the last `STALLED`.
    - "rows": those of variables with `rows`, True or False for each, that never changed while
      others did, and then nothing else. A step changes only those rows of an embedding that it
      looks up.

    The channels may be those of several variables: `edges`, int64 (variables + 1,), are the first
    of each, and the number of all.

    Returns:
        bool (records, channels), True from the record on since which each is unchanged.
    """
    records, channels = state.shape
    # Most channels changed in one of the last records: no others are looked at.
    last = slice(-min(STALLED, records), None)
    some = np.flatnonzero(_still(codes[:, last], state[last]).all(axis=0))
    if records < FEWEST_UNCHANGED or not len(some):
        return {}
    part = slice(None) if len(some) == channels else some
    still = _still(codes[:, :, part], state[:, part], codes[statistics.DELTA_NORM][:1, part])
    # Row by row: NumPy's accumulate along this axis takes ten times as long.
    for row in range(records - 2, -1, -1):
        still[row] &= still[row + 1]
    unbroken = np.zeros(state.shape, bool)
    unbroken[:, part] = still
    count = np.count_nonzero(unbroken, axis=0)
    never = count == records
    apart = _apart(never, [rows] if isinstance(rows, bool) else rows, edges)
    since = steps[np.minimum(records - count, records - 1)]
    long = is_long(count, since, steps)
    return {
        "stalled": unbroken & long & ~apart,
        "unchanged": unbroken & ~long & ~apart & (never | (count >= STALLED)),
        "rows": unbroken & never & apart,
    }


def thawed(state: States, held: int) -> dict[str, Flags]:
    """Channels that were in a held state earlier, `FROZEN` or `PRUNED`, by what followed.

    Returns bool (records, channels): "freed" where they aren't held in any way, "again" where they
    are in that state again after they were freed.
    """
    plain = state & np.uint8(STATE)
    is_held = plain == held
    if not is_held.any():
        return {}
    free = ~is_held & (plain != FROZEN) & (plain != PRUNED) & (plain != NONFINITE)
    freed = free & np.logical_or.accumulate(is_held, axis=0)
    return {"freed": freed, "again": is_held & np.logical_or.accumulate(freed, axis=0)}


def is_long(count: Integers | int, since: Integers | int, steps: Integers) -> Flags:
    """Whether what has held at the last `count` records, since a step, held long enough to stall.

    `steps` are those of all records, at least one.
    """
    half = 2 * (steps[-1] - np.asarray(since)) >= steps[-1] - steps[0]
    return np.asarray((np.asarray(count) >= STALLED) & half)


def _still(codes: Codes, state: States, begin: Codes | None = None) -> Flags:
    """Whether channels that no mask holds are finite, not pruned, and as at the newest record.

    `begin` are the deltas of the very first record, which needs none.
    """
    still: Flags = codes[statistics.DELTA_NORM] == ZERO
    if begin is None:
        still |= codes[statistics.DELTA_NORM] == NAN
    else:
        still[:1] |= begin == NAN
    still &= codes[statistics.MOVED] != ONE
    still &= codes[statistics.NORM] == codes[statistics.NORM, -1:]
    still &= (codes[statistics.KEPT] == 0) & (codes[statistics.TRAINABLE] == 0)
    still &= (codes[statistics.NONFINITE] == ZERO) & ((state & np.uint8(STATE)) != PRUNED)
    return still


def _apart(never: Flags, rows: Sequence[bool], edges: Integers | None) -> Flags:
    """The channels that are rows of a variable some of which changed."""
    ends = [0, len(never)] if edges is None else edges.tolist()
    apart = np.zeros_like(never)
    for is_rows, first, last in zip(rows, ends[:-1], ends[1:], strict=True):
        apart[first:last] = is_rows and not never[first:last].all()
    return apart


class Lasting(NamedTuple):
    """Since when channels have been in a state that they are in at the newest record."""

    channels: int  # in it at the newest record
    since: int  # the step since which all of these have been in it without a break
    records: int  # from that step on
    first: int  # the step of the first record at which any channel was in it
    first_channels: int  # how many were in it there
    channel: int  # the first of them
    experts: tuple[int, ...] = ()  # of fused ones, whose channels these are, all of each


def lasting(flags: Flags, steps: Integers) -> Lasting | None:
    """Since when something holds, bool (records, channels); None if it doesn't at the newest one.

    Example:
        >>> flags = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0]], bool)
        >>> lasting(flags, np.array([10, 20, 30]))
        Lasting(channels=2, since=30, records=1, first=20, first_channels=1, channel=1, experts=())
    """
    return lasting_each(flags, steps, np.array([0, flags.shape[1]]))[0]


def lasting_each(flags: Flags, steps: Integers, edges: Integers) -> list[Lasting | None]:
    """`lasting` of groups of neighbouring channels, none of them empty.

    `edges`, int64 (groups + 1,), are the first channel of each, and the number of all.
    """
    each: list[Lasting | None] = [None] * (len(edges) - 1)
    if not len(flags) or not flags[-1].any():
        return each
    starts = edges[:-1]
    now = np.add.reduceat(flags[-1], starts, dtype=np.int64)
    is_ever = np.logical_or.reduceat(flags, starts, axis=1)
    # All that are so at the newest record.
    are_all = np.logical_and.reduceat(flags | ~flags[-1], starts, axis=1)
    records = np.where(are_all.all(axis=0), len(flags), (~are_all[::-1]).argmax(axis=0)).tolist()
    firsts = is_ever.argmax(axis=0).tolist()
    for group in np.flatnonzero(now).tolist():
        first, count = firsts[group], records[group]
        begun = np.flatnonzero(flags[first, edges[group] : edges[group + 1]])
        each[group] = Lasting(
            int(now[group]),
            int(steps[len(flags) - count]),
            count,
            int(steps[first]),
            len(begun),
            int(begun[0]),
        )
    return each


def mark_quiet(
    state: States, delta: Codes, *, threshold: float, patience: int = PATIENCE
) -> States:
    """Marks some of the moving channels as quiet, by their relative delta as codes; a new array.

    With a threshold of 0 or less none is.
    """
    return quiet_below(state, quiet_limits(delta, state, patience), limit_of(threshold))


def quiet_below(before_quiet: States, limits: Codes, limit: int) -> States:
    """The states at a limit, from what `quiet_limits` returns."""
    # QUIET - MOVING keeps the marks as they are.
    return before_quiet + (limits <= limit).astype(np.uint8) * np.uint8(QUIET - MOVING)


class Carry(NamedTuple):
    """What `quiet_limits` needs from earlier records: nothing else decides the later ones."""

    quiet_from: Codes  # int16 (records, channels), of the last records, fewer than `patience`
    limit: Codes  # int16 (channels,), of the last record
    still: Flags  # bool (channels,), whether none has ever changed

    @classmethod
    def first(cls, channels: int) -> Carry:
        """Before the first record."""
        never = np.full(channels, NEVER, np.int16)
        return cls(np.zeros((0, channels), np.int16), never, np.ones(channels, bool))


def quiet_limits(delta: Codes, before_quiet: States, patience: int = PATIENCE) -> Codes:
    """The smallest limit, as from `limit_of`, at which a record is quiet, or `NEVER`.

    With a larger threshold a channel is quiet sooner and for longer, never less. So one number per
    record answers every threshold: with E the smallest limit at which the channel would enter, and
    S the smallest at which it would stay, L[t] = min(E[t], max(L[t - 1], S[t])).
    """
    return limits_after(Carry.first(delta.shape[1]), delta, before_quiet, patience)[0]


def limits_after(
    before: Carry, delta: Codes, before_quiet: States, patience: int = PATIENCE
) -> tuple[Codes, Carry]:
    """The same for records that continue earlier ones, and what later records need."""
    plain = before_quiet & np.uint8(STATE)
    quiet_from = np.minimum(delta, np.int16(NAN)) + np.int16(1)
    trained = (plain == MOVING) | (plain == REACTIVATED)
    quiet_from[~trained] = NEVER
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


def limit_of(threshold: float) -> int:
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
    whether it is a kernel, whose channels may be pruned without a mask, and whether anything but an
    optimizer moves it.
    """

    def __init__(
        self, widths: Integers, kernels: Flags, follows: Flags, threshold: float = THRESHOLD
    ) -> None:
        self._kernels, self._follows = np.repeat(kernels, widths), np.repeat(follows, widths)
        self._limit = limit_of(threshold)
        self._seen = np.zeros(len(self._kernels), bool)
        self._codes: deque[Codes] = deque(maxlen=PATIENCE + 1)
        self._measured: deque[Flags] = deque(maxlen=PATIENCE + 1)
        self._carry = Carry.first(len(self._follows))

    def add(self, codes: Codes) -> tuple[States, Codes]:
        """The states of the next record, uint8 (channels,), and its relative deltas as codes.

        Codes are int16 (statistics, channels of all variables).
        """
        self._seen |= _nonzero(codes)
        self._codes.append(codes)
        self._measured.append(self._seen & self._kernels)
        steps = np.arange(len(self._codes))
        before_quiet = states_before_quiet(
            np.stack(self._codes, axis=1),
            steps,
            steps,
            measured=np.stack(self._measured),
            audited=True,
            follows=self._follows,
        )[-1:]
        delta = relative_delta(codes)[None]
        limits, self._carry = limits_after(self._carry, delta, before_quiet)
        return quiet_below(before_quiet, limits, self._limit)[0], delta[0]
