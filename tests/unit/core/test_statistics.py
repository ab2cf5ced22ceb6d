"""The definition of each statistic, against plain sums."""

import re
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.quantize import ZERO
from tb_pastnet.core.statistics import (
    STATISTICS,
    TABLE,
    Statistic,
    channel_statistics,
    dequantize_statistic,
    quantize_statistics,
)
from tb_pastnet.errors import InvalidArgument

AXIS = explicit_axis(-1, (3, 2), "w")
NOW = np.array([[1.0, 0.0], [2.0, -0.0], [2.0, 5.0]])
PAST = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


def statistics(now=NOW, past=PAST, **masks):
    return dict(zip(STATISTICS, channel_statistics(now, past, AXIS, **masks), strict=True))


def test_norms_and_deltas():
    found = statistics()
    assert found["norm"].tolist() == [3.0, 5.0]
    assert found["past_norm"].tolist() == pytest.approx([5**0.5, 2.0])
    assert found["delta_norm"].tolist() == [2.0, 3.0]
    assert found["delta_max"].tolist() == [2.0, 3.0]
    assert found["changed"].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_without_masks_all_is_kept_and_trainable():
    found = statistics()
    assert found["kept"].tolist() == [1, 1]
    assert found["trainable"].tolist() == [1, 1]


def test_only_what_is_kept_can_be_trainable():
    kept = np.array([[1, 1], [0, 1], [0, 1]])
    trainable = np.array([[0, 1], [1, 1], [1, 0]])
    found = statistics(kept=kept, trainable=trainable)
    assert found["kept"].tolist() == pytest.approx([1 / 3, 1])
    assert found["trainable"].tolist() == pytest.approx([0, 2 / 3])


def test_nan_and_infinity_are_counted_and_left_out():
    now, past = NOW.copy(), PAST.copy()
    now[0, 0], now[1, 0], past[2, 1] = np.nan, np.inf, np.nan
    found = statistics(now, past)
    assert found["nonfinite"].tolist() == [2, 0]
    assert found["norm"].tolist() == [2.0, 5.0]
    assert found["delta_norm"].tolist() == [2.0, 0.0]
    assert found["changed"][0] == 1


def test_nan_that_stays_nan_has_not_changed():
    now = np.full((3, 2), np.nan)
    assert statistics(now, now)["changed"].tolist() == [0, 0]


@pytest.mark.parametrize("size", [1e-30, 1e-200, 1e-300, 1e200])
def test_squares_neither_vanish_nor_overflow(size):
    found = statistics(NOW * size, PAST * size)
    # As ratios: beside pytest's absolute tolerance anything tiny would do.
    assert found["delta_norm"] / size == pytest.approx([2.0, 3.0])
    assert found["norm"] / size == pytest.approx([3.0, 5.0])


def test_float32_deltas_are_taken_in_double():
    now = np.full((3, 2), 1e-30, np.float32)
    assert statistics(now, np.zeros((3, 2), np.float32))["delta_norm"] == pytest.approx(
        3**0.5 * 1e-30, rel=1e-6
    )


def test_a_channel_without_elements_is_zero_and_whole():
    axis = explicit_axis(1, (0, 2), "w")
    found = channel_statistics(np.zeros((0, 2)), np.zeros((0, 2)), axis)
    assert found[:8].tolist() == [[0, 0]] * 4 + [[1, 1], [0, 0], [1, 1], [1, 1]]


def test_another_shape_is_an_error():
    with pytest.raises(InvalidArgument, match=r"expected 6 elements as in \(3, 2\), got shape"):
        channel_statistics(NOW, np.zeros((3, 3)), AXIS)


def test_quantised_shares_stay_exact():
    codes = quantize_statistics(channel_statistics(NOW, NOW, AXIS))
    assert codes.shape == (len(STATISTICS), 2)
    assert codes[4].tolist() == [ZERO, ZERO]
    assert codes[6].tolist() == [0, 0]


def test_quantised_counts_stay_exact():
    now = np.full((300, 2), np.nan)
    now[:299, 1] = 1
    codes = quantize_statistics(channel_statistics(now, now, explicit_axis(-1, now.shape, "w")))
    assert dequantize_statistic(5, codes).tolist() == [300, 1]


def test_quantising_something_else_is_an_error():
    with pytest.raises(InvalidArgument, match=r"expected \d rows, got shape \(3,\)"):
        quantize_statistics([1.0, 2.0, 3.0])


def test_the_documented_statistics_are_those_of_the_table():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "record_format.md").read_text(
        "utf-8"
    )
    rows = re.findall(
        r"^\| \d+ \| (\w+) \| (.*) \| (share |count |)code(?: − code of (\w+))? \|$", text, re.M
    )
    documented = {
        Statistic(
            name.removesuffix("_count"),
            meaning.replace("\\|", "|"),
            code == "share ",
            code == "count ",
            near or None,
        )
        for name, meaning, code, near in rows
    }
    assert documented == set(TABLE)


def test_a_statistic_that_predicts_stands_before_and_isnt_predicted_itself():
    for row, statistic in enumerate(TABLE):
        if statistic.near is not None:
            base = STATISTICS.index(statistic.near)
            assert base < row
            assert TABLE[base].near is None
