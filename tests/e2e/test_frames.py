"""The page in frames as notebooks have them."""

from __future__ import annotations

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab
from tests.e2e.stories import STORY_RUNS

LAYER = "block/conv2"


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (1200, 500),
        *(pytest.param(800, height, marks=pytest.mark.prove) for height in (400, 600)),
    ],
)
def test_each_view_fits_a_notebook_and_a_narrow_window(tab: Tab, width: int, height: int) -> None:
    found = clean(tab.drive("small", layer=LAYER, width=width, height=height))
    assert len(found) == 5
    for name, seen in found.items():
        assert (name, seen["axe"], seen["outside"], seen["wide"]) == (name, [], [], 0)
        wide = width == 1200
        assert (seen["runs"], seen.get("opened")) == (
            (STORY_RUNS, None) if wide else (0, STORY_RUNS)
        )
        if "layer" in name:
            assert min(seen["plots"]) > 300
        if "network" in name:
            # One of all strips that are in sight, one of the dots.
            assert len(seen["plots"]) == 2
            assert seen["plots"][0] >= 92 * seen["columns"] - 10
            assert 1 <= seen["columns"] <= STORY_RUNS
