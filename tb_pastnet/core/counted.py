"""A number and what it counts, as text."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """For example "1 record", "2,000 records"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
