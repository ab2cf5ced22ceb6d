"""Numbers and names for sentences."""

from __future__ import annotations

from collections.abc import Iterable

_NAMED = 3
"""Names that a sentence has; the others are counted."""


def counted(count: int, noun: str) -> str:
    """For example "1 record", "2,000 records"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def named(names: Iterable[str], noun: str = "layer") -> str:
    """Names for a sentence: the first three, and how many more there are."""
    listed = list(names)
    shown = listed if len(listed) <= _NAMED + 1 else listed[:_NAMED]
    if len(shown) < len(listed):
        return f"{', '.join(shown)} and {len(listed) - len(shown):,} more {noun}s"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
