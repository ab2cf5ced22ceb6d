"""Runs and layers as figures of Matplotlib, in the tab's colours."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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
from tb_pastnet.core.counted import counted
from tb_pastnet.core.quantize import Codes, dequantize
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.reader import pixels
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.colours import DARK, LIGHT, Theme
from tb_pastnet.reader.figures import Figures
from tb_pastnet.reader.pixels import MODES, RATIO
from tb_pastnet.reader.state_series import slabs

try:
    from matplotlib.figure import Figure
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator
    from matplotlib.transforms import offset_copy
except ModuleNotFoundError as error:
    raise ImportError(
        "Could not plot: expected Matplotlib to be installed, got none. "
        'Run: pip install "tb-pastnet[plot]"'
    ) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.0  # inches
_ROW = 0.34  # inches of a strip and the gap below it
_GAP = 0.22  # of a row
_TALLEST = 30.0  # inches
_LONGEST = 40  # characters of a name
_STEPS = 16  # colours of the scale in the legend
_LISTED = (MOVING, QUIET, FROZEN, PRUNED, REACTIVATED, FOLLOWING, NONFINITE, NO_DATA)


class Plot(Figure):
    """A figure that a notebook shows once, whether pyplot is used or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=RATIO * self.dpi)
        width, height = (round(size * self.dpi) for size in self.get_size_inches())
        return data.getvalue(), {"width": width, "height": height}


def plot_run(
    figures: Figures, layers: Sequence[str] | None, dark: bool, axes: Axes | None
) -> Figure:
    """Strips of the states of channels, one row per layer; see `Run.plot`."""
    names = [layer.id for layer in figures.run.layers]
    rows = list(range(len(names))) if layers is None else [names.index(name) for name in layers]
    _expect_records(figures.run.name, figures.steps if rows else figures.steps[:0])
    theme = DARK if dark else LIGHT
    height = min(_ROW * len(rows), _TALLEST)
    axes = axes or _axes(height, theme)
    counts = [figures.states.at(row) for row in rows]
    occurring = {state for state in _LISTED if any(each.counts[:, state].any() for each in counts)}
    violated = any(each.violated.any() for each in counts)
    size = min(9.0, 60 * height / len(rows))
    strip_share = 1 - _GAP
    centres = np.arange(len(rows)) + strip_share / 2
    labels = [_short(names[row]) for row in rows]
    axes.set_yticks(centres, labels, fontsize=size, parse_math=False)
    axes.set_ylim(len(rows) - _GAP, 0)
    for row, centre in zip(rows, centres, strict=True):
        channels = counted(figures.channels[row], "channel")
        axes.text(1.008, centre, channels, transform=axes.get_yaxis_transform(),
                  va="center_baseline", fontsize=size, color=theme.muted)  # fmt: skip
    for spine in axes.spines.values():
        spine.set_visible(False)
    title = f"{_short(figures.run.name)}: states of channels"
    _finish(axes, title, figures.steps, figures.threshold, occurring, violated, theme)
    width, pixel_height = _pixels_of(axes)
    each = max(round(pixel_height / (len(rows) - _GAP)), 2 * RATIO)
    cut = pixels.cut_steps(figures.steps, width)
    image = np.zeros((len(rows), each, width, 4), np.uint8)
    drawn = round(strip_share * each)
    for row, count in enumerate(counts):
        image[row, :drawn] = pixels.strip(count, cut, drawn, figures.threshold, theme)
    _show(axes, image.reshape(-1, width, 4), figures.steps, (len(rows), 0))
    return _figure_of(axes)


def plot_channels(
    run: str,
    variable: str,
    steps: Integers,
    states: States,
    delta: Codes,
    threshold: float,
    mode: str,
    dark: bool,
    axes: Axes | None,
) -> Figure:
    """States and relative changes of channels over steps; see `Layer.plot`."""
    title = f"{_short(run)}: channels of {_short(variable)}"
    if mode not in MODES:
        raise InvalidArgument(
            f"Could not plot {variable!r}: expected mode to be one of {', '.join(MODES)}, got "
            f"{mode!r}. Leave it out for {MODES[0]}."
        )
    _expect_records(variable, steps if states.shape[1] else steps[:0])
    theme, channels = DARK if dark else LIGHT, states.shape[1]
    axes = axes or _axes(min(max(0.12 * channels, 1.6), 5.0), theme)
    occurring = set(np.unique(states & np.uint8(STATE)).tolist())
    if mode == "delta":
        occurring = {MOVING} | (occurring & {NONFINITE, NO_DATA})
    violated = bool((states & np.uint8(VIOLATED)).any())
    axes.set_ylim(channels - 0.5, -0.5)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("channel", color=theme.muted, fontsize=9)
    for spine in axes.spines.values():
        spine.set_edgecolor(theme.line)
    _finish(axes, title, steps, threshold, occurring, violated, theme, mode)
    width, height = _pixels_of(axes)
    across, down = pixels.cut_steps(steps, width), pixels.cut_channels(channels, height)
    levels = np.empty(states.shape, np.uint8)
    for part in slabs(*states.shape):
        levels[:, part] = pixels.levels_of(dequantize(delta[:, part]), threshold)
    image = pixels.heatmap(states, levels, across, down, mode, theme)
    _show(axes, image, steps, (channels - 0.5, -0.5))
    return _figure_of(axes)


def _expect_records(name: str, steps: Integers) -> None:
    if not len(steps):
        raise InvalidArgument(
            f"Could not plot {name!r}: expected at least one layer with a record, got none. Plot "
            f"it once something is recorded."
        )


def _figure_of(axes: Axes) -> Figure:
    """The figure of axes, even if they are in a part of it."""
    figure: Figure = axes.figure.figure
    return figure


def _axes(height: float, theme: Theme) -> Axes:
    """Axes of some inches in a new figure, with room for legend and ticks."""
    figure = Plot(figsize=(_WIDTH, height + 1.1), facecolor=theme.panel, layout="constrained")
    return figure.add_subplot()


def _finish(
    axes: Axes,
    title: str,
    steps: Integers,
    threshold: float,
    occurring: set[int],
    violated: bool,
    theme: Theme,
    mode: str = "both",
) -> None:
    """Title, legend and the axis of steps: all that takes room next to the picture."""
    axes.set_facecolor(theme.panel)
    axes.set_xlim(int(steps[0]), pixels.axis_end(steps))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("step", color=theme.muted, fontsize=9)
    axes.tick_params(length=0, labelsize=9, labelcolor=theme.muted)
    axes.tick_params(axis="y", labelcolor=theme.text)
    handles = [_patch(state, theme, mode) for state in _LISTED if state in occurring]
    labels = [_label(state, threshold, mode) for state in _LISTED if state in occurring]
    if violated:
        handles.append(Patch(color=theme.violated))
        labels.append("violated")
    above = offset_copy(axes.transAxes, _figure_of(axes), 0, 0.08)  # inches
    legend = axes.legend(
        handles, labels, title=title, alignment="left", loc="lower left",
        bbox_to_anchor=(0, 1), bbox_transform=above,
        ncols=len(handles), frameon=False, fontsize=9, borderpad=0, borderaxespad=0,
        labelcolor=theme.muted, handlelength=1.8, columnspacing=1.2,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
    )  # fmt: skip
    legend.get_title().set(color=theme.text, fontsize=11, fontweight="bold", parse_math=False)


def _short(name: str) -> str:
    """A name, of a long one its end."""
    return name if len(name) <= _LONGEST else f"…{name[-_LONGEST:]}"


def _label(state: int, threshold: float, mode: str) -> str:
    scale = f"Δ from {threshold:g} to {pixels.scale_top(threshold):g}"
    if state != MOVING or mode == "state":
        return "no record" if state == NO_DATA else NAMES[state]
    return scale if mode == "delta" else f"{NAMES[state]}, {scale}"


def _patch(state: int, theme: Theme, mode: str) -> Any:
    if state == MOVING and mode != "state":
        scale = pixels.palette_of(theme).movement[:: pixels.LEVELS // _STEPS] / 255
        return tuple(Patch(color=colour, linewidth=0) for colour in scale)
    hatches = {PRUNED: ("////", theme.hatch), NO_DATA: ("...", theme.dot)}
    hatch, colour = hatches.get(state, ("", theme.line))
    face = theme.states[state] or "none"
    return Patch(facecolor=face, hatch=hatch, edgecolor=colour, linewidth=0)


def _pixels_of(axes: Axes) -> tuple[int, int]:
    """Width and height of the picture within the axes, once all around it is there."""
    figure = _figure_of(axes)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
    width, height = (RATIO * round(size) for size in axes.bbox.size)
    return max(width, RATIO), max(height, RATIO)


def _show(axes: Axes, image: pixels.Pixels, steps: Integers, rows: tuple[float, float]) -> None:
    limits = axes.get_ylim()
    extent = (int(steps[0]), pixels.axis_end(steps), *rows)
    axes.imshow(image, extent=extent, aspect="auto", interpolation="nearest")
    axes.set_ylim(limits)
