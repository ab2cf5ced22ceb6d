"""Numbers as the page writes them, made here from counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

PICTURES = ["PNG of the picture", "SVG of the picture", "Copy the picture"]
"""What the download menu of every view begins with."""

LEGEND = ("moving", "quiet", "frozen", "pruned", "reactivated")
"""The states in the order of the legend and of the table."""


def percent_text(value: float, digits: str) -> str:
    """As JavaScript rounds."""
    return f"{Decimal(value).quantize(Decimal(digits), ROUND_HALF_UP)}%"


def share_text(part: int, whole: int) -> str:
    """A share of a whole; it reads 0% and 100% only where it is exactly that."""
    percent = 100 * part / whole
    if part in (0, whole):
        return f"{percent:.0f}%"
    if percent < 0.1 or percent > 99.9:
        return "<0.1%" if percent < 0.1 else ">99.9%"
    if percent > 99:
        return f"{int(10 * percent) / 10:.1f}%"
    return percent_text(percent, "0.1" if percent < 10 else "1")


def total_of(counts: Counter[str]) -> int:
    """Channels in any state."""
    return sum(counts[state] for state in LEGEND)


def head_text(counts: Counter[str], record: int, step: int) -> str:
    """The head of a run: the two largest states, or one and the step of the record, if that isn't the cursor's."""
    first, second = sorted(LEGEND, key=lambda state: -counts[state])[:2]
    shown = [first] if counts[second] == 0 or record != step else [first, second]
    parts = [f"{share_text(counts[state], total_of(counts))} {state}" for state in shown]
    return " · ".join([*parts, *([f"step {record:,}"] if record != step else [])])


def shares_text(counts: Counter[str]) -> str:
    """All states that there are, in words, of channels of as many weights each; none without a record."""
    if not total_of(counts):
        return "no record yet"
    parts = [
        f"{share_text(counts[state], total_of(counts))} {state}"
        for state in LEGEND
        if counts[state]
    ]
    if found := counts["violated"]:
        parts.append(f"{found} channel{'s' if found > 1 else ''} violated")
    if gone := counts["pruned"]:
        parts.append(f"sparsity {percent_text(100 * gone / total_of(counts), '0.1')}")
    return ", ".join(parts)


def legend_texts(counts: Counter[str]) -> list[str]:
    """The numbers of the legend, that of the violated channels last."""
    shown: Sequence[str] = (*LEGEND, "violated") if counts["violated"] else LEGEND
    return [share_text(counts[one], total_of(counts)) for one in shown]


def cell_texts(counts: Counter[str]) -> list[str]:
    """The cells of a row of the network's table, from the states to the violated channels."""
    if not total_of(counts):
        return ["–"] * (len(LEGEND) + 1)
    states = [f"{counts[one]} ({share_text(counts[one], total_of(counts))})" for one in LEGEND]
    return [*states, str(counts["violated"])]
