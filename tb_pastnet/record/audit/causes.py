"""The likely cause of a violation, from facts only: each cause is a row of a table.

Computed causes come first: a moving average or weight decay whose numbers explain the movement.
Then come observed ones: weights were set, a compile was or wasn't made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ENFORCED, DECLARED, FLAG = "enforced", "declared", "flag"
"""What holds weights: masks on the optimizer, a declaration, or a flag."""

MOST_UPDATES = 10_000
"""Updates that weight decay is computed over; longer intervals between two checks stay unknown."""

_UNEXPLAINED = 0.05
"""The share of a movement that weight decay may leave unexplained, apart from rounding."""

_TINY = 1e-30
"""Slots below it have lost their precision."""


@dataclass(frozen=True)
class Facts:
    """Facts about held elements of one variable that moved.

    Attributes:
        was: their expected values, in the variable's dtype, shape (n,).
        current: their current values.
        held_by: ENFORCED, DECLARED or FLAG.
        assigned: the variable was set outside of a compiled step since the last check.
        replaced: the optimizer isn't the one from when they were held, or has no hook.
        bypassed: the optimizer made updates without these masks in its hook.
        still_trained: the optimizer trains the variable, and the step wasn't compiled again since
            the variable was set not to be trainable.
        constrained: the constraint of the weight yields its current value.
        elsewhere: the optimizer of another model has made updates, and trains the weight.
        untrained: no known optimizer trains the weight.
        gradient_left: the optimizer made updates while the weight had a gradient, although its flag
            is set; None if that isn't known, or the gradient is zero.
        gradient_zero: it made such updates, but with a gradient of zeros.
        gradient: the moved elements have a gradient now, though they should have none.
        unmasked: the graph has an update of the variable outside the masks.
        stateless: the optimizer has no slots of the variable, though it has of others.
        average: the optimizer's moving average of them, if it overwrites weights with it.
        decay: the optimizer's weight decay of this variable; NaN if there may be one.
        rates: learning rates of each update in which they may have moved; several if the number of
            updates is unknown.
        slots: the optimizer's slots of some held elements, from when they were held (NaN where it
            had none) and now.
        betas: the optimizer's factors, by which slots decay.
        updates: the number of updates between the two.
    """

    was: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    current: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    held_by: str = DECLARED
    assigned: bool = False
    replaced: bool = False
    bypassed: bool = False
    still_trained: bool = False
    constrained: bool = False
    elsewhere: bool = False
    untrained: bool = False
    gradient_left: bool | None = None
    gradient_zero: bool = False
    gradient: bool = False
    unmasked: bool = False
    stateless: bool = False
    average: Array | None = None
    decay: float = 0.0
    rates: Sequence[Array] = ()
    slots: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    betas: Sequence[float] = ()
    updates: int = 0


class Cause(NamedTuple):
    """A row of the table: its name is a key of `core.violation.CAUSES`.

    `held_by` lists what may hold the weights that it can move, `applies` tests the facts.
    """

    name: str
    held_by: tuple[str, ...]
    applies: Callable[[Facts], bool]


def cause_of(facts: Facts) -> str:
    """Names the likely cause, by the first row of the table that applies; else "unknown"."""
    rows = (row for row in TABLE if facts.held_by in row.held_by)
    return next((row.name for row in rows if row.applies(facts)), "unknown")


def _overwritten(facts: Facts) -> bool:
    """The average follows the overwritten weights, so it may be off by some roundings."""
    if facts.average is None or not facts.current.size:
        return False
    off = abs(_wide(facts.current) - _wide(facts.average))
    return bool((off <= 4 * _spacing(facts.current)).all())


def _decays(facts: Facts) -> bool:
    for rates in (*facts.rates, *_fewer(facts)):
        decayed = _decayed(facts, rates)
        if decayed is None:
            continue
        moved = abs(_wide(facts.current) - _wide(facts.was)).sum()
        off = abs(_wide(facts.current) - _wide(decayed))
        # A compiled step may round differently, once per update.
        rounding = np.minimum(len(rates), 4) * _spacing(facts.was).sum()
        if 0 < moved < np.inf and off.sum() <= _UNEXPLAINED * moved + min(rounding, moved / 2):
            return True
    return False


def _fewer(facts: Facts) -> list[Array]:
    """As many of the updates as the movement takes, where they need a gradient, at the mean rate.

    A gradient may have reached held weights in a few updates only.
    """
    rates = min(facts.rates, key=len, default=np.zeros(0))
    if not (facts.gradient_left or facts.gradient_zero) or not rates.any() or not facts.decay:
        return []
    was, current, mean = _wide(facts.was), _wide(facts.current), float(rates.mean())
    with np.errstate(all="ignore"):
        count = float((1 - (current @ was) / (was @ was)) / (mean * facts.decay))
    return [np.full(round(count), mean)] if 0.5 < count < len(rates) else []


def _decayed(facts: Facts, rates: Array) -> Array | None:
    """The values that weight decay by itself would have produced, in Keras's arithmetic."""
    if not facts.decay or not 0 < len(rates) <= MOST_UPDATES:
        return None
    kind = facts.was.dtype.type
    value, decay = facts.was, kind(facts.decay)
    for rate in rates:
        value = value - value * decay * kind(rate)
    return value


def _fades(facts: Facts) -> bool:
    """No gradient arrives: slots only decay, all by one factor."""
    return any(_faded(begin, end, facts) for begin, end in facts.slots.values())


def _faded(begin: Array, end: Array, facts: Facts) -> bool:
    rounding = facts.updates * _spacing(end)
    begin, end = _wide(begin), _wide(end)
    large = (abs(begin) > _TINY) & (abs(end) > _TINY)
    begin, end, rounding = begin[large], end[large], rounding[large]
    if not len(begin) or facts.updates < 1 or not np.isfinite([begin, end]).all():
        return False
    factor = float((end / begin).mean())
    if not 0 < factor < 1 or (abs(end - factor * begin) > 1e-3 * abs(end) + rounding).any():
        return False
    is_beta = any(abs(beta**facts.updates - factor) <= 0.01 * factor for beta in facts.betas)
    return is_beta or len(begin) >= 4


def _coasts(facts: Facts) -> bool:
    """Only slots that aren't zero are left to move them."""
    return facts.gradient_zero and bool(facts.betas) and not _still(facts)


def _grows(facts: Facts) -> bool:
    """A gradient arrived: without one no slot becomes larger."""
    return any((abs(end) > 1.001 * abs(begin) + _TINY).any() for begin, end in facts.slots.values())


def _still(facts: Facts) -> bool:
    """No gradient ever arrived, so no optimizer moved them."""
    slots = [end for _, end in facts.slots.values() if end.size]
    # Decay that could not be computed, and an average, need no gradient.
    moves = bool(facts.decay) or facts.average is not None
    return bool(slots) and not moves and all((abs(end) <= _TINY).all() for end in slots)


def _decays_more(facts: Facts) -> bool:
    """Weight decay and momentum moved them, weight decay more."""
    decayed = (_decayed(facts, rates) for rates in facts.rates)
    by_decay = next((value for value in decayed if value is not None), None)
    if by_decay is None or not _fades(facts):
        return False
    moved = abs(_wide(by_decay) - _wide(facts.was)).sum()
    rest = abs(_wide(facts.current) - _wide(by_decay)).sum()
    return bool(moved > rest)


def _wide(values: Array) -> npt.NDArray[np.float64]:
    return np.asarray(values, np.float64)


def _spacing(values: Array) -> npt.NDArray[np.float64]:
    """The distance from each value to the next of its dtype, which may be bfloat16."""
    return _wide(np.spacing(abs(values)))


# In a step that goes through the hook, the optimizer can't move what masks enforce.
TABLE = (
    Cause("ema", (DECLARED, FLAG), _overwritten),
    Cause("weight_decay", (DECLARED, FLAG), _decays),
    Cause("unmasked_update", (ENFORCED,), lambda facts: facts.unmasked),
    Cause("gradient", (DECLARED,), lambda facts: facts.gradient),
    Cause("loaded", (ENFORCED, DECLARED, FLAG), lambda facts: facts.assigned),
    Cause("written", (DECLARED,), lambda facts: facts.gradient_left is False),
    Cause("optimizer_replaced", (ENFORCED, DECLARED), lambda facts: facts.replaced),
    Cause("bypassed", (ENFORCED,), lambda facts: facts.bypassed),
    Cause("not_recompiled", (FLAG,), lambda facts: facts.still_trained),
    Cause("constraint", (DECLARED, FLAG), lambda facts: facts.constrained),
    Cause("written", (ENFORCED,), lambda facts: facts.held_by == ENFORCED),
    Cause("another_model", (FLAG,), lambda facts: facts.elsewhere),
    Cause("written", (FLAG,), lambda facts: facts.untrained),
    Cause("weight_decay", (DECLARED,), _decays_more),
    Cause("momentum", (DECLARED,), _fades),
    Cause("weight_decay", (DECLARED,), lambda facts: facts.gradient_zero and facts.decay != 0),
    Cause("momentum", (DECLARED,), _coasts),
    Cause("stale_gradient", (DECLARED,), lambda facts: facts.gradient_left is True),
    Cause("another_model", (DECLARED,), lambda facts: facts.elsewhere and not facts.updates),
    Cause("gradient", (DECLARED,), _grows),
    Cause("written", (DECLARED,), _still),
    Cause("unmasked_update", (DECLARED,), lambda facts: facts.stateless),
)
