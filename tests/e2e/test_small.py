"""Narrow windows and long names: nothing leaves the window, and nothing that tells is cut off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import hostile as log
from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The log whose names are long and foreign."""
    logdir = tmp_path_factory.mktemp("small") / "logs"
    log.hostile(logdir)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, len(log.RUNS), log.RECORDS), "all records")
        yield tab


@pytest.mark.parametrize("size", [(430, 700), (720, 420), (1280, 700)])
def test_tooltips_stay_in_the_window(hostile: Tab, size: tuple[int, int]) -> None:
    width, height = size
    found = clean(hostile.drive("tooltips", hash={"v": "network"}, width=width, height=height))
    assert found == [0, 0]


@pytest.mark.parametrize("view", ["network", "layer", "compare"])
def test_of_each_name_beginning_and_end_are_seen(hostile: Tab, view: str) -> None:
    widths = (380, 720, 1280)
    found = clean(hostile.drive("narrowNames", hash={"v": view}, widths=widths))
    assert found == {str(width): [] for width in widths}
