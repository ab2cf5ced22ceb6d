"""Narrow windows and long names: nothing leaves the window, and nothing that tells is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import hostile as log
from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.event_files import write_run


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


def test_long_words_stay_in_the_panel_of_the_probe(hostile: Tab) -> None:
    assert clean(hostile.drive("probeText")) == 0


def test_lists_of_runs_show_what_tells_them_apart(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    names = [f"experiments/resnet_lr{rate}" for rate in (1, 2)]
    for name in names:
        write_run(logdir, name, range(3), layers={"only": 4})
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 2, 6), "both runs")
        found = clean(tab.drive("runLists", run=names[0]))
    assert found == {
        "pair": ["lr1", "lr2"] * 2,
        "audit": ["lr1", "lr2"],
        "unprobed": ["Selected runs without a probe: lr1, lr2."],
    }


VIEWS = ("findings", "network", "layer", "compare", "function")


def test_the_toolbar_is_one_line(tab: Tab) -> None:
    found = clean(tab.drive("toolbar", hash={"v": "network"}, widths=(1100, 1010)))
    bar = ["filter", "joined", "joined", "actions"]
    assert found == {"1100": [bar], "1010": [bar]}


@pytest.mark.parametrize("width", [380, 430])
def test_narrow_windows_show_strips_menus_and_titles(tab: Tab, width: int) -> None:
    hashes = {view: {"v": view, "l": "block/conv2"} for view in VIEWS}
    found = clean(tab.drive("narrow", width=width, hashes=hashes))
    assert {view: found[view] for view in VIEWS} == {view: {"menu": 0, "bar": 0} for view in VIEWS}
    assert found["strips"] > 60
    assert found["painted"] > 60
    assert (found["keys"], found["overlaps"]) == (0, 0)


def test_forced_colours_leave_those_that_tell_something(tab: Tab) -> None:
    found = clean(tab.drive("forced"))
    assert found["legend"] >= 5
    assert found["bar"] >= 3
    assert found["pressed"] == 2
