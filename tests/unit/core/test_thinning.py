"""Short runs are whole, long ones bounded; columns are even ranges of steps."""

import math

import numpy as np
import pytest

from tb_pastnet.core.thinning import CAPACITY, Thinning, columns
from tb_pastnet.errors import InvalidArgument


def test_a_thousand_records_are_all_kept():
    thinning = Thinning()
    assert all(thinning.keep() for _ in range(1000))


@pytest.mark.parametrize("due", [2_000, 100_000, 1_000_000])
def test_any_run_stays_under_the_stated_ceiling(due):
    thinning = Thinning()
    kept = sum(thinning.keep() for _ in range(due))
    assert kept <= CAPACITY * (1 + math.log2(1 + due / CAPACITY))
    assert kept >= CAPACITY


def test_strides_double():
    thinning = Thinning(2)
    assert [i for i in range(12) if thinning.keep()] == [0, 1, 3, 5, 9]


def test_a_changed_mask_is_always_kept_and_costs_no_capacity():
    quiet, busy = Thinning(4), Thinning(4)
    plain = [quiet.keep() for _ in range(60)]
    forced = [busy.keep(changed=i % 7 == 0) for i in range(60)]
    assert [kept or i % 7 == 0 for i, kept in enumerate(plain)] == forced


def test_the_capacity_is_checked():
    with pytest.raises(InvalidArgument, match="expected a capacity of at least 1, got 0"):
        Thinning(0)


def test_few_records_are_columns_of_their_own():
    assert columns(np.array([3, 4, 100]), 3).tolist() == [0, 1, 2]
    assert columns(np.zeros(0, np.int64), 3).tolist() == []


def test_columns_are_even_in_steps_not_in_records():
    steps = np.concatenate([np.arange(90), [1000, 1009]])
    assert columns(steps, 10).tolist() == [0, 90]
    assert columns(np.arange(100), 4).tolist() == [0, 25, 50, 75]


def test_no_columns_is_an_error():
    with pytest.raises(InvalidArgument, match="expected at least 1 column, got 0"):
        columns(np.arange(3), 0)
