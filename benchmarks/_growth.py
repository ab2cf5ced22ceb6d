"""How a cost grows with a size: a curve, and its exponent, which is 1 where it is linear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks._pairs import exponent
from benchmarks._rows import Rows

STEEP = 1.15
"""An exponent above it isn't linear any more, noise allowed for."""

LAST = 3
"""Sizes whose exponent is held against the bar: at the small end a cost is mostly constant."""


def curve(
    rows: Rows,
    what: str,
    sizes: Sequence[int],
    series: Mapping[str, Sequence[float]],
    unit: str = "ms",
    bars: Mapping[str, float | None] | None = None,
) -> None:
    """Prints a curve and its exponents, and adds both to the rows.

    Args:
        rows: of the benchmark.
        what: the size that grows, such as "weights".
        sizes: smallest first.
        series: what was measured at each size, by name.
        unit: of what was measured.
        bars: the most that an exponent at the end may be, by name, None for any; else `STEEP`.
    """
    title = f"Growth with {what}"
    print(title)
    for name, values in series.items():
        for size, value in zip(sizes, values, strict=True):
            rows.line(title, name, value, unit, column=f"{size:,}")
        # Never 0, whose logarithm isn't a number.
        cost = list(np.maximum(values, 1e-9))
        whole = exponent(list(sizes), cost)
        end = exponent(list(sizes[-LAST:]), cost[-LAST:])
        limit = STEEP if bars is None else bars.get(name, STEEP)
        rows.line(title, name, whole, column="exponent")
        rows.line(title, name, end, column="exponent at the end", bar=limit)
