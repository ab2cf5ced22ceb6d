"""Nothing becomes zero or infinite that wasn't."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.narrow import narrow

SMALLEST, LARGEST = 2.0**-149, (2 - 2.0**-23) * 2.0**127


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, 0.0), (-0.0, -0.0), (1e-300, SMALLEST), (-5e-324, -SMALLEST), (2.0**-149, SMALLEST),
        (1e39, LARGEST), (-1e300, -LARGEST), (np.inf, np.inf), (-np.inf, -np.inf),
        (np.nan, np.nan), (0.1, 0.10000000149011612), (LARGEST * (1 + 1e-12), LARGEST),
    ],
)  # fmt: skip
def test_both_ends(value, expected):
    found = narrow(np.array([value]))
    assert (found.dtype, found.shape) == (np.float32, (1,))
    np.testing.assert_array_equal(found, [expected])
    assert np.signbit(found[0]) == np.signbit(expected) or np.isnan(expected)


def test_scalars_and_empty_arrays_keep_their_shape():
    assert narrow(np.float64(0.5)).shape == ()
    assert narrow(np.zeros((0, 3))).shape == (0, 3)


@given(st.floats(allow_nan=False))
def test_every_number_is_rounded_as_far_as_float32_reaches(value):
    (found,) = narrow(np.array([value]))
    assert (found == 0) == (value == 0)
    assert np.isinf(found) == np.isinf(value)
    assert np.signbit(found) == np.signbit(value)
    if 2.0**-126 <= abs(value) <= LARGEST:
        assert abs(float(found) / value - 1) <= 2.0**-24
