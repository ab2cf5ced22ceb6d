"""What commands print: harmless names, columns, sizes, accounts, overhead, progress; JSON."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO, TypeVar

from tb_pastnet.core.counted import size_text

NARROWEST, WIDEST = 60, 120
SHOWN = 10
"""Entries of a list that are printed."""

SCHEMA = 2
"""Version of the JSON of `check` and `report`."""

NO_RUNS = (
    "This log contains no runs of tb_pastnet. "
    "Pass the directory that training wrote to, or one above it."
)

DELAY = 2.0
"""Seconds before a bar is shown."""

_LONGEST = 40

Item = TypeVar("Item")


def printable(text: str) -> str:
    """A text with its control characters escaped: none reaches the terminal.

    Line breaks are escaped, too: a name can't begin a line.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def width() -> int:
    """Columns of the terminal, within reason."""
    return min(max(shutil.get_terminal_size((WIDEST, 24)).columns, NARROWEST), WIDEST)


def columns_of(text: str) -> int:
    """The width of a printable text, in columns."""
    return sum(
        0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def fit(text: str, columns: int) -> str:
    """A name as printable text of limited width; a longer one is cut in the middle."""
    # Only the ends of a very long name are looked at.
    text = printable(text if len(text) <= 2 * WIDEST else f"{text[:WIDEST]}…{text[-WIDEST:]}")
    if columns_of(text) <= columns:
        return text
    begin, end = text[: columns // 2], text[-(columns // 2) :]
    while columns_of(begin) + columns_of(end) + 1 > columns:
        if columns_of(begin) >= columns_of(end):
            begin = begin[:-1]
        else:
            end = end[1:]
    return f"{begin}…{end}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Lines of a table: names on the left, in the remaining space, numbers on the right."""
    sizes = [max(map(columns_of, cells)) for cells in zip(head, *rows, strict=True)]
    left = max(columns - sum(size + 2 for size in sizes[1:]), 12)
    names = [fit(row[0], left) for row in (head, *rows)]
    first = max(map(columns_of, names))
    lines = []
    for name, row in zip(names, (head, *rows), strict=True):
        cells = [f"  {cell:>{size}}" for cell, size in zip(row[1:], sizes[1:], strict=True)]
        lines.append((name + " " * (first - columns_of(name)) + "".join(cells)).rstrip())
    return lines


def size_of(count: float) -> str:
    """A number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def file_size(path: Path) -> int:
    """The bytes of a file; 0 if it can't be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def shortened(
    items: Sequence[Item], line: Callable[[Item], str], most: int = SHOWN
) -> Iterator[str]:
    """A line for each of the first items, and how many more there are."""
    yield from map(line, items[:most])
    if len(items) > most:
        yield f"and {len(items) - most:,} more; --json lists all"


def write_json(content: Mapping[str, Any], out: TextIO) -> None:
    """Prints everything as JSON."""
    json.dump({"schema": SCHEMA, **content}, out, indent=1, allow_nan=False)
    out.write("\n")


def account_text(account: Mapping[str, int]) -> str:
    """The fields of an account in words, without what is 0."""
    parts = [f"{n:,} {name}" for name, n in account.items() if n and name != "offered"]
    return f"{account['offered']:,} due" + (f": {', '.join(parts)}" if parts else "")


def overhead_text(cost: Mapping[str, Any]) -> str:
    """The recording overhead, in words."""
    share = cost["share"] or 0.0
    shown = "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
    times = f"{_seconds(cost['seconds'])} of {_seconds(cost['training'])}"
    writing = f"{_seconds(cost['writer'])} CPU in the writer thread"
    memory = f", {size_text(cost['memory'])} of memory" if cost["memory"] else ""
    return f"recording overhead {shown}: {times}, plus {writing}{memory}"


def _seconds(count: float) -> str:
    return f"{count:,.0f} s" if count >= 100 else f"{count:.2g} s"


class Bars:
    """Shows a bar on a stream where that is a terminal and tqdm is installed, else nothing."""

    def __init__(self, error: TextIO) -> None:
        self._error = error
        self._shown = error.isatty() and find_spec("tqdm") is not None

    def __call__(self, items: Iterable[Item], text: str, total: int) -> Iterable[Item]:
        """The same items, counted as they are taken; `text` says what is done with them."""
        if not self._shown:
            return items
        from tqdm import tqdm

        bar: Iterable[Item] = tqdm(
            items,
            fit(text, _LONGEST),
            total,
            leave=False,
            file=self._error,
            delay=DELAY,
            bar_format="{desc}: {percentage:3.0f}% |{bar:30}| {elapsed}",
        )
        return bar
