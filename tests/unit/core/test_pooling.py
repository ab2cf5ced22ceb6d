"""Columns are even ranges of steps."""

import numpy as np
import pytest

from tb_pastnet.core.pooling import columns
from tb_pastnet.errors import InvalidArgument


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
