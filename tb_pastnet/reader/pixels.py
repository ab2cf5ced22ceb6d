"""Channel states and relative changes as pixels, drawn as the tab draws them.

The tab's own are `strip.ts` and `heatmap.ts` in `frontend/src/draw`: several records or channels
under one pixel are pooled there in the same way, and nothing rare disappears.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.channel_states import (
    FOLLOWING,
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
    States,
)
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.colours import Theme
from tb_pastnet.reader.tally import StateCounts

STACK = np.array([NONFINITE, MOVING, REACTIVATED, QUIET, FOLLOWING, FROZEN, PRUNED, NO_DATA])
"""From the bottom of a strip to its top."""

MODES = ("both", "state", "delta")
"""States with a tint where channels move; only states; only relative changes."""

RATIO = 2
"""Pixels of a picture for one of the page: the width of lines."""

LEVELS = 256
_TALL = 5 * RATIO
"""Height of a row, in pixels, from which violated channels have an outline, not stripes."""

Pixels = npt.NDArray[np.uint8]
"""(height, width, 4): red, green, blue, opacity."""


class Palette(NamedTuple):
    """A theme as pixels, uint8 (…, 4)."""

    movement: Pixels  # by level
    states: Pixels  # by state code
    hatch: Pixels
    dot: Pixels
    violated: Pixels


class Cut(NamedTuple):
    """An axis cut into pixels."""

    starts: Integers  # (parts,), the first record of each part
    part: Integers  # (pixels,), the part that each shows


@cache
def palette_of(theme: Theme) -> Palette:
    """The pixels of a theme."""
    stops = np.array([_rgba(colour) for colour in theme.movement], np.float64)
    places = np.linspace(0, 1, LEVELS)
    ramp = np.stack([np.interp(places, [0, 0.5, 1], stop) for stop in stops.T], axis=1)
    return Palette(
        np.floor(ramp + 0.5).astype(np.uint8),
        np.stack([_rgba(colour) for colour in theme.states]),
        *(_rgba(each) for each in (theme.hatch, theme.dot, theme.violated)),
    )


def _rgba(colour: str) -> Pixels:
    return np.array([*bytes.fromhex(colour[1:]), 255] if colour else [0] * 4, np.uint8)


def scale_top(threshold: float) -> float:
    """Where the scale of relative changes ends; it begins at the threshold."""
    return max(0.1, 10 * threshold)


def levels_of(delta: npt.NDArray[np.floating], threshold: float) -> Pixels:
    """The colours of relative changes, places in the scale; the lowest where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        span = np.log(np.divide(scale_top(threshold), threshold))
        place = np.nan_to_num(np.log(np.divide(delta, threshold)) / span, nan=0, posinf=1)
    levels: Pixels = np.rint(np.clip(place, 0, 1) * (LEVELS - 1)).astype(np.uint8)
    return levels


def axis_end(steps: Integers) -> int:
    """The end of the axis behind the last record: a single one is one step wide."""
    return int(steps[-1] + max(1, steps[-1] - steps[-2] if len(steps) > 1 else 1))


def cut_steps(steps: Integers, width: int) -> Cut:
    """Cuts the axis of some steps, at least one; a pixel without a record shows the one before."""
    firsts = np.searchsorted(steps, np.linspace(steps[0], axis_end(steps), width + 1))
    begins = firsts[1:] > firsts[:-1]
    return Cut(firsts[:-1][begins], np.cumsum(begins) - 1)


def cut_channels(channels: int, height: int) -> Cut:
    """Cuts channels, at least one, into rows of pixels."""
    starts, part = np.unique(np.arange(height) * channels // height, return_inverse=True)
    return Cut(starts, part)


def strip(counts: StateCounts, cut: Cut, height: int, threshold: float, theme: Theme) -> Pixels:
    """The state strip of a layer with records: the height of a colour is a share of channels.

    Violations are a line at its top. Nonfinite channels are at its bottom, at least as high.
    """
    moving = np.where(counts.mean_delta > 0, counts.counts[:, MOVING], 0)
    moved, weights = (
        np.add.reduceat(values, cut.starts)
        for values in (moving * np.nan_to_num(counts.mean_delta), moving)
    )
    violated = np.logical_or.reduceat(counts.violated > 0, cut.starts)
    line = min(2 * RATIO, -(-height // 4))
    shares = np.add.reduceat(counts.counts[:, STACK].astype(np.float64), cut.starts)
    tops = _tops(shares, height, RATIO + line * violated, line)
    from_bottom = np.arange(height)[::-1, None]
    states = STACK[(tops.T[:, None] <= from_bottom).sum(axis=0)]
    levels = np.broadcast_to(levels_of(moved / np.maximum(weights, 1), threshold), states.shape)
    pixels = _patterned(states[:, cut.part], levels[:, cut.part], theme)
    palette = palette_of(theme)
    pixels[:line, violated[cut.part]] = palette.violated
    return pixels


def _tops(shares: Floats, height: int, reactivated: Integers, nonfinite: int) -> Integers:
    """Cumulative heights, (parts, states) from the bottom; what is rare has a least height."""
    sums = np.cumsum(shares, axis=1)
    tops = np.floor(sums / sums[:, -1:] * height + 0.5)
    heights = np.diff(tops, axis=1, prepend=0).astype(np.int64)
    for state, least in ((REACTIVATED, reactivated), (NONFINITE, nonfinite)):
        rare = int(np.flatnonzero(state == STACK)[0])
        lacking = np.where(shares[:, rare] > 0, np.maximum(least - heights[:, rare], 0), 0)
        heights[:, rare] += lacking
        rest = heights.copy()
        rest[:, rare] = -1
        heights[np.arange(len(heights)), rest.argmax(axis=1)] -= lacking
    return np.cumsum(heights, axis=1)


def heatmap(
    states: States, levels: Pixels, across: Cut, down: Cut, mode: str, theme: Theme
) -> Pixels:
    """Channels over records: of those under one pixel the largest change, and the state of most.

    States, with their marks, and `levels_of` relative changes are (records, channels).
    """
    plain = states & np.uint8(STATE)

    def pooled(ufunc: np.ufunc, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = ufunc.reduceat(ufunc.reduceat(cells, across.starts, axis=0), down.starts, axis=1)
        return rows.T[down.part][:, across.part]

    shown = (plain == MOVING) | (mode == "delta")
    level = pooled(np.maximum, np.where(shown, levels, np.uint8(0)))
    state = _most(plain, across, down)[down.part][:, across.part]
    for rare in (REACTIVATED, NONFINITE):
        state[pooled(np.logical_or, plain == rare)] = rare
    pixels = _patterned(state, level, theme, mode)
    height, channels = len(down.part), states.shape[1]
    y, x = np.ogrid[:height, : len(across.part)]
    palette = palette_of(theme)
    marked = pooled(np.logical_or, (states & np.uint8(VIOLATED)) != 0)
    stripes = (x + y) % (3 * RATIO) < RATIO
    if height / channels >= _TALL:
        pixels[marked & _edges(down.part)[:, None]] = palette.violated
    else:
        pixels[marked & (stripes | _begins(marked))] = palette.violated
    return pixels


def _most(plain: States, across: Cut, down: Cut) -> States:
    """The state of most cells of each part, (rows, columns); ties go to the latest."""
    records, channels = plain.shape
    last_records = np.append(across.starts[1:], records) - 1
    last_channels = np.append(down.starts[1:], channels) - 1
    latest = plain[np.ix_(last_records, last_channels)]
    largest = np.full(latest.shape, -1, np.int64)
    most = np.zeros(latest.shape, np.uint8)
    for state in range(len(NAMES)):
        # Channels first: there may be millions.
        cells = np.add.reduceat(plain == state, down.starts, axis=1, dtype=np.int64)
        counts = 2 * np.add.reduceat(cells, across.starts, axis=0) + (latest == state)
        most[counts > largest] = state
        np.maximum(counts, largest, out=largest)
    return most.T


def _begins(marked: Flags) -> Flags:
    """Where a stretch of marked pixels begins."""
    begins = marked.copy()
    begins[:, 1:] &= ~marked[:, :-1]
    return begins


def _edges(part: Integers) -> Flags:
    """The first and last rows of pixels of each channel, bool (height,)."""
    line = RATIO * (2 if len(part) / (part[-1] + 1) >= 12 * RATIO else 1)
    padded = np.pad(part, line, constant_values=-1)
    edges: Flags = (padded[: -2 * line] != part) | (padded[2 * line :] != part)
    return edges


def _patterned(states: States, levels: Pixels, theme: Theme, mode: str = "both") -> Pixels:
    """The colours of states, with a tint where they move: pruned is hatched, no data dotted."""
    palette = palette_of(theme)
    y, x = np.ogrid[: states.shape[0], : states.shape[1]]
    pixels = palette.states[states]
    pixels[(states == PRUNED) & ((x + y) % (5 * RATIO) < RATIO)] = palette.hatch
    dots = (x % (4 * RATIO) < RATIO) & (y % (4 * RATIO) < RATIO)
    pixels[(states == NO_DATA) & dots] = palette.dot
    moving = (states == MOVING) & (mode == "both")
    tinted = (states != NO_DATA) & (states != NONFINITE) if mode == "delta" else moving
    pixels[tinted] = palette.movement[levels[tinted]]
    return pixels
