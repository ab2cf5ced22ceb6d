"""The runs, drawn: numbers of lanes are those of the log at any width, and no two names are cut to one text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.contract.test_lanes import Scalars
from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.e2e.made_logs import made_tab
from tests.event_files import LineageWriter

WIDTHS = (700, 1000, 1280, 1600, 1920, 2560)
RUNS = {"often": range(3, 303, 3), "rarely": range(5, 305, 5)}
LOSS_EVERY = 20
RATES = (0.5, 0.25, 0.125)
LONG = "evaluation/averaged_over_all_epochs_learning_rate"


def rate(step: int) -> float:
    """Another one in each third."""
    return RATES[min(step // 100, 2)]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Two runs whose training logged its loss by steps, and by epochs."""
    logdir = tmp_path_factory.mktemp("lanes") / "logs"
    for number, (run, steps) in enumerate(RUNS.items()):
        writer = LineageWriter(logdir, run, lineage=0x100 + number, layers={"conv1": 8})
        writer.describe(0)
        writer.records(steps, learning_rates=[rate(step) for step in steps])
        scalars = Scalars(logdir / run)
        for count, step in enumerate(range(LOSS_EVERY, 301, LOSS_EVERY)):
            own = count if run == "rarely" else step
            scalars.add("loss", 1 / step, own, writer.created + step)
            scalars.add(LONG, 1.5e-4, own, writer.created + step)
        scalars.close()
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, len(RUNS), sum(map(len, RUNS.values()))), "all records")
        yield tab


def expected(run: str, step: int) -> tuple[str, str]:
    """Learning rate and loss at a step, as they were written."""
    record = max((own for own in RUNS[run] if own <= step), default=None)
    at = step // LOSS_EVERY * LOSS_EVERY
    own = at if run == "often" else at // LOSS_EVERY - 1
    number = f"{1 / at:.4g}" if at else "–"
    aside = "" if own == step or not at else f"{'≈ ' if run == 'rarely' else ''}{own}: "
    return ("–" if record is None else f"{rate(record):.3g}"), aside + number


def test_numbers_at_the_cursor_are_the_logs_at_any_width(logged: Tab) -> None:
    steps = (4, 100, 153, 300)
    found = clean(logged.drive("lanesAt", widths=WIDTHS, steps=steps))
    for width, step in product(WIDTHS, steps):
        seen = found[f"{width} {step}"]
        lanes = {lane["run"]: (lane["rate"], lane["scalar"]) for lane in seen["lanes"]}
        assert lanes == {run: expected(run, step) for run in RUNS}, (width, step)
        value = expected("often", step)
        assert f"Step {step}" in seen["readout"], (width, step)
        assert value[0] in seen["readout"]
        assert value[1].rpartition(": ")[2] in seen["readout"]


def test_all_lanes_show_what_the_menu_says_and_a_run_without_it_says_so(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    logged = {"a": ("loss", "epoch_loss"), "b": ("epoch_loss",), "c": ()}
    for number, run in enumerate(logged):
        writer = LineageWriter(logdir, run, lineage=0x200 + number, layers={"conv1": 8})
        writer.describe(0)
        writer.records(range(3, 30, 3))
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 3, 27), "all records")
        none = clean(tab.drive("scalarsTold"))
    for run, names in logged.items():
        scalars = Scalars(logdir / run)
        for name in names:
            for step in range(3, 30, 3):
                scalars.add(name, 1 / step, step, writer.created + step)
        scalars.close()
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 3, 27), "all records")
        some = clean(tab.drive("scalarsTold"))
    assert (none["menu"], none["titles"]) == ([], [])
    assert "no scalars" in none["legend"]
    assert some["menu"] == ["epoch_loss"]
    assert [title.partition(".")[0] for title in some["titles"]] == [
        "epoch_loss", "epoch_loss", "This run has no epoch_loss",
    ]  # fmt: skip
    assert "no scalars" not in some["legend"]


def test_numbers_with_long_names_dont_cover_each_other(logged: Tab) -> None:
    views = [{"v": view, "sc": LONG} for view in ("network", "layer")]
    found = clean(logged.drive("readoutCovered", views=views, widths=(700, 1000, 1280, 1440)))
    assert all(seen["numbers"] for seen in found)
    for seen in found:
        assert (seen["covered"], seen["cut"]) == ([], [])


@pytest.mark.parametrize("dark", [False, True])
def test_lanes_are_accessible(logged: Tab, dark: bool) -> None:
    assert clean(logged.drive("lanesLook", dark=dark)) == []


def test_no_two_names_are_cut_to_one_text(tmp_path: Path) -> None:
    views = [{"v": view} for view in ("findings", "network", "layer", "compare")]
    with made_tab("sweep", tmp_path) as tab:
        found = clean(tab.drive("cutNames", views=views, widths=(700, 1000, 1440, 2560)))
    assert len([seen for seen in found if len(seen["names"]) > 5]) > 16
    for seen in found:
        texts: dict[str, set[str]] = {}
        for name, text in seen["names"]:
            texts.setdefault(text, set()).add(name)
        same = {text: names for text, names in texts.items() if len(names) > 1}
        assert same == {}, (seen["width"], seen["view"], seen["selector"])
