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
    quantize_shares,
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
    # The worst: rounded in different directions, from the middle between two codes.
    middle = 2.0 ** ((np.arange(-160, 160) + 0.5) / 16)
    top = np.concatenate([top, middle * (1 + 1e-9), middle * (1 - 1e-9)])
    bottom = np.concatenate([bottom, middle[::-1] * (1 - 1e-9), middle[::-1] * (1 + 1e-9)])
    error = np.abs(dequantize(ratio_codes(quantize(top), quantize(bottom))) / (top / bottom) - 1)
    assert 0.044 < error.max() < 0.045


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
    shares = np.array([0.0, *np.geomspace(1e-9, 1 - 1e-9, 999), 1.0])
    back = dequantize(quantize_shares(shares))
    assert back[0] == 0
    assert back[-1] == 1
    assert (back[1:-1] > 0).all()
    assert (back[1:-1] < 1).all()
    assert PRECISION < np.abs(back[1:-1] / shares[1:-1] - 1).max() < 0.045


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
    assert quantize_shares(0.3).shape == ()


def test_ratios_of_ordinary_codes_are_those_of_codes_beside_special_ones():
    edges = np.array([-32767, -17184, -16384, -16383, -16382, -1, 0, 1, 16382, 16383], np.int16)
    top, bottom = (grid.ravel() for grid in np.meshgrid(edges, edges))
    expected = np.clip(top.astype(int) - bottom, ZERO + 1, NAN - 1)
    for some in (slice(None), *(slice(at, at + 1) for at in range(len(top)))):
        np.testing.assert_array_equal(ratio_codes(top[some], bottom[some]), expected[some])


def assert_codes_of_doubles(bits):
    """float32 have the codes of the same doubles, which are computed by the definition."""
    values = bits.astype(np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        doubles = values.astype(np.float64)
    np.testing.assert_array_equal(quantize(values), quantize(doubles))


def test_float32_have_the_codes_of_doubles():
    rng = np.random.default_rng(1)
    assert_codes_of_doubles(rng.integers(0, 1 << 32, 200_000, np.uint32))
    assert_codes_of_doubles(rng.integers(0, 1 << 23, 20_000, np.uint32))  # subnormal
    assert_codes_of_doubles(np.concatenate([np.arange(64), np.arange(0x7F7FFFF0, 0x7F800010)]))


def test_float32_round_to_the_nearest_code_at_each_boundary():
    codes = np.arange(-126 * 16, 128 * 16 - 1)
    boundary = np.exp2((codes + 0.5) / 16)
    below, above = boundary.astype(np.float32), boundary.astype(np.float32)
    below = np.where(below > boundary, np.nextafter(below, np.float32(0)), below)
    above = np.where(above < boundary, np.nextafter(above, np.float32(np.inf)), above)
    np.testing.assert_array_equal(quantize(below), codes)
    np.testing.assert_array_equal(quantize(above), codes + 1)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_float32_of_any_shape(shape):
    values = np.full(shape, 2.0, np.float32)
    codes = quantize(values)
    assert (codes.shape, codes.dtype) == (shape, np.int16)
    assert (codes == 16).all()
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(quantize(transposed), quantize(transposed.astype(np.float64)))
