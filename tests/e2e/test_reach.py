"""Buttons and fields at every width: nothing lies over them, none is off the edge or over words."""

from __future__ import annotations

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab

WIDTHS = (640, 700, 760, 900, 1000, 1001, 1100, 1200, 1280, 1281, 1440)


@pytest.mark.parametrize("view", ["findings", "network", "layer", "compare", "function"])
def test_what_can_be_clicked_is_in_reach_at_every_width(tab: Tab, view: str) -> None:
    at = {"v": view, "l": "block/conv2", "z": "10~30"}
    found = clean(tab.drive("reach", hash=at, widths=WIDTHS))
    assert {width: seen["lost"] for width, seen in found.items() if seen["lost"]} == {}
    assert {width: seen["covered"] for width, seen in found.items() if seen["covered"]} == {}
    assert min(seen["looked"] for seen in found.values()) >= 10
