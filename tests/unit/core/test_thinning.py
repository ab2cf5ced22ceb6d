"""Short runs are whole, long ones bounded."""

import math

import pytest

from tb_pastnet.core.thinning import CAPACITY, Thinning
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
