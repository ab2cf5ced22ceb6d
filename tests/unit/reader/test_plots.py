"""Figures of runs and layers show what the log says, and what can't be drawn is an error."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.channel_states import NAMES
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.reader import pixels
from tb_pastnet.reader.colours import DARK, LIGHT
from tests import event_files as files
from tests.golden.kept_logs import FOLDER

Patch = pytest.importorskip("matplotlib.patches", reason="Matplotlib isn't installed").Patch
figure_module = pytest.importorskip("matplotlib.figure", reason="Matplotlib isn't installed")


@pytest.fixture(scope="module")
def log() -> pastnet.reader.log.Log:
    return pastnet.read(FOLDER / "shown")


def image_of(figure: object) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def legend_of(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def under(steps: np.ndarray, width: int) -> np.ndarray:
    """A pixel in the middle of each record."""
    edges = np.append(steps, pixels.axis_end(steps))
    return ((edges[:-1] + edges[1:]) / 2 - steps[0]) * width // (edges[-1] - steps[0])


@pytest.mark.parametrize("dark", [False, True])
def test_a_layers_cells_have_the_colours_of_its_states(log, dark) -> None:
    layer = log["pruned"]["conv1"]
    image = image_of(layer.plot(mode="state", dark=dark))
    xs = under(layer.steps, image.shape[1]).astype(int)
    ys = (np.arange(layer.channels) * 2 + 1) * image.shape[0] // (2 * layer.channels)
    shown, states = image[np.ix_(ys, xs)].transpose(1, 0, 2), layer.states()
    assert {"moving", "pruned"} <= set(np.unique(states))
    palette = pixels.palette_of(DARK if dark else LIGHT)
    colours = palette.states[np.vectorize(NAMES.index)(states)]
    is_hatch = (states == "pruned") & (shown == palette.hatch).all(axis=2)
    assert ((shown == colours).all(axis=2) | is_hatch).all()


def test_a_runs_strips_have_the_shares_of_its_states(log) -> None:
    run = log["frozen"]
    overview = run.overview()
    image = image_of(run.plot())
    xs = under(run.steps, image.shape[1]).astype(int)
    for row in range(len(run.layers)):
        strip = image[row * len(image) // 4 : (row + 1) * len(image) // 4]
        strip = strip[strip[..., 3].any(axis=1)]
        is_frozen = (strip[:, xs] == pixels.palette_of(LIGHT).states[NAMES.index("frozen")]).all(2)
        shares = overview.frozen[:, row] / overview.channels[row]
        assert np.abs(is_frozen.mean(axis=0) - shares).max() < 0.02


def test_the_legend_lists_what_occurs(log) -> None:
    assert legend_of(log["dense"].plot()) == ["moving, Δ from 0.0001 to 0.1"]
    leaky = log["leaky"]
    assert legend_of(leaky.plot(threshold=0.05))[0] == "moving, Δ from 0.05 to 0.5"
    assert legend_of(leaky["conv2"].plot())[1:] == ["frozen", "violated"]
    assert legend_of(leaky["conv2"].plot(mode="state")) == ["moving", "frozen", "violated"]
    assert legend_of(leaky["conv2"].plot(mode="delta")) == ["Δ from 0.0001 to 0.1", "violated"]
    still = pastnet.read(FOLDER / "stalled")["still"]
    for mode in ("both", "state", "delta"):
        assert "nonfinite" in legend_of(still["conv2"].plot(mode=mode))
    assert "nonfinite" in legend_of(still.plot())


def test_the_legend_shows_the_scale_of_movement_where_it_is_drawn(log) -> None:
    layer = log["dense"]["conv1"]

    def patches(mode: str) -> int:
        return len(layer.plot(mode=mode).axes[0].get_legend().findobj(Patch))

    assert patches("both") == patches("delta") > patches("state") + 2


def test_the_legend_stands_within_the_figure(log) -> None:
    figure = log["leaky"]["conv2"].plot()
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend().get_window_extent()
    assert abs(legend.x0 - axes.bbox.x0) < 1
    assert axes.bbox.y1 < legend.y0 < legend.y1 < figure.bbox.y1
    assert legend.x1 < figure.bbox.x1


def test_layers_are_chosen_in_their_order(log) -> None:
    [axes] = log["dense"].plot(layers=["logits", "conv2"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["logits", "block/conv2"]
    assert [text.get_text() for text in axes.texts] == ["10 channels", "16 channels"]
    with pytest.raises(UnknownName, match="Could not find layer 'conv4'"):
        log["dense"].plot(layers=["conv4"])


def test_it_draws_into_axes_that_are_given(log) -> None:
    figure = figure_module.Figure()
    above, below = (part.subplots() for part in figure.subfigures(2))
    assert log["dense"].plot(axes=above) is figure
    assert log["dense"]["conv1"].variables["bias"].plot(axes=below) is figure
    assert (len(above.images), len(below.images)) == (1, 1)


def test_a_notebook_shows_it_at_two_pixels_for_one(log) -> None:
    data, size = log["dense"]["conv1"].plot()._repr_png_()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (2 * size["width"], 2 * size["height"])


def test_names_are_neither_formulas_nor_longer_than_the_picture(tmp_path: Path) -> None:
    names = ["$\\frac$", "x" * 300 + "/end", "y" * 40]
    files.write_run(tmp_path, "$^$", layers=dict.fromkeys(names, 2))
    run = pastnet.read(tmp_path)["$^$"]
    figure = run.plot()
    figure.draw_without_rendering()
    first, long, whole = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert (first[-4:], long, whole) == ("rac$", f"…{'x' * 36}/end", "y" * 40)
    assert image_of(figure).shape[1] > 600
    run[names[0]].plot().draw_without_rendering()


def test_of_many_layers_the_picture_stays_of_a_size(tmp_path: Path) -> None:
    layers = {f"layer_{number}": 2 for number in range(100)}
    files.write_run(tmp_path, "wide", layers=layers, steps=range(1, 4))
    assert pastnet.read(tmp_path)["wide"].plot().get_size_inches()[1] < 32


def test_what_cannot_be_drawn_is_an_error(log) -> None:
    empty = pastnet.read(FOLDER / "stalled")["empty"]
    with pytest.raises(InvalidArgument, match="Could not plot 'empty': expected at least one"):
        empty.plot()
    layer = next(iter(empty.layers.values()))
    with pytest.raises(InvalidArgument, match="Could not plot 'conv1/kernel': expected at least"):
        layer.plot()
    with pytest.raises(InvalidArgument, match="expected at least one layer with a record"):
        log["dense"].plot(layers=[])
    with pytest.raises(InvalidArgument, match="mode to be one of both, state, delta, got 'states'"):
        log["dense"]["conv1"].plot(mode="states")


def test_without_matplotlib_the_error_says_what_to_install(log, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "tb_pastnet.reader.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for thing in (log["dense"], log["dense"]["conv1"]):
        with pytest.raises(ImportError, match=r'Run: pip install "tb-pastnet\[plot\]"'):
            thing.plot()
