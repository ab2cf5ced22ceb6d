"""The counts of a layer, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core import channel_states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, quantize
from tb_pastnet.reader.tally import StateCounts, make_tally

M, S, F, P = (
    channel_states.MOVING,
    channel_states.QUIET,
    channel_states.FROZEN,
    channel_states.PRUNED,
)
VIOLATED, N = channel_states.VIOLATED, channel_states.NONFINITE


def row_of(
    told: list[int], delta: list[int], threshold: float = 1e-4, records: int = 9
) -> StateCounts:
    """The row of channels that are the same at each record."""
    states_, deltas = (
        np.tile(np.array(one, kind), (records, 1))
        for one, kind in ((told, np.uint8), (delta, np.int16))
    )
    return make_tally(states_, deltas).counts(threshold).at(0)


def test_channels_are_counted_by_state_and_by_mark() -> None:
    row = row_of([M, M, N, F | VIOLATED, P], [0, ZERO, NAN, ZERO, ZERO])
    assert row.counts.tolist() == [[0, 1, 0, 1, 1, 1, 0, 1]] * 9
    assert row.violated.tolist() == [1] * 9


def test_they_become_quiet_record_by_record() -> None:
    delta = int(quantize(1e-5))
    assert row_of([M, M], [delta, 0], 1e-4, 7).counts[:, [M, S]].tolist() == (
        [[2, 0]] * 4 + [[1, 1]] * 3
    )
    for loud in (quantize(1e-3), INFINITE, NAN):
        deltas = np.full((8, 1), delta, np.int16)
        deltas[6] = loud
        row = make_tally(np.full((8, 1), M, np.uint8), deltas).counts(5e-5).at(0)
        assert row.counts.argmax(axis=1).tolist() == [M] * 4 + [S] * 2 + [M] * 2


def test_the_mean_delta_is_of_moving_channels_each_1_at_most() -> None:
    delta = [*quantize([0.5, 4.0]), INFINITE, *quantize([0.125]), NAN]
    row = row_of([M, M, M, F, M], delta)
    assert row.mean_delta.tolist() == [np.float32((0.5 + 1 + 1) / 3)] * 9
    assert row_of([M] * 5, delta, 0.25).mean_delta.tolist() == (
        [np.float32((0.5 + 1 + 1 + 0.125) / 4)] * 4 + [np.float32((0.5 + 1 + 1) / 3)] * 5
    )


def test_where_none_moves_there_is_no_mean() -> None:
    assert np.isnan(row_of([M, F], [ZERO, 0]).mean_delta).all()
    assert np.isnan(row_of([M, F], [NAN, 0]).mean_delta).all()


def test_without_a_threshold_none_is_quiet() -> None:
    assert row_of([M], [ZERO], 0.0).counts.tolist() == [[0, 1, 0, 0, 0, 0, 0, 0]] * 9
    assert row_of([M], [ZERO], 1e-300).counts.tolist() == [[0, 0, 0, 1, 0, 0, 0, 0]] * 9


def test_no_records_and_no_channels() -> None:
    for pack in (False, True):
        empty = np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16)
        nothing = make_tally(*empty, pack=pack).counts(1e-4).at(0)
        assert (nothing.counts.shape, nothing.mean_delta.shape) == ((0, 8), (0,))
        empty = np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.int16)
        narrow = make_tally(*empty, pack=pack).counts(1e-4).at(0)
        assert narrow.counts.tolist() == [[0] * 8] * 2
        assert np.isnan(narrow.mean_delta).all()


@pytest.mark.parametrize("pack", [False, True])
def test_variables_side_by_side_have_the_counts_of_each_alone(pack: bool) -> None:
    widths = [1, 7, 8, 8, 9, 65]
    rng = np.random.default_rng(3)
    told = rng.choice([M, M, M, F, P, N, M | VIOLATED], (30, sum(widths))).astype(np.uint8)
    delta = rng.choice([*range(-260, -190), ZERO, NAN, INFINITE], told.shape).astype(np.int16)
    times = [1, 0, 2, 1, 1, 3]
    together = make_tally(told, delta, widths, times, pack=pack)
    deltas = np.zeros(24, int)
    ends = np.cumsum(widths)
    for threshold in (0.0, 1e-4, 2e-4, 1.0):
        counts = together.counts(threshold)
        for number, (end, width) in enumerate(zip(ends, widths, strict=True)):
            own = slice(end - width, end)
            alone = make_tally(told[:, own], delta[:, own])
            deltas += times[number] * alone.deltas * (threshold == 0.0)
            for one, other in zip(counts.at(number), alone.counts(threshold).at(0), strict=True):
                np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(together.deltas, deltas)


def test_the_distribution_is_of_deltas_of_channels_that_train() -> None:
    values = [1e-9, 2e-7, 1.5e-4, 1.9e-4, 0.05, 7.0]
    special = [ZERO, INFINITE, NAN, *quantize([1.5e-4])]
    delta = np.array([[*quantize(values), *special]], np.int16)
    told = np.array([[M] * (len(values) + 3) + [F]], np.uint8)
    found = make_tally(told, delta).deltas
    # Quarters of decades from 1e-7 to 1e-1: 2e-7 lies in the second, 1.5e-4 in the first of its decade.
    expected = np.zeros(24, int)
    expected[[0, 1, 12, 13, 22, 23]] = 1
    assert found.tolist() == expected.tolist()
    assert make_tally(np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16)).deltas.sum() == 0
