"""The likely cause of a violation, from evidence alone.

What can be computed goes first: a moving average or weight decay that explains the movement by its
numbers. Then what was seen to happen: weights set, a compile that was or wasn't made. The words are
those of `core.violation.CAUSES`; what nothing explains is "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MOST_UPDATES = 10_000
"""Updates that weight decay is computed over; longer intervals between two checks stay unknown."""

_UNEXPLAINED = 0.05
"""The share of a movement that weight decay may leave over, beside rounding."""

_TINY = 1e-30
"""Slots below it have lost their digits."""


@dataclass(frozen=True)
class Evidence:
    """What is known of some held elements of one variable that moved.

    Attributes:
        was: what they should be, of the variable's dtype, shape (n,).
        now: what they are.
        masked: masks hold them, else Keras's `trainable=False` does.
        enforced: the masks enforce, on the optimizer.
        assigned: the variable was set outside of a compiled step since the last check.
        replaced: the optimizer is another one than when they were held, or has no hook.
        bypassed: the optimizer made updates of which its hook doesn't know these masks.
        still_trained: the optimizer trains the variable, and the step wasn't compiled anew since it
            was set not to be trainable.
        average: the optimizer's moving average of them, where it overwrites weights by it.
        decay: the optimizer's weight decay of this variable.
        rates: learning rates of each update in which they may have moved; several where it isn't
            known how many these were.
        slots: what the optimizer keeps of some held elements, when they were held and now.
        betas: the optimizer's factors, by which slots decay.
        updates: how many updates lie between the two.
    """

    was: Array
    now: Array
    masked: bool = True
    enforced: bool = False
    assigned: bool = False
    replaced: bool = False
    bypassed: bool = False
    still_trained: bool = False
    average: Array | None = None
    decay: float = 0.0
    rates: Sequence[Array] = ()
    slots: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    betas: Sequence[float] = ()
    updates: int = 0


def cause_of(evidence: Evidence) -> str:
    """Names the likely cause.

    Args:
        evidence: of elements that moved since the last check.

    Returns:
        A key of `core.violation.CAUSES`.

    Example:
        >>> was = np.array([1, -2, 3], np.float32)
        >>> cause_of(Evidence(was, was * np.float32(0.999), decay=0.01, rates=[np.array([0.1])]))
        'weight_decay'
        >>> cause_of(Evidence(was, was + 1, decay=0.01, rates=[np.array([0.1])]))
        'unknown'
    """
    if evidence.enforced:
        # Around a step that goes through the hook nothing of the optimizer can move them.
        rules: tuple[str, ...] = ("loaded", "optimizer_replaced", "bypassed")
    elif evidence.masked:
        rules = ("ema", "weight_decay", "loaded", "optimizer_replaced", "momentum")
    else:
        rules = ("ema", "weight_decay", "loaded", "not_recompiled")
    found = (rule for rule in rules if _RULES[rule](evidence))
    cause = next(found, "unknown")
    return _larger(evidence) if cause == "momentum" else cause


def _ema(evidence: Evidence) -> bool:
    """The average follows what it overwrote, so that it may be off by some roundings."""
    if evidence.average is None:
        return False
    tolerance = 4 * _spacing(evidence.now)
    return _all(abs(_wide(evidence.now) - _wide(evidence.average)) <= tolerance)


def _weight_decay(evidence: Evidence) -> bool:
    for rates in evidence.rates:
        decayed = _decayed(evidence, rates)
        if decayed is None:
            continue
        moved = abs(_wide(evidence.now) - _wide(evidence.was)).sum()
        off = abs(_wide(evidence.now) - _wide(decayed))
        # A compiled step may round otherwise, once an update.
        rounding = np.minimum(len(rates), 4) * _spacing(evidence.was).sum()
        if 0 < moved < np.inf and off.sum() <= _UNEXPLAINED * moved + min(rounding, moved / 2):
            return True
    return False


def _decayed(evidence: Evidence, rates: Array) -> Array | None:
    """What only weight decay would have made, by the arithmetic of Keras."""
    if not evidence.decay or not 0 < len(rates) <= MOST_UPDATES:
        return None
    kind = evidence.was.dtype.type
    value, decay = evidence.was, kind(evidence.decay)
    for rate in rates:
        value = value - value * decay * kind(rate)
    return value


def _momentum(evidence: Evidence) -> bool:
    """No gradient arrives: slots only decay, all by one factor."""
    return any(_fades(then, now, evidence) for then, now in evidence.slots.values())


def _fades(then: Array, now: Array, evidence: Evidence) -> bool:
    rounding = evidence.updates * _spacing(now)
    then, now = _wide(then), _wide(now)
    large = (abs(then) > _TINY) & (abs(now) > _TINY)
    then, now, rounding = then[large], now[large], rounding[large]
    if not len(then) or evidence.updates < 1 or not np.isfinite([then, now]).all():
        return False
    factor = float((now / then).mean())
    if not 0 < factor < 1 or (abs(now - factor * then) > 1e-3 * abs(now) + rounding).any():
        return False
    known = any(abs(beta**evidence.updates - factor) <= 0.01 * factor for beta in evidence.betas)
    return known or len(then) >= 4


def _larger(evidence: Evidence) -> str:
    """Which of weight decay and momentum moved them more, where both did."""
    decayed = [_decayed(evidence, rates) for rates in evidence.rates]
    known = next((value for value in decayed if value is not None), None)
    if known is None:
        return "momentum"
    by_decay = abs(_wide(known) - _wide(evidence.was)).sum()
    rest = abs(_wide(evidence.now) - _wide(known)).sum()
    return "weight_decay" if by_decay > rest else "momentum"


_RULES = {
    "ema": _ema,
    "weight_decay": _weight_decay,
    "loaded": lambda evidence: evidence.assigned,
    "optimizer_replaced": lambda evidence: evidence.replaced,
    "bypassed": lambda evidence: evidence.bypassed,
    "not_recompiled": lambda evidence: evidence.still_trained,
    "momentum": _momentum,
}


def _wide(values: Array) -> npt.NDArray[np.float64]:
    return np.asarray(values, np.float64)


def _spacing(values: Array) -> npt.NDArray[np.float64]:
    """The distance from each value to the next of its dtype, which may be bfloat16."""
    return _wide(np.spacing(abs(values)))


def _all(flags: Array) -> bool:
    return bool(flags.size) and bool(flags.all())
