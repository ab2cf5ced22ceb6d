from __future__ import annotations

from collections import Counter

import numpy as np

from tb_pastnet.core import states
from tb_pastnet.core.account import Account
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, quantize
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.serve.store.series import Series
from tb_pastnet.serve.views import channel, rows
from tests import event_files as files

M, R, S, F, P = states.MOVING, states.REACTIVATED, states.SETTLED, states.FROZEN, states.PRUNED
VIOLATED, NONFINITE = states.VIOLATED, states.NONFINITE


def test_channels_are_counted_by_state_and_by_mark() -> None:
    told = np.array([[M, S | NONFINITE, F | VIOLATED, P]], np.uint8)
    row = rows.make_row(told, np.full((1, 4), ZERO, np.int16), np.array([7]), np.array([7]))
    assert row.counts.tolist() == [[0, 1, 0, 1, 1, 1]]
    assert row.violated.tolist() == [1]
    assert row.nonfinite.tolist() == [1]


def test_the_mean_delta_is_of_moving_channels_each_1_at_most() -> None:
    told = np.array([[M, M, M, S, M]], np.uint8)
    delta = np.array([[*quantize([0.5, 4.0]), INFINITE, 0, NAN]], np.int16)
    row = rows.make_row(told, delta, np.array([7]), np.array([7]))
    assert row.mean_delta.tolist() == [np.float32((0.5 + 1 + 1) / 3)]


def test_where_none_moves_there_is_no_mean() -> None:
    told = np.array([[S, F]], np.uint8)
    assert np.isnan(
        rows.make_row(told, np.zeros((1, 2), np.int16), *np.ones((2, 1))).mean_delta
    ).all()


def test_a_column_without_records_is_no_data_and_earlier_ones_go_to_the_first() -> None:
    told = np.array([[M], [S], [F]], np.uint8)
    steps, edges = np.array([1, 5, 30]), np.array([4, 10, 20, 30])
    row = rows.make_row(told, np.zeros((3, 1), np.int16), steps, edges)
    assert row.counts.argmax(axis=1).tolist() == [S, states.NO_DATA, states.NO_DATA, F]
    assert row.counts.sum(axis=1).tolist() == [1] * 4


def test_no_records_no_columns_no_channels() -> None:
    nothing = rows.make_row(
        np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16), *np.zeros((2, 0))
    )
    assert nothing.counts.shape == (0, 6)
    unread = rows.make_row(
        np.zeros((0, 3), np.uint8), np.zeros((0, 3), np.int16), np.zeros(0), np.ones(2)
    )
    assert unread.counts.tolist() == [[3, 0, 0, 0, 0, 0]] * 2
    narrow = rows.make_row(
        np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.int16), *[np.arange(2)] * 2
    )
    assert narrow.counts.sum() == 0


def test_rows_are_stacked_layers_first_and_none_are_no_error() -> None:
    row = rows.make_row(np.array([[M]], np.uint8), np.zeros((1, 1), np.int16), *np.ones((2, 1)))
    assert rows.stack([row, row], 1)["counts"].shape == (2, 1, 6)
    empty = rows.stack([], 3)
    assert {name: array.shape for name, array in empty.items()} == {
        "counts": (0, 3, 6),
        "violated": (0, 3),
        "nonfinite": (0, 3),
        "mean_delta": (0, 3),
    }
    assert {array.dtype.str for array in empty.values()} == {"<u4", "<f4"}


def test_a_channel_is_told_in_words_and_numbers() -> None:
    steps = np.arange(1, 13)
    codes = files.codes(steps, 2)
    files.freeze(codes, slice(4, None), slice(0, 1))
    codes[1, 0, 0] = ZERO
    files.poison(codes, slice(2, 3), slice(0, 1))
    none = np.zeros(12)
    series = Series(steps, steps - 1, none, none, none.astype(int), codes, Account(), Counter())
    told = states.channel_states(codes, steps, steps - 1, measured=True)
    found = channel.channel_of(series, told[:, 0], 0)
    assert set(found) == {
        "steps", "past_steps", "state", "violated", "relative_delta", "changes", *STATISTICS,
    }  # fmt: skip
    assert found["state"] == ["moving"] * 4 + ["frozen"] * 8
    assert found["changes"] == [{"step": 5, "from": "moving", "to": "frozen"}]
    assert found["relative_delta"][0] is None
    assert found["relative_delta"][4:] == [0.0] * 8
    assert found["nonfinite"][:4] == [0, 0, 2, 0]
    assert found["violated"] == [False] * 12
    assert all(len(found[name]) == 12 for name in STATISTICS)
