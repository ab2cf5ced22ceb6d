"""Numbers as text: what they count, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence


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
