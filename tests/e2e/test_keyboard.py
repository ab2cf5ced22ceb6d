"""The keyboard alone reaches everything, and one sees where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab
from tests.e2e.made_logs import made_tab

AT = "&p.pastnet.l=block%2Fconv2&p.pastnet.r=drift&p.pastnet.s=900"
STATES: dict[str, dict[str, Any]] = {
    "findings": {"hash": ""},
    "network": {"hash": "&p.pastnet.v=network&p.pastnet.s=900"},
    "network as table": {
        "hash": "&p.pastnet.v=network&p.pastnet.s=900",
        "click": ["button[aria-label*='the network as a']"],
    },
    "layer": {"hash": f"&p.pastnet.v=layer{AT}&p.pastnet.c=3&p.pastnet.p=3~4"},
    "compare": {"hash": f"&p.pastnet.v=compare{AT}&p.pastnet.r2=ticket"},
    "keys": {"hash": "", "press": ["?"]},
    "violations": {"hash": "&p.pastnet.a=drift"},
    "downloads": {"hash": "", "click": [".download > button"]},
}
PROBED = {
    "function": {"hash": "&p.pastnet.v=function&p.pastnet.s=20000"},
    "function as tables": {
        "hash": "&p.pastnet.v=function&p.pastnet.s=20000",
        "click": [f".fn-{panel} header .small" for panel in ("lines", "cells", "scatter")],
    },
}
"""Of a log whose runs have probes."""
NAMES = [*STATES, *PROBED]
KEYS_DO_THE_SAME = {
    "div.run-column": "arrows, J and K, Enter",
    "span.plain layer-name": "J and K, Enter",
    "span.plain group-name": "J and K, Enter",
    "div.lanes-plot": "arrows, the names of the runs",
    "div.heat-plot": "arrows",
    "div.lap-plot": "arrows, J and K",
    "div.fn-plot": "arrows, J and K",
    "div.fn-dots": "J and K",
    "div.lines-plot": "arrows",
    "div.barcode-plots": "arrows",
    "td.": "the lists of A and B",
    "td.on": "the lists of A and B",
}
"""What a pointer can click without being a control."""


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with masks of single weights."""
    with made_tab("masks", tmp_path_factory.mktemp("keyboard")) as tab:
        yield tab


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with probes."""
    with made_tab("network", tmp_path_factory.mktemp("keyboard")) as tab:
        yield tab


@pytest.fixture(
    scope="module",
    params=[
        ("light", NAMES),
        # Only colours are others in the dark.
        ("dark", ["layer", "violations", "function"]),
        pytest.param(("dark", NAMES), marks=pytest.mark.prove),
    ],
    ids=["light", "dark", "everywhere dark"],
)
def walked(request: pytest.FixtureRequest, masks: Tab, probed: Tab) -> dict[str, Any]:
    """Tab through states of the page."""
    theme, names = request.param
    found: dict[str, Any] = {}
    for running, states in ((masks, STATES), (probed, PROBED)):
        some = {name: state for name, state in states.items() if name in names}
        found |= clean(running.drive("keyboard", states=some, dark=theme == "dark"))
    assert list(found) == names
    return found


def everywhere(walked: dict[str, Any], what: str) -> dict[str, Any]:
    """What is wrong, by state."""
    return {name: seen[what] for name, seen in walked.items() if seen[what]}


def test_tab_reaches_every_control(walked: dict[str, Any]) -> None:
    assert everywhere(walked, "missed") == {}
    assert all(seen["stops"] > 15 for name, seen in walked.items() if name != "keys")


def test_every_control_has_a_name(walked: dict[str, Any]) -> None:
    assert everywhere(walked, "nameless") == {}


def test_the_focus_is_seen_and_in_sight(walked: dict[str, Any]) -> None:
    assert everywhere(walked, "bare") == everywhere(walked, "outside") == {}
    colours = {colour for seen in walked.values() for colour in seen["outlines"]}
    assert len(colours) == 1
    paper = {"rgb(26, 115, 232)": (0xFF,) * 3, "rgb(138, 180, 248)": (0x3A,) * 3}
    [colour] = colours
    assert contrast(tuple(map(int, re.findall(r"\d+", colour))), paper[colour]) >= 3


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Of two colours, as WCAG counts it."""

    def light(colour: tuple[int, ...]) -> float:
        parts = [part / 255 for part in colour]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(
            weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
        )

    low, high = sorted((light(one) + 0.05, light(other) + 0.05))
    return high / low


def test_what_only_a_pointer_can_click_has_keys_too(walked: dict[str, Any]) -> None:
    pointed = {what for seen in walked.values() for what in seen["pointed"]}
    assert pointed - set(KEYS_DO_THE_SAME) == set()


def test_what_is_spoilt_is_found(masks: Tab) -> None:
    plant = """
        const [one, two, three] = document.querySelectorAll(".toolbar [aria-label=View] button");
        one.tabIndex = -1;
        two.style.outline = "none";
        three.replaceChildren();
        three.title = "";
        document.querySelector("h1").style.cursor = "pointer";
    """
    states = {"spoilt": {"hash": "", "plant": plant}}
    seen = clean(masks.drive("keyboard", states=states, dark=False))["spoilt"]
    assert [len(seen[what]) for what in ("missed", "bare", "nameless")] == [1, 1, 1]
    assert set(seen["pointed"]) - set(KEYS_DO_THE_SAME) == {"h1."}


def test_the_focus_stays_where_a_button_goes_away(tab: Tab) -> None:
    found = clean(tab.drive("gone"))
    assert found["chosen"] == ["Download", 0]
    assert found["left"] == ["Copy link", 0]
    assert found["only"] == ["input.", 1]


def test_the_first_finding_is_a_few_keys_away(masks: Tab) -> None:
    assert clean(masks.drive("skipped")) <= 5
