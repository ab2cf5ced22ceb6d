"""Strips are carried where the Network view is scrolled, and only new ones are drawn: it looks as if all were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab
from tests.e2e.made_logs import made_tab

PLACES = ((0, 0), (40, 137), (330, 700), (290, 640), (0, 9000))
"""Pixels to the right and down, each after the one before; a column has 92, a row 27."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """More runs and layers than a window has room for."""
    with made_tab("many", tmp_path_factory.mktemp("scrolled")) as tab:
        yield tab


# Whole pixels are easier to carry; the wheel turns at that ratio.
@pytest.mark.parametrize("ratio", [1.5, pytest.param(1, marks=pytest.mark.prove)])
def test_scrolled_strips_are_those_that_are_drawn_afresh(many: Tab, ratio: float) -> None:
    found = clean(many.drive("scrolledNetwork", places=PLACES, ratio=ratio))
    for place, seen in zip(PLACES, found, strict=True):
        assert seen["scrolled"] == seen["afresh"], place
        first = place[0] // 92
        assert f"sweep/run_{first:02d}" in seen["scrolled"], place
        pixels = [one for rows in seen["scrolled"].values() for one in rows.values()]
        # Not all alike: neither blank nor one run's picture in each column.
        assert len(set(pixels)) > len(seen["scrolled"]), place
        assert len(pixels) > 100, place


TURNS = (240, 240, 60, 1500, -240, -300, 240, 4000, -240, -9000)
"""Pixels that the wheel goes down: some to what is drawn already, some further."""


def test_what_is_in_sight_is_drawn_in_each_frame(many: Tab) -> None:
    found = clean(many.drive("wheeled", turns=TURNS))
    assert found["gaps"] == []
    tops = found["tops"]
    assert len(set(tops)) > 5
    # A turn moves the picture some frames later.
    assert len(tops) > 4 * len(TURNS)
    assert len(found["sums"]) > 100
    assert {row: sums for row, sums in found["sums"].items() if len(sums) > 1} == {}


def test_rows_that_become_fewer_are_in_sight(many: Tab) -> None:
    found = clean(many.drive("filteredBelow", filter="^stage4/block3/conv3$"))
    assert found["few"] == ["Matching layers", "stage4/block3/conv3"]
    assert len(found["all"]) > len(found["few"])
    assert len(found["all"]) > 15


def test_the_tooltip_tells_of_the_row_that_has_come_under_the_pointer(many: Tab) -> None:
    turns = [(0, 0), (0, 240), (0, 270), (0, -81), (0, 2000)]
    found = clean(many.drive("pointedRows", turns=turns))
    assert [seen["told"] for seen in found] == [seen["row"] for seen in found]
    assert len({seen["row"] for seen in found} - {None}) == len(turns)
