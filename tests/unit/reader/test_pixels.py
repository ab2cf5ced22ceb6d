"""Pictures of states are those of the tab, to the pixel: its golden glyphs are drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from tb_pastnet.core.channel_states import (
    FROZEN,
    MOVING,
    NAMES,
    NO_DATA,
    NONFINITE,
    PRUNED,
    QUIET,
    REACTIVATED,
    STATE,
    VIOLATED,
)
from tb_pastnet.reader import pixels
from tb_pastnet.reader.colours import DARK, LIGHT
from tb_pastnet.reader.tally import StateCounts
from tests.pictures import differing, read_png
from tools.steps import ROOT

GLYPHS = ROOT / "tests" / "golden" / "glyphs"
THRESHOLD = 1e-3
THEMES = {"light": LIGHT, "dark": DARK}
Cell = Callable[[int, float], tuple[int, float]]

# The formulas of frontend/gallery/glyphs/fixtures.ts, heatmaps.ts and strips.ts.


def calm(c: int, t: float) -> float:
    return 0.5 * 10 ** (-t / 12 - c / 10)


def life(c: int, t: float) -> tuple[int, float]:
    if c % 4 == 3 and t >= 10 + c:
        return PRUNED, 0
    if c % 4 == 2 and t >= 30 - c:
        return FROZEN, 0
    if c % 8 == 1 and 12 <= t < 18:
        return FROZEN, 0
    if c % 8 == 1 and 18 <= t < 26:
        return REACTIVATED, calm(c, t - 10)
    if calm(c, t) < 2 * THRESHOLD:
        return QUIET, THRESHOLD / 2
    return MOVING, calm(c, t)


def always(state: int) -> Cell:
    return lambda c, t: (state, calm(c, t) if state == MOVING else 0)


def leak(c: int, t: float) -> tuple[int, float]:
    if c == 1 and t > 5:
        return FROZEN | VIOLATED, 0.02
    if c == 2 and t > 8:
        return MOVING | VIOLATED, 0.05
    return (PRUNED, 0) if c == 3 else (QUIET, THRESHOLD / 3)


def cells(channels: int, records: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """States and relative deltas, (records, channels), on the grid."""
    made = [[cell(c, t) for c in range(channels)] for t in range(records)]
    delta = np.array([[value for _, value in row] for row in made])
    with np.errstate(divide="ignore"):
        delta = np.where(delta > 0, 2 ** (np.floor(16 * np.log2(delta) + 0.5) / 16), delta)
    return np.array([[state for state, _ in row] for row in made], np.uint8), delta


HEATMAPS: dict[str, tuple[int, int, Cell, str]] = {
    "state": (16, 40, life, "state"),
    "both": (16, 40, life, "both"),
    "delta": (16, 40, life, "delta"),
    "one-channel": (1, 40, lambda _, t: life(1, t), "both"),
    "one-record": (16, 1, lambda c, _: life(c, 20), "both"),
    "pruned": (4, 10, always(PRUNED), "both"),
    "4096-channels": (4096, 40, lambda c, t: life((c >> 6) % 16, t), "both"),
    "violated": (4, 20, leak, "both"),
    "nonfinite": (
        4,
        20,
        lambda c, t: (NONFINITE, np.nan) if c == 1 else (MOVING, 0.4 / (t + 1)),
        "both",
    ),
    "not-recorded": (
        4, 20, lambda c, t: (NO_DATA, 0) if c == 1 and t < 9 else life(c, t), "both",
    ),
}  # fmt: skip

STRIPS: dict[str, tuple[int, int, Cell]] = {
    **{NAMES[state]: (16, 40, always(state)) for state in range(MOVING, PRUNED + 1)},
    "stacked": (16, 40, life),
    "violated": (
        16, 40, lambda c, t: (FROZEN | VIOLATED, 0.01) if c == 5 and 20 <= t < 23 else (FROZEN, 0),
    ),
    "violated-pooled": (
        16, 800, lambda c, t: (PRUNED | VIOLATED, 0.01) if t == 400 else life(c, t / 20),
    ),
    "nonfinite": (
        16, 40, lambda c, t: (NONFINITE, 0) if c == 3 and t > 20 else life(c, t),
    ),
    "some-not-recorded": (16, 40, lambda c, t: (NO_DATA, 0) if c < 8 else life(c, t)),
    "one-record": (16, 1, life),
    "one-channel": (1, 40, lambda _, t: life(1, t)),
}  # fmt: skip


def golden(name: str, theme: str, height: int) -> np.ndarray:
    """The part of the glyph that has two pixels for one of the page."""
    return read_png(GLYPHS / f"{name}.{theme}.png")[height:]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", HEATMAPS)
def test_heatmaps_are_those_of_the_tab(name: str, theme: str) -> None:
    channels, records, cell, mode = HEATMAPS[name]
    states, delta = cells(channels, records, cell)
    across = pixels.cut_steps(np.arange(records), 160)
    down = pixels.cut_channels(channels, 96)
    levels = pixels.levels_of(delta, THRESHOLD)
    picture = pixels.heatmap(states, levels, across, down, mode, THEMES[theme])
    assert differing(picture, golden(f"heatmap-{name}", theme, 48), 0) == 0


def test_one_cell_of_many_keeps_pixels_of_its_own() -> None:
    states, delta = np.full((400, 4096), FROZEN, np.uint8), np.zeros((400, 4096))
    states[250, 3000], delta[250, 3000] = FROZEN | VIOLATED, 0.5
    across = pixels.cut_steps(np.arange(400), 160)
    levels, down = pixels.levels_of(delta, THRESHOLD), pixels.cut_channels(4096, 96)
    picture = pixels.heatmap(states, levels, across, down, "both", LIGHT)
    assert differing(picture, golden("heatmap-violated-pooled", "light", 48), 0) == 0
    assert (picture == pixels.palette_of(LIGHT).violated).all(axis=2).any()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", STRIPS)
def test_strips_are_those_of_the_tab(name: str, theme: str) -> None:
    channels, records, cell = STRIPS[name]
    states, delta = cells(channels, records, cell)
    plain = states & STATE
    counts = np.stack([(plain == state).sum(axis=1) for state in range(len(NAMES))], axis=1)
    moving = plain == MOVING
    with np.errstate(invalid="ignore"):
        mean = np.where(moving, np.minimum(delta, 1), 0).sum(axis=1) / moving.sum(axis=1)
    violated = ((states & VIOLATED) != 0).sum(axis=1)
    picture = pixels.strip(
        StateCounts(counts, violated, mean),
        pixels.cut_steps(np.arange(records), 160),
        48,
        THRESHOLD,
        THEMES[theme],
    )
    # Where records share a pixel the page has their mean in single precision.
    tolerance = 2 if records > 160 else 0
    assert differing(picture, golden(f"strip-{name}", theme, 24), tolerance) == 0


def test_the_scale_is_logarithmic_from_the_threshold_on() -> None:
    deltas = np.array([np.nan, 0, 1e-4, 10**-2.5, 0.1, 7, np.inf])
    assert pixels.levels_of(deltas, 1e-4).tolist() == [0, 0, 0, 128, 255, 255, 255]
    assert pixels.scale_top(0.05) == 0.5
    assert pixels.levels_of(deltas, 0).tolist() == [0] * 7


def test_an_axis_ends_where_the_next_record_would_be() -> None:
    assert [pixels.axis_end(np.array(steps)) for steps in ([7], [1, 5], [1, 2, 12])] == [8, 9, 22]


@pytest.mark.parametrize("width", [1, 4, 7])
def test_an_axis_has_as_many_pixels_as_it_is_wide(width: int) -> None:
    steps = np.array([0, 1, 4, 9, 30])
    cut = pixels.cut_steps(steps, width)
    # A part begins with the first record behind an edge, if one is before the next edge.
    edges = np.linspace(0, 51, width + 1)
    firsts = [int((steps < edge).sum()) for edge in edges]
    shown = [first for first, beyond in pairwise(firsts) if beyond > first]
    assert cut.starts.tolist() == shown
    assert len(cut.part) == width
