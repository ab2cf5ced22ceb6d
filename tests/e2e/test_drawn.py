"""Pictures, tables, and what was written into the log say the same: colours are read back, and counted anew."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean, drive
from tests.e2e.conftest import Tab
from tests.e2e.stories import LAYERS

FLAT = {
    "#93bde4": "settled",
    "#2459a6": "frozen",
    "#eceef1": "pruned",
    "#d3d7dc": "pruned",
    "#4a0f4e": "reactivated",
    "#d466ff": "violated",
    "#c3c7cc": "no data",
    "": "no data",
}
"""Of the light theme; every other colour is a tint of moving."""
RUNS = ("dense", "frozen", "leaky", "pruned")
ORDER = ("moving", "settled", "frozen", "pruned", "reactivated")
"""Of the columns of the table."""
STEPS = (1, 9, 22, 30, 40, 50)


def written(run: str, layer: str, step: int) -> Counter[str]:
    """What `story` wrote of a layer's channels at a step, by its words: nothing is read back."""
    at, channels = list(LAYERS).index(layer), LAYERS[layer]
    held, violated, state = 0, 0, "frozen"
    if step > (61 if run == "pruned" else 40) or (run == "pruned" and step < 2):
        return Counter()
    if run == "frozen" and step >= 9 + 8 * at:
        held = channels
    if run == "leaky" and step >= 21:
        held, violated = 4, 2 if at == 1 and step >= 26 else 0
    if run == "pruned" and step >= 22:
        held, state = channels // 2, "pruned"
    return Counter({state: held, "moving": channels - held, "violated": violated})


def total(run: str, step: int, layers: tuple[str, ...] = tuple(LAYERS)) -> Counter[str]:
    return sum((written(run, layer, step) for layer in layers), Counter())


PARTS = {"All layers": tuple(LAYERS), "block": ("block/conv2", "block/conv3")}


@pytest.fixture(scope="module")
def network(tab: Tab) -> dict[str, Any]:
    """Strips and table at each step."""
    found: dict[str, Any] = clean(tab.drive("drawnNetwork", steps=STEPS))
    return found


@pytest.mark.parametrize("step", STEPS)
def test_strips_tables_and_what_was_written_agree(network: dict[str, Any], step: int) -> None:
    found = network[str(step)]
    shown = {(row[0].rstrip("/"), row[1]): row for row in found["table"]}
    ids = {layer.split("/")[-1]: layer for layer in LAYERS} | {"block": "block"}
    assert len(found["strips"]) == len(found["table"]) == 4 * (len(LAYERS) + 2)
    for label, run, colours in found["strips"]:
        name = ids.get(label, label)
        expected = total(run, step, PARTS.get(name, (name,)))
        cells = shown[name, run][3:9]
        channels = sum(expected[state] for state in ORDER)
        if channels == 0:
            assert set(cells) == {"–"}
            # The outline of a row that is violated anywhere goes on.
            assert {FLAT.get(colour, "moving") for colour in colours[1:-1]} == {"no data"}
            continue
        counts = [int(cell.split(" ")[0].replace(",", "")) for cell in cells]
        assert counts == [*(expected[state] for state in ORDER), expected["violated"]]
        drawn = Counter(FLAT.get(colour, "moving") for colour in colours)
        assert (drawn["violated"] > 0) == (total(run, 40, PARTS.get(name, (name,)))["violated"] > 0)
        for state in ORDER:
            height = len(colours) * expected[state] / channels
            # A line of violations covers some of the pixels.
            assert abs(drawn[state] - height) <= 1 + drawn["violated"], (name, run, state)


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


def test_changes_of_outputs_have_the_colours_of_their_numbers(gallery: str) -> None:
    seen = clean(
        drive(gallery, "drawnFunction", scenario="mock", steps=[500, 20000, 38000], run="dense")
    )
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


def test_what_stands_still_has_the_colour_of_what_is_settled(gallery: str) -> None:
    [found] = clean(
        drive(gallery, "drawnFunction", scenario="mock", steps=[20000], run="freeze_early")
    )
    column = found["head"].index("freeze_early")
    still = {row[0] for row in found["table"] if row[column] == "0"}
    assert 0 < len(still) < len(found["table"])
    assert {name for name, colour in found["colours"] if FLAT.get(colour) == "settled"} == still


def number(text: str) -> float:
    """0.0021 of "2.1×10⁻³" or of "0.21%"."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    mantissa, _, power = text.rpartition("10") if "⁻" in text else (text, "", "")
    exponent = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    return float(mantissa.rstrip("×") or 1) * 10.0 ** int(exponent or 0)
