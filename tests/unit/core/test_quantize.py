"""Precision, exact zeros and ratios of the 16-bit codes."""

import numpy as np
import pytest

from tb_pastnet.core.quantize import (
    INFINITE,
    NAN,
    PRECISION,
    ZERO,
    dequantize,
    quantize,
    quantize_share,
    ratio_codes,
)


def test_values_are_right_within_the_stated_precision_over_the_range_of_doubles():
    values = np.concatenate([10.0 ** np.linspace(-300, 300, 9001), np.geomspace(1e-9, 1, 9001)])
    error = np.abs(dequantize(quantize(values)) / values - 1)
    assert error.max() <= PRECISION + 1e-12
    assert PRECISION < 0.0225


def test_ratios_are_right_within_four_and_a_half_percent():
    rng = np.random.default_rng(0)
    top, bottom = 10.0 ** rng.uniform(-9, 3, (2, 5000))
    ratio = dequantize(ratio_codes(quantize(top), quantize(bottom)))
    assert np.abs(ratio / (top / bottom) - 1).max() < 0.045


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-45, 1e-30])
def test_no_value_but_zero_becomes_zero(value):
    assert quantize(value) != ZERO
    assert dequantize(quantize(value)) > 0


def test_the_largest_double_stays_finite():
    largest = np.finfo(np.float64).max
    assert np.isfinite(dequantize(quantize(largest)))


def test_special_values_have_their_own_codes():
    assert quantize([0.0, -0.0, np.inf, -np.inf, np.nan]).tolist() == [
        ZERO,
        ZERO,
        INFINITE,
        INFINITE,
        NAN,
    ]
    back = dequantize([ZERO, INFINITE, NAN])
    assert back[0] == 0
    assert back[1] == np.inf
    assert np.isnan(back[2])


def test_a_share_is_zero_or_one_only_where_it_is():
    shares = np.array([0.0, 1e-9, 0.5, 1 - 1e-9, 1.0])
    back = dequantize(quantize_share(shares))
    assert back[0] == 0
    assert back[4] == 1
    assert (back[1:4] > 0).all()
    assert (back[1:4] < 1).all()
    assert np.abs(back[1:4] / shares[1:4] - 1).max() < 0.045


def test_ratio_of_special_codes():
    table = {
        (ZERO, ZERO): ZERO,
        (5, ZERO): INFINITE,
        (ZERO, 5): ZERO,
        (NAN, 5): NAN,
        (5, NAN): NAN,
        (NAN, ZERO): NAN,
        (INFINITE, 5): INFINITE,
        (5, INFINITE): ZERO,
        (30000, -30000): NAN - 1,
        (-30000, 30000): ZERO + 1,
    }
    top, bottom = np.array(list(table), dtype=np.int16).T
    assert ratio_codes(top, bottom).tolist() == list(table.values())


def test_scalars_and_empty_arrays_keep_their_shape():
    assert quantize(1.0).shape == ()
    assert quantize(np.zeros((2, 0))).shape == (2, 0)
    assert dequantize(np.zeros((0,), np.int16)).shape == (0,)
    assert quantize_share(0.3).shape == ()


def test_ratios_of_ordinary_codes_are_those_of_codes_beside_special_ones():
    edges = np.array([-32767, -17184, -16384, -16383, -16382, -1, 0, 1, 16382, 16383], np.int16)
    top, bottom = (grid.ravel() for grid in np.meshgrid(edges, edges))
    expected = np.clip(top.astype(int) - bottom, ZERO + 1, NAN - 1)
    for some in (slice(None), *(slice(at, at + 1) for at in range(len(top)))):
        np.testing.assert_array_equal(ratio_codes(top[some], bottom[some]), expected[some])
