"""Numbers as the page writes them, written a second time."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from tests.oracle.plain import (
    FROZEN,
    MOVING,
    NONFINITE,
    PRUNED,
    QUIET,
    REACTIVATED,
    STATES,
    Figures,
)

LEGEND = (MOVING, QUIET, FROZEN, PRUNED, REACTIVATED)
TITLES = {
    "moving": "Still moving", "quiet": "Quiet", "frozen": "Frozen", "pruned": "Pruned",
    "reactivated": "Reactivated", "violated": "Violated", "sparsity": "Sparsity",
    "delta": "Mean Δ of moving",
}  # fmt: skip
DASH, MINUS = "–", "−"


def fixed(number: float, digits: int) -> str:
    """As toFixed: of two that are as near the larger one."""
    return str(Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def precise(number: float, digits: int) -> float:
    """As toPrecision."""
    if number == 0:
        return 0.0
    place = Decimal(number).adjusted() - digits + 1
    return float(Decimal(number).quantize(Decimal(1).scaleb(place), ROUND_HALF_UP))


def share(part: float, whole: float, fine: bool = False) -> str:
    if not whole > 0:
        return DASH
    if part in (0, whole):
        return "0%" if part == 0 else "100%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1%"
    if percent > 99.9:
        return ">99.9%"
    if percent < 10 or (fine and percent < 100):
        return f"{fixed(percent, 1)}%"
    return f"{math.floor(percent * 10) / 10:.1f}%" if percent > 99 else f"{fixed(percent, 0)}%"


def short(number: float) -> str:
    """JavaScript's shortest text of a number from 0.01 to 10,000."""
    return str(int(number)) if number == int(number) else repr(number)


def number(value: float) -> str:
    if math.isnan(value):
        return DASH
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    return short(precise(value, 3)) if 0.01 <= value < 10_000 else power(value)


def power(size: float) -> str:
    exponent = math.floor(math.log10(size) + 1e-9)
    mantissa = fixed(size / 10.0**exponent, 1)
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    if exponent == 0 and mantissa == "1.0":
        return "1"
    ten = "10" + str(exponent).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))
    return ten if mantissa == "1.0" else f"{mantissa}×{ten}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def overlap(value: float) -> str:
    if math.isnan(value):
        return DASH
    if 0 < value < 0.005:
        return "<.01"
    return ">.99" if 0.995 <= value < 1 else fixed(value, 2)


def steps(figures: Figures) -> str:
    if figures.oldest == figures.step:
        return f"step {figures.step:,}"
    return f"steps {figures.oldest:,} to {figures.step:,}"


def sparsity(figures: Figures) -> str | None:
    return share(figures.pruned, figures.prunable, True) if figures.prunable else None


def aside(figures: Figures | None, step: int) -> bool:
    """Whether figures are of another step than the one that is read."""
    return figures is not None and {figures.oldest, figures.step} != {step}


def largest(figures: Figures | None, step: int) -> str:
    """The head of a run."""
    if figures is None or figures.total == 0:
        return "no record yet"
    first, second = sorted((*LEGEND, NONFINITE), key=lambda state: -figures.counts[state])[:2]
    some = [first, second] if figures.counts[second] and not aside(figures, step) else [first]
    parts = [f"{share(figures.counts[x], figures.total)} {STATES[x]}" for x in some]
    return " · ".join([*parts, *([steps(figures)] if aside(figures, step) else [])])


def shares(figures: Figures | None) -> str:
    """The bar of a run, for those who can't see it."""
    if figures is None or figures.total == 0:
        return "no record yet"
    parts = [
        f"{share(figures.counts[state], figures.total)} {STATES[state]}"
        for state in (*LEGEND, NONFINITE)
        if figures.counts[state]
    ]
    if figures.violated:
        parts.append(f"{plural(figures.violated, 'channel')} violated")
    if figures.pruned:
        parts.append(f"sparsity {sparsity(figures)}")
    return ", ".join(parts)


def measure(figures: Figures | None, which: str) -> float:
    if figures is None:
        return math.nan
    if which == "sparsity":
        return figures.pruned / figures.prunable if figures.prunable else math.nan
    if which == "delta":
        return figures.mean_delta
    count = figures.violated if which == "violated" else figures.counts[STATES.index(which)]
    return count / figures.total


def measured(figures: Figures | None, which: str) -> str:
    value = measure(figures, which)
    if math.isnan(value):
        return "no value"
    return number(value) if which == "delta" else share(value, 1, True)


def difference(own: Figures | None, base: Figures | None, which: str) -> str:
    """How far a run is from the baseline."""
    a, b = measure(own, which), measure(base, which)
    if which == "delta":
        if not (a > 0 and b > 0):
            return DASH
        decades = math.log10(a / b)
        times = number(precise(10 ** abs(decades), 2))
        return "the same" if times == "1" else f"{'×' if decades > 0 else '÷'}{times}"
    apart = a - b
    if math.isnan(apart):
        return DASH
    if apart == 0:
        return "the same"
    points = 100 * abs(apart)
    text = "<0.1" if points < 0.1 else fixed(points, 1)
    return f"{'+' if apart > 0 else MINUS}{text} pp"
