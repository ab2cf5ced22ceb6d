"""The page in frames as notebooks have them, and below a path prefix."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.e2e.stories import LAYERS, STORY_RUNS
from tests.event_files import write_run

LAYER = "block/conv2"


def test_each_view_fits_a_notebook_and_a_narrow_window(tab: Tab) -> None:
    sizes = [(1200, 500), (800, 600), (800, 400)]
    found = clean(tab.drive("small", layer=LAYER, sizes=sizes))
    assert len(found) == 4 * len(sizes)
    for name, seen in found.items():
        assert (name, seen["axe"], seen["outside"], seen["wide"]) == (name, [], [], 0)
        wide = "1200" in name
        assert (seen["runs"], seen.get("opened")) == (
            (STORY_RUNS, None) if wide else (0, STORY_RUNS)
        )
        if "layer" in name:
            assert min(seen["plots"]) > 300
        if "network" in name:
            assert len(seen["plots"]) == STORY_RUNS + 1


def test_all_addresses_lie_below_a_path_prefix(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    write_run(logdir, "a", range(1, 11), layers=LAYERS)
    with tensorboard(logdir, "--path_prefix", "/deep/er") as tab:
        below = Tab(f"{tab.base}/deep/er")
        wait(lambda: known(below, 1, 10), "the run")
        found = clean(below.drive("prefixed", layer=LAYER))
    assert found["alerts"] == []
    assert {url.partition("?")[0].rpartition("/")[2] for url in found["asked"]} >= {
        "index.js",
        "index",
        "overview",
        "layer",
        "channel",
    }
    assert all(url.startswith(f"{below.base}/") for url in [*found["asked"], found["link"]])
