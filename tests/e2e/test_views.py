"""A picture of each view in each theme, also as high as a notebook's cell, against golden ones.

The golden pictures have a pixel for the mean colour of 16 × 16 of the page's, and letters are boxes: they don't depend
on fonts. `UPDATE_GOLDEN=1` writes them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import ROOT, Tab
from tests.e2e.made_logs import made_tab
from tests.pictures import UPDATE, against, differing, pixels, read_png
from tests.sampled import sampled

GOLDEN = ROOT / "tests" / "golden" / "views"
SIZES = ((1440, 900), (1280, 500))
THEMES = ("light", "dark")
TOLERANCE = 6
"""Of the mean colour of a block; smoothing a line otherwise moves it by 1 or 2."""
MACHINES = 12
"""The same between machines: their edges of letters and boxes lie up to half a pixel apart."""

CHOICE = "&p.pastnet.s=30000&p.pastnet.l=block1%2Fconv1&p.pastnet.r=prune_grow"
STATES = {
    "findings": "",
    "network": "&p.pastnet.v=network&p.pastnet.s=30000&p.pastnet.r=prune_grow",
    "layer": f"&p.pastnet.v=layer{CHOICE}&p.pastnet.c=19",
    "compare": f"&p.pastnet.v=compare{CHOICE}&p.pastnet.r2=lottery_s0",
    "function": "&p.pastnet.v=function&p.pastnet.s=30000&p.pastnet.r=freeze_early",
}
FOLDER = os.environ.get("VIEWS_FOLDER")
"""Where the pictures themselves go too, for a look at them."""


NAMES = [
    f"{view}-{width}x{height}.{theme}"
    for view in STATES
    for width, height in SIZES
    for theme in THEMES
]


def shot(name: str, style: str = "") -> dict[str, Any]:
    """How to take a picture, from its name."""
    view, size, theme = re.split(r"[-.]", name)
    sides = [int(side) for side in size.split("x")]
    return {"hash": STATES[view], "size": sides, "theme": theme, "style": style}


def shown(made: Tab, shots: dict[str, Any], **change: Any) -> dict[str, np.ndarray]:
    """The blocks of pictures, without the lowest, in which the window cuts lines of text."""
    found = clean(made.drive("views", shots=shots, **change))
    return {name: pixels(told)[:-1] for name, told in found.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A small network in which everything happens."""
    with made_tab("network", tmp_path_factory.mktemp("views")) as tab:
        yield tab


@pytest.fixture(scope="module")
def views(made: Tab) -> dict[str, np.ndarray]:
    """Every view as it is."""
    return shown(made, {name: shot(name) for name in NAMES}, folder=FOLDER)


def test_each_view_equals_its_golden_picture(views: dict[str, np.ndarray], tmp_path: Path) -> None:
    wrong = [
        against(GOLDEN / f"{name}.png", found, MACHINES, tmp_path) for name, found in views.items()
    ]
    assert [text for text in wrong if text] == []
    assert UPDATE or {path.stem for path in GOLDEN.iterdir()} == set(views)


# That pictures are strict is shown of a few at each change, and of all in the proof.
HIDDEN = [
    ("findings-1440x900.light", ".finding-run"),
    ("findings-1280x500.dark", ".finding-text"),
    ("network-1440x900.light", ".legend"),
    ("network-1280x500.dark", ".dots-column"),
    ("network-1440x900.dark", ".run-head .bar"),
    ("layer-1440x900.dark", ".inspector"),
    ("layer-1440x900.light", ".thumbs"),
    ("layer-1440x900.dark", ".crosshair"),
    ("compare-1440x900.light", ".matrix"),
    ("compare-1440x900.dark", ".side:last-child"),
    ("compare-1280x500.light", ".pair"),
    ("function-1440x900.light", ".fn-scatter"),
    ("function-1440x900.dark", ".fn-lines"),
    ("function-1280x500.dark", ".fn-values"),
]


@pytest.mark.parametrize("hidden", [HIDDEN[3::5], pytest.param(HIDDEN, marks=pytest.mark.prove)])
def test_a_missing_part_is_found(
    made: Tab, views: dict[str, np.ndarray], hidden: list[tuple[str, str]]
) -> None:
    shots = {
        f"{at} hidden": shot(name, f"{part} {{ visibility: hidden }}")
        for at, (name, part) in enumerate(hidden)
    }
    whole = NAMES[:: len(NAMES) // len(STATES)]  # where nothing is missing nothing is found
    found = shown(made, {**shots, **{name: shot(name) for name in whole}})
    for at, (name, part) in enumerate(hidden):
        assert differing(found[f"{at} hidden"], views[name], TOLERANCE) >= 4, (name, part)
    for name in whole:
        assert differing(found[name], views[name], TOLERANCE) == 0, name


@pytest.mark.parametrize(
    ("name", "colour", "other"),
    sampled(
        [
            ("network-1440x900.light", "#93bde4", "#a3cdf4"),  # quiet, a little lighter
            ("layer-1440x900.dark", "#2f63b5", "#2f83b5"),  # frozen, a little greener
            ("network-1440x900.light", "#4a0f4e", "#2459a6"),  # reactivated as frozen
            ("layer-1440x900.dark", "#55585c", "#757678"),  # the hatch of pruned
            ("compare-1440x900.light", "#6fbcae", "#6f9cae"),  # the middle of overlaps
        ],
        every=3,
    ),
)
def test_a_wrong_colour_is_found(
    made: Tab, views: dict[str, np.ndarray], name: str, colour: str, other: str
) -> None:
    found = shown(made, {name: shot(name)}, swap=[colour, other])
    assert differing(found[name], views[name], TOLERANCE) >= 4


def test_the_golden_pictures_are_small() -> None:
    sizes = {path.stem: read_png(path).shape[:2] for path in GOLDEN.iterdir()}
    assert {size for name, size in sizes.items() if "1440" in name} == {(52, 90)}
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 400_000
