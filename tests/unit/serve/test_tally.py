"""The counts of a layer, and rows of them."""

from __future__ import annotations

import numpy as np

from tb_pastnet.core import states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, quantize
from tb_pastnet.serve.views import rows
from tb_pastnet.serve.views.rows import Row
from tb_pastnet.serve.views.tally import make_tally

M, F, P = states.MOVING, states.FROZEN, states.PRUNED
VIOLATED, NONFINITE = states.VIOLATED, states.NONFINITE


RECORDS = 9  # of one column: after the patience more than half of them may be settled


def row_of(told, delta, steps, edges, threshold: float = 1e-4) -> Row:
    return make_tally(told, delta, steps, edges).row(threshold)


def column_of(told: list[int], delta: list[int], threshold: float = 1e-4) -> Row:
    """The row of channels that are the same at each record, in one column."""
    records = (
        np.tile(np.array(one, kind), (RECORDS, 1))
        for one, kind in ((told, np.uint8), (delta, np.int16))
    )
    return row_of(*records, np.arange(RECORDS), np.zeros(1, np.int64), threshold)


def test_channels_are_counted_by_state_and_by_mark() -> None:
    row = column_of([M, M, M | NONFINITE, F | VIOLATED, P], [0, ZERO, ZERO, ZERO, ZERO])
    assert row.counts.tolist() == [[0, 2, 0, 1, 1, 1]]
    assert row.violated.tolist() == [1]
    assert row.nonfinite.tolist() == [1]


def test_the_mean_delta_is_of_moving_channels_each_1_at_most() -> None:
    delta = [*quantize([0.5, 4.0]), INFINITE, *quantize([0.125]), NAN]
    row = column_of([M, M, M, F, M], delta)
    assert row.mean_delta.tolist() == [np.float32((0.5 + 1 + 1) / 3)]
    assert column_of([M] * 5, delta, 0.25).mean_delta == row.mean_delta


def test_where_none_moves_there_is_no_mean() -> None:
    assert np.isnan(column_of([M, F], [ZERO, 0]).mean_delta).all()
    assert np.isnan(column_of([M, F], [NAN, 0]).mean_delta).all()


def test_without_a_threshold_none_is_settled() -> None:
    assert column_of([M], [ZERO], 0.0).counts.tolist() == [[0, 1, 0, 0, 0, 0]]
    assert column_of([M], [ZERO], 1e-300).counts.tolist() == [[0, 0, 0, 1, 0, 0]]


def test_a_channel_between_moving_and_settled_is_counted_in_its_third_state() -> None:
    told = np.array([[M], [M], [M], [P], [P], [P], [P], [M], [M]], np.uint8)
    delta = np.full(told.shape, -100, np.int16)
    delta[7:] = -50
    steps, edge = np.arange(100, 109), np.zeros(1, np.int64)
    low, high = (
        row_of(told, delta, steps, edge, threshold).counts.argmax() for threshold in (1e-9, 1.0)
    )
    assert (low, high) == (M, P)


def test_a_column_without_records_is_no_data_and_earlier_ones_go_to_the_first() -> None:
    told = np.array([[M], [P], [F]], np.uint8)
    steps, edges = np.array([1, 5, 30]), np.array([4, 10, 20, 30])
    row = row_of(told, np.zeros((3, 1), np.int16), steps, edges)
    assert row.counts.argmax(axis=1).tolist() == [P, states.NO_DATA, states.NO_DATA, F]
    assert row.counts.sum(axis=1).tolist() == [1] * 4


def test_no_records_no_columns_no_channels() -> None:
    nothing = row_of(np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16), *np.zeros((2, 0)))
    assert nothing.counts.shape == (0, 6)
    unread = row_of(np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16), np.zeros(0), np.ones(2))
    assert unread.counts.tolist() == [[3, 0, 0, 0, 0, 0]] * 2
    narrow = row_of(np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.int16), *[np.arange(2)] * 2)
    assert narrow.counts.sum() == 0


def test_rows_are_stacked_layers_first_and_none_are_no_error() -> None:
    row = row_of(np.array([[M]], np.uint8), np.zeros((1, 1), np.int16), *np.ones((2, 1)))
    assert rows.stack([row, row], 1)["counts"].shape == (2, 1, 6)
    empty = rows.stack([], 3)
    assert {name: array.shape for name, array in empty.items()} == {
        "counts": (0, 3, 6),
        "violated": (0, 3),
        "nonfinite": (0, 3),
        "mean_delta": (0, 3),
    }
    assert {array.dtype.str for array in empty.values()} == {"<u4", "<f4"}
