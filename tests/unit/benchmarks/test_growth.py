from __future__ import annotations

import math

import pytest

from benchmarks._growth import STEEP, curve
from benchmarks._rows import Rows


@pytest.mark.parametrize(("power", "met"), [(0.5, True), (1.0, True), (1.5, False)])
def test_the_end_of_a_curve_may_not_be_steeper_than_linear(power, met):
    rows, sizes = Rows("some"), [10, 100, 1000, 10_000]
    # A constant cost hides how it grows, but at the large end.
    curve(rows, "weights", sizes, {"a record": [5.0, *(size**power for size in sizes[1:])]})
    cost, whole, end = rows[:4], rows[4], rows[5]
    assert [row.column for row in cost] == ["10", "100", "1,000", "10,000"]
    assert whole.column == "exponent"
    assert whole.bar is None
    assert (end.column, end.bar, end.met) == ("exponent at the end", STEEP, met)
    assert end.value == pytest.approx(power)


def test_a_bar_may_be_another_or_none_and_a_cost_of_0_is_no_fault():
    rows, sizes = Rows("some"), [1, 10, 100]
    bars = {"theirs": None, "ours": 3.0}
    curve(rows, "steps", sizes, {"theirs": [0.0, 0, 0], "ours": [1.0, 100, 10_000]}, bars=bars)
    ends = [row for row in rows if row.column == "exponent at the end"]
    assert [row.met for row in ends] == [None, True]
    assert all(math.isfinite(row.value) for row in rows)
