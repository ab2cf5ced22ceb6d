"""Pictures and what was written into the log say the same: colours are read back, and counted anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.e2e.colours import FLAT, named
from tests.e2e.conftest import Tab
from tests.e2e.made_logs import made_tab
from tests.e2e.stories import LAST, LAYERS, PARTS, RUNS, in_row, written
from tests.e2e.texts import LEGEND

STEPS = (1, 9, 22, 30, 40, 50)


@pytest.fixture(scope="module")
def network(tab: Tab) -> dict[str, Any]:
    """Strips at each step."""
    found: dict[str, Any] = clean(tab.drive("drawnNetwork", steps=STEPS))
    return found


@pytest.mark.parametrize("step", STEPS)
def test_strips_show_what_was_written(network: dict[str, Any], step: int) -> None:
    found = network[str(step)]
    ids = {layer.split("/")[-1]: layer for layer in LAYERS} | {"block": "block"}
    assert len(found) == len(RUNS) * len(PARTS)
    for label, run, colours in found:
        row = ids.get(label, label)
        expected = in_row(run, row, step)
        channels = sum(expected[state] for state in LEGEND)
        gap = 2 if run == "pruned" else 1
        if channels == 0 or step >= LAST[run] + gap:
            assert set(named(colours)) == {"no data"}
            continue
        drawn = named(colours)
        assert (drawn["violated"] > 0) == (expected["violated"] > 0)
        for state in LEGEND:
            height = len(colours) * expected[state] / channels
            # A line of violations covers some of the pixels.
            assert abs(drawn[state] - height) <= 1 + drawn["violated"], (row, run, state)


@pytest.mark.parametrize(
    ("run", "layer"), [("leaky", "conv1"), ("pruned", "block/conv3"), ("frozen", "logits")]
)
def test_rows_of_the_heatmap_are_those_of_the_table(tab: Tab, run: str, layer: str) -> None:
    step = 34
    found = clean(tab.drive("drawnLayer", step=step, layer=layer, run=run))
    rows = [row for row in found["table"] if row[0].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(LAYERS[layer]))
    states = [row[1] for row in rows]
    assert Counter(states) == +Counter(
        {s: n for s, n in written(run, layer, step).items() if s != "violated"}
    )
    height = len(found["colours"])
    for channel, state in enumerate(states):
        middle = found["colours"][int((channel + 0.5) * height / len(states))]
        assert FLAT.get(middle, "moving") == state, channel


def ramp(colour: str, stops: tuple[str, str, str]) -> float:
    """The place of a colour on a scale of three stops, 0 to 1: the nearest of a thousand."""
    parts = (
        re.findall(r"\d+", colour)
        if colour.startswith("rgb")
        else re.findall(r"[0-9a-f]{2}", colour)
    )
    base = 10 if colour.startswith("rgb") else 16
    point = np.array([int(part, base) for part in parts[:3]])
    low, middle, high = (
        np.array([int(stop[at : at + 2], 16) for at in (1, 3, 5)]) for stop in stops
    )
    places = np.linspace(0, 1, 1001)[:, None]
    line = np.where(
        places < 0.5, low + (middle - low) * places * 2, middle + (high - middle) * (places * 2 - 1)
    )
    return float(np.abs(line - point).sum(axis=1).argmin() / 1000)


OVERLAP = ("#f1f3f4", "#6fbcae", "#00574b")
MOVEMENT = ("#ffdc9c", "#f2902f", "#b8380a")


def test_overlaps_have_the_colour_of_their_numbers(tab: Tab) -> None:
    found = clean(tab.drive("drawnCompare", step=30, runs=["dense", "leaky"]))
    assert [name for name, _, _ in found["layers"]] == list(LAYERS)
    shown = {row[0]: row[1] for row in found["table"]}
    for name, text, colour in found["layers"]:
        expected = (LAYERS[name] - 4) / LAYERS[name]  # four channels of leaky are frozen
        assert text.split(" / ")[0] == shown[name] == f"{expected:.2f}"
        assert abs(ramp(colour, OVERLAP) - expected) < 0.01
    for text, colour in found["cells"]:
        number = re.match(r"[01]\.\d\d", text)
        assert number is not None, text
        assert abs(ramp(colour, OVERLAP) - float(number[0])) < 0.015
    assert len(found["cells"]) == 6  # three runs of one origin, two ways


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with probes."""
    with made_tab("network", tmp_path_factory.mktemp("drawn")) as tab:
        yield tab


def test_changes_of_outputs_have_the_colours_of_their_numbers(probed: Tab) -> None:
    seen = clean(probed.drive("drawnFunction", steps=[500, 20000, 38000], run="dense"))
    points = []
    for found in seen:
        column = found["head"].index("dense")
        shown = {row[0]: number(row[column]) for row in found["table"]}
        assert [name for name, _ in found["colours"]] == list(shown)
        points += [(shown[name], ramp(colour, MOVEMENT)) for name, colour in found["colours"]]
    values, places = np.array(points).T
    assert places.max() - places.min() > 0.7
    # A logarithmic scale, as far as the numbers of the table are rounded.
    fit = np.polyfit(np.log10(values), places, 1)
    np.testing.assert_allclose(np.polyval(fit, np.log10(values)), places, atol=0.012)


def test_what_stands_still_has_the_colour_of_what_is_settled(probed: Tab) -> None:
    [found] = clean(probed.drive("drawnFunction", steps=[20000], run="freeze_early"))
    column = found["head"].index("freeze_early")
    still = {row[0] for row in found["table"] if row[column] == "0"}
    assert 0 < len(still) < len(found["table"])
    assert {name for name, colour in found["colours"] if FLAT.get(colour) == "quiet"} == still


def number(text: str) -> float:
    """0.0021 of "2.1×10⁻³" or of "0.21%"."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    mantissa, _, power = text.rpartition("10") if "⁻" in text else (text, "", "")
    exponent = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    return float(mantissa.rstrip("×") or 1) * 10.0 ** int(exponent or 0)
