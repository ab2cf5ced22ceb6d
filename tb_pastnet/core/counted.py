"""Numbers and names for sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_NAMED = 3
"""Names that a sentence has; the others are counted."""

_UNITS = "bytes", "kB", "MB", "GB", "TB"


def counted(count: int, noun: str) -> str:
    """For example "1 record", "2,000 records"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def stretches(numbers: Sequence[int]) -> str:
    """Ascending numbers as text: neighbours as a stretch.

    Example:
        >>> stretches([1, 4, 5, 6, 7, 9])
        '1, 4 to 7 and 9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(texts[:-1]) + (" and " if len(texts) > 1 else "") + texts[-1]


def named(names: Iterable[str], noun: str = "layer") -> str:
    """Names for a sentence: the first three, and how many more there are."""
    listed = list(names)
    shown = listed if len(listed) <= _NAMED + 1 else listed[:_NAMED]
    if len(shown) < len(listed):
        return f"{', '.join(shown)} and {len(listed) - len(shown):,} more {noun}s"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def size_text(count: int) -> str:
    """A number of bytes for a sentence, in powers of 1,000.

    Example:
        >>> size_text(999), size_text(64_000_000), size_text(2_040_000_000)
        ('999 bytes', '64 MB', '2.04 GB')
    """
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
