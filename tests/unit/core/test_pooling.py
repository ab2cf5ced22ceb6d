"""Columns by step, states by majority, delta by maximum."""

import numpy as np
import pytest

from tb_pastnet.core.pooling import columns, pool_delta, pool_states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO
from tb_pastnet.core.states import FROZEN, MOVING, PRUNED, SETTLED, VIOLATED
from tb_pastnet.errors import InvalidArgument


def column(*states):
    return np.array(states, np.uint8)[:, None]


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


def test_the_majority_wins():
    states = column(MOVING, MOVING, SETTLED, FROZEN, FROZEN, MOVING)
    assert pool_states(states, np.array([0, 3]))[:, 0].tolist() == [MOVING, FROZEN]


def test_a_tie_goes_to_the_latest():
    assert pool_states(column(MOVING, PRUNED), np.array([0]))[0, 0] == PRUNED
    assert pool_states(column(PRUNED, MOVING), np.array([0]))[0, 0] == MOVING


def test_a_mark_is_never_pooled_away():
    states = column(FROZEN, FROZEN | VIOLATED, FROZEN)
    assert pool_states(states, np.array([0]))[0, 0] == FROZEN | VIOLATED


def test_the_largest_delta_wins():
    delta = np.array([[ZERO, NAN], [-3, NAN], [INFINITE, 5], [1, NAN]], np.int16)
    assert pool_delta(delta, np.array([0, 2])).tolist() == [[-3, NAN], [INFINITE, 5]]


def test_nothing_to_pool_is_given_back_as_it_is():
    states = column(MOVING, FROZEN)
    assert pool_states(states, np.arange(2)) is states
    delta = np.zeros((2, 1), np.int16)
    assert pool_delta(delta, np.arange(2)) is delta
