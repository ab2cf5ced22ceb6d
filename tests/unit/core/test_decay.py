import math
from fractions import Fraction

import numpy as np
import pytest

from tb_pastnet.core.decay import OneShot, PolynomialDecay
from tb_pastnet.errors import InvalidArgument


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize(
    ("initial", "final", "begin", "end"), [(0.0, 0.875, 0, 100), (0.5, 0.75, 7, 10)]
)
def test_the_published_formula(initial, final, begin, end, power):
    # Equation 1 of arXiv:1710.01878 with n·Δt = end − begin, in exact fractions.
    decay = PolynomialDecay(initial, final, begin, end, power)
    for step in range(begin, end + 1):
        left = 1 - Fraction(step - begin, end - begin)
        exact = Fraction(final) + (Fraction(initial) - Fraction(final)) * left**power
        assert decay(step) == pytest.approx(float(exact), rel=1e-12)


def test_before_and_after():
    decay = PolynomialDecay(0.2, 0.9, 10, 20)
    assert decay(9) is None
    assert decay(10) == pytest.approx(0.2)
    assert decay(20) == decay(21) == decay(10**9) == 0.9
    # The published power, halfway: 7/8 of the way up.
    assert decay(15) == pytest.approx(0.2 + 0.7 * 7 / 8)
    once = OneShot(0.9, 10)
    assert (once(9), once(10), once(11), once.end_step) == (None, 0.9, 0.9, 10)


def test_numbers_of_numpy():
    decay = PolynomialDecay(np.float32(0), np.float64(0.5), np.int64(0), np.int32(2), np.float32(1))
    assert decay(1) == 0.25
    assert isinstance(decay(1), float)
    assert OneShot(np.float32(0.5), np.int64(3))(3) == 0.5


@pytest.mark.parametrize(
    ("settings", "expected", "got", "mend"),
    [
        ((0.5, 0.4, 0, 10), "initial <= final", "0.5 and 0.4", "Pruned weights stay pruned."),
        ((0, 0.4, 10, 10), "begin_step < end_step", "10 and 10", "For a single step use OneShot."),
        ((0, 0.4, -1, 10), "begin_step from 0 on", "-1", "Steps are whole batches."),
        ((0, 0.4, 0, 10.0), "end_step from 0 on", "10.0", "Steps are whole batches."),
        ((0, 0.4, False, 10), "begin_step from 0 on", "False", "Steps are whole batches."),
        ((0, 0.4, 0, 10, 0), "a power above 0", "0", "Published is 3."),
        ((0, 0.4, 0, 10, math.inf), "a power above 0", "inf", "Published is 3."),
        ((0, 0.4, 0, 10, math.nan), "a power above 0", "nan", "Published is 3."),
        ((0, 0.4, 0, 10, "3"), "a power above 0", "'3'", "Published is 3."),
    ],
)
def test_plans_that_are_none(settings, expected, got, mend):
    with pytest.raises(InvalidArgument) as error:
        PolynomialDecay(*settings)
    assert str(error.value) == f"Could not plan the pruning: expected {expected}, got {got}. {mend}"


def test_sparsities_and_steps_that_are_none():
    with pytest.raises(
        InvalidArgument,
        match=r"make a PolynomialDecay: expected initial= from 0 up to below 1, got -0\.1\. ",
    ):
        PolynomialDecay(-0.1, 0.5, 0, 10)
    with pytest.raises(
        InvalidArgument,
        match=r"make a PolynomialDecay: expected final= from 0 up to below 1, got 1\. ",
    ):
        PolynomialDecay(0.1, 1, 0, 10)
    with pytest.raises(
        InvalidArgument,
        match=r"make a OneShot: expected sparsity= from 0 up to below 1, got nan\. ",
    ):
        OneShot(math.nan, 0)
    with pytest.raises(InvalidArgument, match=r"expected step from 0 on, got None\. "):
        OneShot(0.5, None)


def test_it_may_stay_where_it_begins():
    decay = PolynomialDecay(0.5, 0.5, 3, 7)
    assert [decay(step) for step in (2, 3, 5, 7, 9)] == [None, 0.5, 0.5, 0.5, 0.5]
