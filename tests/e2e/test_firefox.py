"""The page in Firefox, where one is installed: all views without an error, and the glyphs as in Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Tab
from tests.e2e.made_logs import made_tab
from tests.e2e.test_glyphs import GOLDEN, picture
from tests.pictures import differing, read_png

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SCRIPT = Path(__file__).with_name("firefox.mjs")
PAINTED = ("network", "layer", "compare", "function")
VIEWS = ("findings", *PAINTED)
SMOOTHED = {"raster": (0, 0.0), "vector": (64, 0.06)}
"""By kind of glyph how far a pixel may be off, and the share of those that may be further: lines are smoothed otherwise."""

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(
        FIREFOX is None, reason="Firefox isn't installed: apt-get install firefox-esr"
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with every state, masks and a probe."""
    with made_tab("network", tmp_path_factory.mktemp("firefox")) as tab:
        yield tab


@pytest.fixture(scope="module")
def seen(made: Tab) -> dict[str, Any]:
    """What Firefox shows of them."""
    told = [str(FIREFOX), made.base, ",".join(VIEWS), os.environ.get("VIEWS_FOLDER", "")]
    done = subprocess.run(
        ["node", str(SCRIPT), *told], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_no_view_logs_an_error(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []


@pytest.mark.parametrize("view", PAINTED)
def test_every_view_has_its_pictures(seen: dict[str, Any], view: str) -> None:
    found = seen["shown"][view]
    # The bars of Δ beside a heatmap are empty where no channel moves.
    empty = 1 if view == "layer" else 0
    assert found["canvases"] > empty
    assert found["painted"] >= found["canvases"] - empty


def test_findings_are_listed(seen: dict[str, Any], made: Tab) -> None:
    runs = [run["name"] for run in made.json("index")["runs"]]
    told = [one["text"] for one in made.json("findings", run=runs)["findings"]]
    assert told
    assert [text for text in told if text not in seen["shown"]["findings"]["text"]] == []


def test_glyphs_are_those_of_chromium(seen: dict[str, Any]) -> None:
    wrong = {}
    for name, told in seen["drawn"].items():
        found, golden = picture(told), read_png(GOLDEN / f"{name}.png")
        limit, share = SMOOTHED[told["kind"]]
        off = differing(found, golden, limit) / (golden.shape[0] * golden.shape[1])
        if off > share:
            wrong[name] = off
    assert len(seen["drawn"]) > 40
    assert wrong == {}
