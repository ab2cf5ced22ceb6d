"""States of channels by plain loops over records, as the design words them: slow, and apart.

Nothing of `tb_pastnet.core.channel_states` is used but the names of states and marks. Values are codes of
the logarithmic grid; the delta that is ten times the threshold is 53 codes, 9.94 times, above the
first one that isn't quiet.
"""

from __future__ import annotations

import bisect
import functools

import numpy as np

from tb_pastnet.core import statistics as s
from tb_pastnet.core.channel_states import (
    FROZEN,
    MOVING,
    NO_DATA,
    NONFINITE,
    PRUNED,
    QUIET,
    REACTIVATED,
    VIOLATED,
)
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO

TENFOLD = 53
_SMALLEST, _LARGEST = -1074 * 16, 1024 * 16


@functools.cache
def first_loud(threshold: float) -> int:
    """The smallest code that isn't under the threshold."""
    grid = range(_SMALLEST, _LARGEST)
    return grid[bisect.bisect_left(grid, threshold, key=lambda code: 2.0 ** (code / 16))]


def is_quiet(code: int, threshold: float) -> bool:
    """Whether a relative delta is under the threshold; nothing is under none."""
    return threshold > 0 and (code == ZERO or code < first_loud(threshold))


def is_tenfold(code: int, threshold: float) -> bool:
    """Whether a relative delta is ten times the threshold or more; NaN counts as that."""
    return code in (NAN, INFINITE) or code >= first_loud(threshold) + TENFOLD


def slow_relative_delta(delta: int, past: int, norm: int, bad: int) -> int:
    """The code of the relative delta: 0/0 is 0, x/0 infinite; none with NaN or infinity.

    A norm that a past of zeros doesn't explain is that of a past that wasn't finite either.
    """
    if NAN in (delta, past) or bad not in (ZERO, NAN):
        return NAN
    if delta == past == ZERO != norm:
        return NAN
    if delta == ZERO:
        return ZERO
    if INFINITE in (delta, past):
        return NAN if delta == past else INFINITE if delta == INFINITE else ZERO
    return INFINITE if past == ZERO else delta - past


def slow_quiet(
    deltas: list[int], trained: list[bool], threshold: float, patience: int
) -> list[bool]:
    """Whether a channel is quiet at each record.

    Args:
        deltas: codes of its relative delta.
        trained: whether it was finite now and in the past, and neither frozen nor pruned.
        threshold: relative delta under which it is quiet; 0 or less: it never is.
        patience: quiet records until it is in, restless ones until it is out.
    """
    told: list[bool] = []
    is_in, never_moved, quiet, loud = False, True, 0, 0
    for delta, trains in zip(deltas, trained, strict=True):
        calm = trains and is_quiet(delta, threshold)
        never_moved = never_moved and calm and delta == ZERO
        quiet = quiet + 1 if calm else 0
        loud = 0 if calm else loud + 1
        if quiet >= patience or never_moved:
            is_in = True
        elif not trains or threshold <= 0 or loud >= patience or is_tenfold(delta, threshold):
            is_in = False
        told.append(is_in)
    return told


def slow_states(
    codes: np.ndarray,
    steps: np.ndarray,
    past_steps: np.ndarray,
    *,
    kernel: bool,
    threshold: float,
    patience: int = 5,
    audited: bool = False,
) -> np.ndarray:
    """The state of each channel at each record, with its marks.

    Args:
        codes: int16 (statistics, records, channels).
        steps: of the records.
        past_steps: of the values that they are compared with.
        kernel: whether channels of zeros count as pruned without a mask.
        threshold: relative delta under which a channel is quiet.
        patience: records.
        audited: whether no record is marked as violated.
    """
    _, records, channels = codes.shape
    found = np.zeros((records, channels), np.uint8)
    rows: dict[str, list[list[int]]] = {
        name: codes[row].tolist() for row, name in enumerate(s.STATISTICS)
    }
    held = [[False] * channels for _ in range(records)]
    by_mask = [[False] * channels for _ in range(records)]
    seen = [False] * channels
    for t in range(records):
        for c in range(channels):
            value = {name: rows[name][t][c] for name in s.STATISTICS}
            seen[c] = seen[c] or value["norm"] != ZERO or value["past_norm"] not in (ZERO, NAN)
            finite = value["nonfinite"] == ZERO
            masked = value["kept"] == ZERO
            pruned = masked or (kernel and seen[c] and value["norm"] == ZERO)
            by_mask[t][c] = masked or value["trainable"] == ZERO
            held[t][c] = pruned or by_mask[t][c] or not finite
            if not finite:
                found[t, c] = NONFINITE
            elif pruned:
                found[t, c] = PRUNED
            elif by_mask[t][c]:
                found[t, c] = FROZEN
            elif any(held[before][c] for before in range(max(t - patience, 0), t)):
                found[t, c] = REACTIVATED
            else:
                found[t, c] = NO_DATA if value["past_norm"] == NAN else MOVING
    for c in range(channels):
        one = {name: [rows[name][t][c] for t in range(records)] for name in s.STATISTICS}
        of = (one[name] for name in ("delta_norm", "past_norm", "norm", "nonfinite"))
        deltas = list(map(slow_relative_delta, *of))
        trained = [not held[t][c] and deltas[t] != NAN for t in range(records)]
        quiet = slow_quiet(deltas, trained, threshold, patience)
        found[np.array(quiet, bool) & (found[:, c] == MOVING), c] = QUIET
        since_hold = [by_mask[t][c] for t in range(records)]
        moved = [not audited and changed != ZERO for changed in one["changed"]]
        found[slow_violated(since_hold, moved, steps, past_steps), c] |= VIOLATED
    return found


def slow_violated(
    held: list[bool], moved: list[bool], steps: np.ndarray, past_steps: np.ndarray
) -> list[int]:
    """The records at which a channel moved that was held from its past value's step on."""
    found = []
    for t, step in enumerate(past_steps.tolist()):
        before = [i for i, one in enumerate(steps.tolist()) if one <= step]
        if moved[t] and before and all(held[min(before[-1], t) : t + 1]):
            found.append(t)
    return found
