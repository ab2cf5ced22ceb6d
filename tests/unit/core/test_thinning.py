"""Short runs are whole, long ones bounded; columns are even ranges of steps."""

import math

import numpy as np
import pytest

from tb_pastnet.core import thinning
from tb_pastnet.core.thinning import CAPACITY, columns, has_sketch, is_stored
from tb_pastnet.errors import InvalidArgument


def test_a_thousand_records_are_all_kept():
    assert all(map(is_stored, range(1000)))


@pytest.mark.parametrize("due", [2_000, 100_000, 1_000_000])
def test_any_run_stays_under_the_stated_ceiling(due):
    stored = sum(map(is_stored, range(due)))
    assert CAPACITY <= stored <= CAPACITY * (1 + math.log2(1 + due / CAPACITY))


def test_strides_double(monkeypatch):
    monkeypatch.setattr(thinning, "CAPACITY", 2)
    assert [number for number in range(24) if is_stored(number)] == [0, 1, 2, 4, 8, 12, 16]


def test_each_record_with_a_sketch_is_stored():
    numbers = [*range(1 << 14), *(base + more for base in (1 << 17, 1 << 20) for more in range(99))]
    assert all(is_stored(number) for number in numbers if has_sketch(number))


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
