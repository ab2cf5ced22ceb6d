"""Columns to draw, and the index."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core import statistics as s
from tb_pastnet.core.channel_states import (
    FROZEN,
    MOVING,
    NAMES,
    NO_DATA,
    NONFINITE,
    PRUNED,
    QUIET,
    REACTIVATED,
)
from tb_pastnet.reader.figures import Figures, StepSpan, figures_of
from tb_pastnet.reader.index import index_of, stretches
from tb_pastnet.reader.overview import VIOLATED, WHOLE, overview_columns, pool
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.tally import StateCounts
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run

Answer = tuple[dict, dict[str, np.ndarray]]


def figures(provider: MemoryProvider, run: str = "a", threshold: float = 1e-4) -> Figures:
    store = Store(provider)
    return figures_of(store.reader(CALLER, store.catalog(CALLER).runs[run]), threshold)


def overview(provider: MemoryProvider, most: int, part: StepSpan | None = None) -> Answer:
    return overview_columns(figures(provider), most, part or StepSpan())[:2]


def pooled(counts, starts, *, violated=None, mean=None) -> dict[str, np.ndarray]:
    """Columns of one row, given the counts of its records."""
    counts = np.array([counts], np.float64)
    none = np.zeros(counts.shape[:2])
    marked = none if violated is None else np.array([violated], float)
    means = np.full(none.shape, np.nan) if mean is None else np.array([mean], float)
    found = pool(StateCounts(counts, marked, means), np.array(starts))
    return {name: values[0] for name, values in found.items()}


def test_each_record_is_a_column_where_there_is_room() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 21))
    header, arrays = overview(provider, 64)
    assert arrays["first_steps"].tolist() == arrays["steps"].tolist() == list(range(1, 21))
    assert arrays["shares"][:, :, MOVING].tolist() == [[WHOLE] * 20] * 2
    assert header["layers"] == ["conv1", "block/conv2"]
    assert header["channels"] == [4, 6]


def test_columns_are_even_ranges_of_steps() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(100))
    _, arrays = overview(provider, 4)
    assert arrays["first_steps"].tolist() == [0, 25, 50, 75]
    assert arrays["steps"].tolist() == [24, 49, 74, 99]
    assert arrays["wall_times"].tolist() == [files.CREATED + step for step in (24, 49, 74, 99)]


def test_a_part_of_the_steps_is_split_as_the_whole_is() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(0, 200, 2))
    _, found = overview(provider, 4, StepSpan(41, 80))
    # Of the steps 42 to 80, in quarters.
    assert found["first_steps"].tolist() == [42, 52, 62, 72]
    assert found["steps"].tolist() == [50, 60, 70, 80]
    assert (found["shares"].sum(axis=2) == WHOLE).all()
    for part in (StepSpan(last=6), StepSpan(-9, 6)):
        assert overview(provider, 4, part)[1]["steps"].tolist() == [0, 2, 4, 6]
    _, nowhere = overview(provider, 4, StepSpan(first=1000))
    assert nowhere["steps"].tolist() == []
    assert (nowhere["shares"].shape, nowhere["total_shares"].shape) == ((2, 0, 8), (0, 8))
    assert {array.dtype.str for array in nowhere.values()} == {"<f8", "<f4", "|u1"}


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_those_of_the_records_and_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records, channels = 50, int(rng.integers(1, 300))
    counts = np.array([rng.multinomial(channels, rng.dirichlet([0.2] * 7)) for _ in range(records)])
    counts = np.column_stack([np.zeros(records, int), counts])
    lost = rng.random(records) < 0.3
    counts[lost] = [channels, *[0] * 7]
    starts = [0, *sorted(rng.choice(np.arange(1, records), 9, replace=False).tolist())]
    found = pooled(counts, starts)["shares"]
    assert found.dtype == np.uint8
    for at, (start, end) in enumerate(zip(starts, [*starts[1:], records], strict=True)):
        here = [
            row for row, gone in zip(counts[start:end], lost[start:end], strict=True) if not gone
        ]
        exact = np.sum(here, axis=0) / (len(here) * channels) if here else np.eye(8)[NO_DATA]
        assert found[at].sum() == WHOLE
        # Where a rare state got a part of its own, another one lost it.
        assert (np.abs(found[at] / WHOLE - exact) <= 3 / WHOLE).all()
        assert (found[at][exact == 0] == 0).all()


@pytest.mark.parametrize("rare", [REACTIVATED, NONFINITE])
def test_a_channel_that_is_rare_for_a_moment_keeps_a_part_of_its_column(rare: int) -> None:
    counts = np.zeros((100, len(NAMES)))
    counts[:, FROZEN] = 4096
    counts[37, [FROZEN, rare]] = [4095, 1]
    found = pooled(counts, [0, 50])["shares"]
    assert [{at: part for at, part in enumerate(row) if part} for row in found.tolist()] == [
        {FROZEN: WHOLE - 1, rare: 1},
        {FROZEN: WHOLE},
    ]


def test_records_without_data_are_no_part_of_a_column_that_has_some() -> None:
    gone, there = [4, 0, 0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 1, 0, 0]
    found = pooled([gone, there, gone, gone], [0, 3])["shares"]
    assert found[0].tolist() == [0, 191, 0, 0, 0, 64, 0, 0]
    assert found[1].tolist() == [WHOLE, 0, 0, 0, 0, 0, 0, 0]


def test_a_mark_of_one_record_stays() -> None:
    moving = [[0, 4, 0, 0, 0, 0, 0, 0]] * 6
    found = pooled(moving, [0, 2, 4, 5], violated=[0, 0, 1, 0, 0, 0])
    assert found["marks"].tolist() == [0, VIOLATED, 0, 0]
    assert found["marks"].dtype == np.uint8


def test_the_mean_delta_of_a_column_is_weighted_by_moving_channels() -> None:
    counts = np.zeros((5, len(NAMES)))
    counts[:, MOVING], counts[:, QUIET] = [1, 3, 0, 4, 0], [3, 1, 4, 0, 4]
    found = pooled(counts, [0, 2, 4], mean=[0.5, 0.25, np.nan, 0.125, np.nan])
    np.testing.assert_allclose(found["mean_delta"], [(0.5 + 3 * 0.25) / 4, 0.125, np.nan])


def test_marks_and_reactivated_channels_of_a_log_reach_the_columns() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), layers={"wide": 1000, "narrow": 2})
    kernel = files.codes(range(1, 101), 1000)
    files.freeze(kernel, slice(None), slice(None))
    kernel[[s.TRAINABLE, s.DELTA_NORM], 40, 7] = 0  # for one record alone
    kernel[s.CHANGED, 90, 3] = 0
    writer.records(range(1, 101), {"wide/kernel": kernel})
    header, arrays = overview(provider, 4)
    for name, at in (("shares", (0, 1)), ("total_shares", (1,))):
        assert arrays[name][at][REACTIVATED] == 1, name
    assert arrays["shares"][0].tolist() == [
        [0, 0, 0, 0, WHOLE, 0, 0, 0],
        [0, 0, 1, 0, WHOLE - 1, 0, 0, 0],
        *[[0, 0, 0, 0, WHOLE, 0, 0, 0]] * 2,
    ]
    assert arrays["marks"].tolist() == [[0, 0, 0, VIOLATED], [0] * 4]
    assert arrays["total_marks"].tolist() == [0, 0, 0, VIOLATED]
    assert header["violated_channels"] == 1


def test_a_layer_without_a_record_has_no_data_there() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    del provider.tree[writer.tb_run]["channels/block/conv2/kernel"][0]
    header, arrays = overview(provider, 64)
    assert arrays["shares"][1, :, NO_DATA].tolist() == [WHOLE] * 16 + [0] * 16
    assert header["accounts"][1]["unreadable"] == 16
    # Of all layers together the others are told.
    assert arrays["total_shares"][0].tolist() == [153, 102, 0, 0, 0, 0, 0, 0]
    _, arrays = overview(provider, 1)
    assert arrays["shares"][1, :, NO_DATA].tolist() == [0]


def test_where_the_timeline_ends_early_the_first_layer_knows_the_steps() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    provider.tree[writer.tb_run]["timeline"].pop()
    _, arrays = overview(provider, 64)
    assert arrays["steps"].tolist() == list(range(1, 33))
    assert np.isnan(arrays["wall_times"][16:]).all()


def test_a_run_without_layers_is_an_empty_picture() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={})
    _, arrays = overview(provider, 64)
    assert arrays["shares"].shape == (0, 4, 8)
    assert arrays["total_shares"].shape == (4, 8)
    assert np.isnan(arrays["total_mean_delta"]).all()


def test_a_run_of_which_only_the_description_is_there_is_in_the_index() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(0))
    (run,) = index_of(Store(provider).catalog(CALLER))["runs"]
    assert (run["records"], run["first_step"], run["last_step"]) == (0, None, None)
    assert (run["wall_time"], run["steps"]) == ([None, None], [])
    _, arrays = overview(provider, 64)
    assert arrays["shares"].shape == (2, 0, 8)


def test_all_layers_together_are_told_by_their_channels() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), layers={"narrow": 3, "wide": 300})
    kernel = files.prune(files.codes(range(1, 5), 300), slice(2, None), slice(0, 100))
    writer.records(range(1, 5), {"wide/kernel": kernel})
    found = figures(provider)
    _, arrays, _ = overview_columns(found, 64, StepSpan())
    assert arrays["shares"][1, 3, [MOVING, PRUNED]].tolist() == [170, 85]
    assert arrays["total_shares"][:2, MOVING].tolist() == [WHOLE] * 2
    right = [WHOLE * 203 / 303, WHOLE * 100 / 303]
    assert np.abs(arrays["total_shares"][3, [MOVING, PRUNED]] - right).max() <= 1
    narrow, wide = found.states.mean_delta.astype(np.float64)
    expected = (3 * narrow + [300, 300, 200, 200] * wide) / [303, 303, 203, 203]
    np.testing.assert_allclose(arrays["total_mean_delta"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ([], []),
        ([7], [[7, 1, 1]]),
        ([7, 9], [[7, 2, 2]]),
        ([0, 10, 20, 25, 30], [[0, 10, 3], [25, 5, 2]]),
        ([1, 2, 10, 20, 30], [[1, 1, 2], [10, 10, 3]]),
        ([1, 5, 6, 10**15], [[1, 4, 2], [6, 10**15 - 6, 2]]),
    ],
)
def test_steps_are_told_in_stretches(steps: list[int], parts: list[list[int]]) -> None:
    assert stretches(np.array(steps, np.int64)) == parts


def test_stretches_tell_all_steps_again() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        gaps = rng.choice([1, 1, 1, 5, 10], int(rng.integers(0, 40)))
        steps = np.cumsum(gaps)
        told = [first + at * by for first, by, count in stretches(steps) for at in range(count)]
        assert told == steps.tolist()
