"""The Network view of long runs: its numbers are those of single records, however wide the window is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.e2e.colours import named
from tests.e2e.conftest import BROWSED, Tab, known, tensorboard, wait
from tests.e2e.texts import LEGEND, cell_texts, head_text, legend_texts, total_of
from tests.event_files import LineageWriter, codes, freeze

LAYERS = {"conv1": 8, "block/conv2": 12, "block/conv3": 16}
ROWS = {"All layers": tuple(LAYERS), "block/": ("block/conv2", "block/conv3")} | {
    layer: (layer,) for layer in LAYERS
}
STEPS = {"often": range(3, 6003, 3), "rarely": range(5, 6005, 5)}
UNION = sorted({step for steps in STEPS.values() for step in steps})
PATIENCE = 5
"""Records for which a channel that was held counts as reactivated."""
WIDTHS = (700, 1000, 1280, 1600, 1920, 2560)
PINNED = (2999, 4500)
"""Steps: one without a record of either run, one with records of both."""
AT_WIDTHS = [
    (2999, WIDTHS[::2]),
    (4500, WIDTHS[1::2]),
    *(pytest.param(step, WIDTHS, marks=pytest.mark.prove) for step in PINNED),
]
"""At each change every width and both steps, each width with one of them."""


def held(layer: str, record: int) -> int:
    """How many channels of a layer are frozen at a record: another number at each."""
    most = 2 + record // 40 % (LAYERS[layer] - 2)
    return (record * 5 + LAYERS[layer]) % most


def at_record(layer: str, record: int) -> Counter[str]:
    """Channels of a layer in each state at a record, as it was written: the first ones are frozen."""
    frozen = held(layer, record)
    before = [held(layer, other) for other in range(max(0, record - PATIENCE), record)]
    reactivated = max(0, max(before, default=0) - frozen)
    moving = LAYERS[layer] - frozen - reactivated
    return Counter(frozen=frozen, reactivated=reactivated, moving=moving)


def in_force(run: str, step: int) -> int:
    """The number of the record in force at a step."""
    return sum(one <= step for one in STEPS[run]) - 1


def expected(run: str, row: str, step: int) -> Counter[str]:
    """Channels of a row in each state."""
    return sum((at_record(layer, in_force(run, step)) for layer in ROWS[row]), Counter())


@pytest.fixture(scope="module", params=BROWSED)
def long(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Two runs with more records than any window has pixels for, in each loader."""
    logdir = tmp_path_factory.mktemp("long") / "logs"
    for number, (run, steps) in enumerate(STEPS.items()):
        writer = LineageWriter(
            logdir, run, lineage=0x7000 + number, layers=LAYERS, every=steps.step, block=256
        )
        writer.first_step = steps[0]
        writer.describe(0)
        values = {}
        for layer, channels in LAYERS.items():
            # Always as at the first steps: nothing calms down.
            array = codes([1] * len(steps), channels)
            for record in range(len(steps)):
                freeze(array, slice(record, record + 1), slice(0, held(layer, record)))
            values[f"{layer}/kernel"] = array
        writer.records(steps, values)
        writer.close(steps[-1])
    with tensorboard(logdir, loader=request.param) as tab:
        wait(lambda: known(tab, len(STEPS), sum(map(len, STEPS.values()))), "all records")
        yield tab


@pytest.mark.parametrize(("step", "widths"), AT_WIDTHS)
def test_heads_legend_and_table_are_of_one_record_at_any_width(
    long: Tab, step: int, widths: tuple[int, ...]
) -> None:
    found = clean(long.drive("widths", widths=widths, step=step, runs=list(STEPS)))
    records = {run: STEPS[run][in_force(run, step)] for run in STEPS}
    total = {run: expected(run, "All layers", step) for run in STEPS}
    assert len({str(one) for one in total.values()}) == len(STEPS)
    heads = {run: head_text(counts, records[run], step) for run, counts in total.items()}
    legends = {
        run: {"of": f"{run}, step {records[run]:,}", "numbers": legend_texts(one)}
        for run, one in total.items()
    }
    rows = {
        f"{row} {run}": [str(total_of(counts)), f"{records[run]:,}", *cell_texts(counts), "0"]
        for row in ROWS
        for run in STEPS
        for counts in [expected(run, row, step)]
    }
    for width in widths:
        seen = found[str(width)]
        assert seen["heads"] == heads, width
        assert seen["legends"] == legends, width
        table = {f"{row[0]} {row[1]}": row[2:] for row in seen["table"]}
        assert table == rows, width
        assert seen["hidden"] == [], width


@pytest.mark.parametrize("width", [1000, pytest.param(2560, marks=pytest.mark.prove)])
def test_an_arrow_goes_from_record_to_record_at_any_width(long: Tab, width: int) -> None:
    start = UNION.index(3000)
    found = clean(long.drive("arrows", width=width, step=UNION[start], times=8))
    onwards = UNION[start + 1 : start + 9]
    assert [seen["step"] for seen in found["right"]] == onwards
    assert [seen["step"] for seen in found["left"]] == UNION[start : start + 8][::-1]
    for seen in [*found["right"], *found["left"]]:
        step = seen["step"]
        assert seen["pill"] == [f"{step:,}"]
        records = {run: steps[in_force(run, step)] for run, steps in STEPS.items()}
        heads = [head_text(expected(run, "All layers", step), records[run], step) for run in STEPS]
        assert seen["heads"] == heads
        assert seen["legend"] == f"often, step {records['often']:,}"


def test_where_it_is_zoomed_into_strips_show_single_records(long: Tab) -> None:
    steps = range(3000, 3030, 3)
    drawn = clean(long.drive("drawnNetwork", steps=list(steps), hash={"z": "2990~3050"}))
    seen = []
    for step in steps:
        for label, run, colours in drawn[str(step)]:
            row = next(own for own in ROWS if own.strip("/").split("/")[-1] == label)
            counts, pixels = expected(run, row, step), named(colours)
            for state in LEGEND:
                height = len(colours) * counts[state] / total_of(counts)
                assert abs(pixels[state] - height) <= 1.5, (step, run, row, state)
            seen.append(str(counts))
    # One picture for all would not do.
    assert len(set(seen)) > len(steps)
    assert np.ptp([held("conv1", record) for record in range(999, 1009)]) > 1
