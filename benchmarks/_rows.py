"""What a benchmark found, in rows of one shape: printed, kept as JSON, shown in tables.

Only the standard library is needed: `dev.py bench` makes tables where NumPy may be missing.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import textwrap
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import _machine

INTO = "PASTNET_ROWS"
"""The environment variable that names the file to keep rows in."""


class Row(NamedTuple):
    """One figure.

    Attributes:
        table: the title of the table that it stands in.
        name: its row there.
        column: its column there; "" where there is only one.
        unit: of the value, such as "ms" or "% of a step"; "" for a ratio or a number.
        value: the median; None where it couldn't be measured.
        low: the lower quartile, or the value where it was measured once.
        high: the upper quartile, or the value.
        bar: the most that we allow; None where nothing is promised.
        met: whether the bar is met; None without one, or without a value.
        error: why there is no value.
    """

    table: str
    name: str
    column: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    bar: float | None = None
    met: bool | None = None
    error: str = ""

    @property
    def cell(self) -> str:
        """What stands in a table."""
        if self.value is None or self.low is None or self.high is None:
            return f"not measured: {textwrap.shorten(self.error, 120, placeholder=' …')}"
        text = _with_unit(number(self.value), self.unit)
        if self.low < self.high:
            text += f" ({number(self.low)} to {number(self.high)})"
        if self.bar is not None:
            text += f", bar {number(self.bar)}{'' if self.met else ' MISSED'}"
        return text


class Rows(list[Row]):
    """The rows of one benchmark.

    Args:
        benchmark: its name.
    """

    def __init__(self, benchmark: str) -> None:
        super().__init__()
        self._benchmark = benchmark
        self._start = time.monotonic()

    def add(
        self,
        table: str,
        name: str,
        values: float | Iterable[float],
        unit: str = "",
        *,
        column: str = "",
        bar: float | None = None,
    ) -> Row:
        """Adds a figure.

        Args:
            table: the title of its table.
            name: its row there.
            values: measured once, or several times.
            unit: of the values.
            column: its column in the table.
            bar: the most that the median may be.
        """
        found = list(values) if isinstance(values, Iterable) else [values]
        low, middle, high = quartiles([float(value) for value in found])
        met = None if bar is None else middle <= bar
        self.append(Row(table, name, column, unit, middle, low, high, bar, met))
        return self[-1]

    def fail(self, table: str, name: str, error: object, *, column: str = "") -> Row:
        """Adds a figure that couldn't be measured.

        Args:
            table: the title of its table.
            name: its row there.
            error: why; of several lines the last that says something.
            column: its column in the table.
        """
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = (lines or ["no reason was given"])[-1]
        self.append(Row(table, name, column, "", None, None, None, error=text))
        return self[-1]

    def line(
        self,
        table: str,
        name: str,
        values: float | Iterable[float],
        unit: str = "",
        *,
        column: str = "",
        bar: float | None = None,
    ) -> None:
        """Adds a figure and prints it; the arguments are those of `add`."""
        row = self.add(table, name, values, unit, column=column, bar=bar)
        print(f"  {', '.join(filter(None, (name, column))):58} {row.cell}", flush=True)

    def finish(self, *, missed: bool = False) -> int:
        """Keeps the rows where PASTNET_ROWS asks for it.

        Args:
            missed: whether something is wrong that no bar says.

        Returns:
            The exit code: 1 if a bar is missed, or something else is wrong.
        """
        into = os.environ.get(INTO)
        if into:
            body = {
                "benchmark": self._benchmark,
                "machine": _machine.words(),
                "versions": _machine.versions(),
                "commit": _machine.commit(),
                "seconds": round(time.monotonic() - self._start, 1),
                "rows": [row._asdict() for row in self],
            }
            text = json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)
            Path(into).write_text(text, "utf-8")
        return int(missed or any(row.met is False for row in self))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def number(value: float) -> str:
    """A number with three digits that count, and never an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text and value == round(value) else text


def read(body: dict[str, Any]) -> list[Row]:
    """The rows of a benchmark that were kept."""
    return [Row(**row) for row in body["rows"]]


def tables(rows: Iterable[Row]) -> list[str]:
    """Markdown: each table with its title, rows and columns in the order in which they came."""
    by_title: dict[str, list[Row]] = {}
    for row in rows:
        by_title.setdefault(row.table, []).append(row)
    lines: list[str] = []
    for title, own in by_title.items():
        columns = list(dict.fromkeys(row.column for row in own))
        names = list(dict.fromkeys(row.name for row in own))
        cells = {(row.name, row.column): row.cell for row in own}
        lines += [
            "",
            f"**{title}**",
            "",
            _line(["", *columns]),
            _line(["---"] * (len(columns) + 1)),
        ]
        lines += [_line([name, *(cells.get((name, one), "") for one in columns)]) for name in names]
    return lines[1:]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _with_unit(value: str, unit: str) -> str:
    return f"{value} {unit}".rstrip()
