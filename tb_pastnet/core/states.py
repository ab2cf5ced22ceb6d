"""The state of each channel at each record, from what was recorded alone.

The first that fits:

1. pruned: all of it held at zero by the kept mask; without a mask only measured, for kernels that
   are zero now and in the past.
2. frozen: none of it may be changed by an update.
3. reactivated: it was one of these in one of the last `patience` records.
4. settled: its relative delta stayed under the threshold for `patience` records.
5. moving: everything else.

Beside the state stand two marks: violated (all of it was held since the step of its past value, and
yet bits changed) and non-finite. Nothing here knows of lineages: a resumed run is one series.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import statistics
from tb_pastnet.core.quantize import CODES_PER_OCTAVE, ZERO, Codes, ratio_codes

NO_DATA, MOVING, REACTIVATED, SETTLED, FROZEN, PRUNED = range(6)
NAMES = ("no data", "moving", "reactivated", "settled", "frozen", "pruned")
STATE = 0x07
NONFINITE = 0x40
VIOLATED = 0x80

THRESHOLD = 1e-4
"""Relative delta under which a channel counts as quiet, unless the viewer says otherwise."""

PATIENCE = 5
"""Records for which a channel has to be quiet, or stays reactivated."""

States = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def relative_delta(codes: Codes) -> Codes:
    """The relative delta ‖current - past‖ / ‖past‖ of each record and channel, as codes.

    Args:
        codes: int16 (8, records, channels) or any shape with 8 rows first.

    Returns:
        int16 codes without the first dimension: 0/0 is zero, x/0 infinite.
    """
    return ratio_codes(codes[statistics.DELTA_NORM], codes[statistics.PAST_NORM])


def channel_states(
    codes: Codes,
    steps: Integers,
    past_steps: Integers,
    *,
    measured: bool,
    audited: bool = False,
    threshold: float = THRESHOLD,
    patience: int = PATIENCE,
) -> States:
    """Tells the state of each channel at each record.

    Args:
        codes: int16 (8, records, channels), as recorded.
        steps: int64 (records,), increasing.
        past_steps: int64 (records,), the step of the past value of each record.
        measured: whether a channel of zeros counts as pruned without a mask (kernels only).
        audited: whether the writer looked for held weights that moved. Then none are marked here:
            a record can't tell them from weights that a command on the masks has set.
        threshold: relative delta under which a channel is quiet; 0 or less: none ever is.
        patience: records, at least 1.

    Returns:
        uint8 (records, channels): a state in the bits of `STATE`, and the marks `NONFINITE` and
        `VIOLATED`. A channel with NaN or infinity never settles and isn't measured as pruned.

    Example:
        >>> codes = np.full((8, 6, 1), ZERO, np.int16)
        >>> codes[[0, 1, 6, 7]] = 0  # norms, share kept and share trainable are 1
        >>> steps = np.arange(1, 7)
        >>> channel_states(codes, steps, steps - 1, measured=True)[:, 0].tolist()
        [1, 1, 1, 1, 3, 3]
    """
    state = unsettled_states(
        codes, steps, past_steps, measured=measured, audited=audited, patience=patience
    )
    return settle(state, relative_delta(codes), threshold=threshold, patience=patience)


def unsettled_states(
    codes: Codes,
    steps: Integers,
    past_steps: Integers,
    *,
    measured: bool,
    audited: bool = False,
    patience: int = PATIENCE,
) -> States:
    """Tells all of `channel_states` that doesn't depend on the threshold: none is settled.

    Args:
        codes: as there, like the others. Neither delta_norm nor delta_max is looked at, and
            changed only where it isn't audited.
        steps: int64 (records,).
        past_steps: int64 (records,).
        measured: whether a channel of zeros counts as pruned without a mask.
        audited: whether none are marked as violated.
        patience: records for which a channel stays reactivated.

    Returns:
        uint8 (records, channels), for `settle`.
    """
    finite = codes[statistics.NONFINITE] == ZERO
    masked = codes[statistics.KEPT] == ZERO
    held_by_mask = masked | (codes[statistics.TRAINABLE] == ZERO)
    pruned = masked
    if measured:
        zero = (codes[statistics.NORM] == ZERO) & (codes[statistics.PAST_NORM] == ZERO)
        pruned = masked | (finite & zero)
    held = pruned | held_by_mask

    state = np.full(held.shape, MOVING, np.uint8)
    if held.any():
        state[_any_before(held, patience)] = REACTIVATED
        state[held_by_mask] = FROZEN
        state[pruned] = PRUNED
    if not finite.all():
        state[~finite] |= NONFINITE
    if not audited and held_by_mask.any():
        moved = codes[statistics.CHANGED] != ZERO
        state[moved & _held_since(held_by_mask, steps, past_steps)] |= VIOLATED
    return state


def settle(state: States, delta: Codes, *, threshold: float, patience: int = PATIENCE) -> States:
    """Tells settled from moving channels, the one thing that depends on the threshold.

    Args:
        state: uint8 (records, channels) as from `unsettled_states`.
        delta: int16 (records, channels), codes of the relative delta.
        threshold: relative delta under which a channel is quiet; 0 or less: none ever is.
        patience: records, at least 1.

    Returns:
        A new array in which moving channels that were quiet for `patience` records are settled.

    Example:
        >>> moving = np.full((3, 1), MOVING, np.uint8)
        >>> settle(moving, np.full((3, 1), ZERO), threshold=1e-4, patience=2)[:, 0].tolist()
        [1, 3, 3]
    """
    quiet = (delta < quiet_limit(threshold)) & (state & np.uint8(NONFINITE) == 0)
    settled = _all_of_last(quiet, patience) & (state & np.uint8(STATE) == MOVING)
    # SETTLED - MOVING keeps the marks as they are.
    told: States = state + settled.astype(np.uint8) * np.uint8(SETTLED - MOVING)
    return told


def quiet_limit(threshold: float) -> int:
    """The code under which a relative delta is quiet.

    Args:
        threshold: relative delta under which a channel is quiet; 0 or less: none ever is.

    Example:
        >>> quiet_limit(0.5), quiet_limit(0.51), quiet_limit(0) == ZERO
        (-16, -15, True)
    """
    if threshold <= 0:
        return ZERO
    return max(math.ceil(math.log2(threshold) * CODES_PER_OCTAVE), ZERO + 1)


def _all_of_last(flags: Flags, count: int) -> Flags:
    """True where the flag held in this and the `count` - 1 records before."""
    result = flags.copy()
    result[: count - 1] = False
    for back in range(1, count):
        result[back:] &= flags[:-back]
    return result


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
