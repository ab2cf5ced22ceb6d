"""Which numbers of a user are taken as such."""

import math

import numpy as np
import pytest

from tb_pastnet.core.checks import (
    check_rate,
    check_sparsity,
    check_threshold,
    is_number,
    is_whole,
)
from tb_pastnet.errors import InvalidArgument

WHOLE = [2, -1, np.int64(2), np.uint8(0)]
REAL = [0.5, math.nan, math.inf, np.float32(1), np.float64(2)]
NEITHER = [True, np.bool_(True), "1", None, 1j, [1], np.ones(1)]


def test_numbers_of_python_and_numpy_are_told_from_all_else():
    assert all(map(is_number, WHOLE + REAL))
    assert all(map(is_whole, WHOLE))
    assert not any(map(is_whole, REAL))
    assert not any(is_number(value) or is_whole(value) for value in NEITHER)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), math.nextafter(1, 0)])
def test_a_sparsity_is_a_float_from_0_up_to_below_1(value):
    assert check_sparsity(value) == value
    assert type(check_sparsity(value)) is float


@pytest.mark.parametrize("value", [1, -0.1, math.nan, math.inf, "0.5", True, None])
def test_another_sparsity_is_refused_by_its_name(value):
    with pytest.raises(InvalidArgument, match="expected final from 0 up to below 1, got"):
        check_sparsity(value, "final")


def test_a_rate_by_name_is_refused():
    for rate in (None, 0.1, np.float32(1), lambda step: 0.1, object()):
        check_rate(rate)
    with pytest.raises(InvalidArgument, match="expected learning_rate= a number .* got 'adam'"):
        check_rate("adam")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "small", None, True])
def test_a_threshold_below_which_nothing_can_be_is_refused(value):
    check_threshold(0)
    with pytest.raises(InvalidArgument, match="expected threshold= of at least 0, got"):
        check_threshold(value)
