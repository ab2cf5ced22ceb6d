from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _pairs


@pytest.fixture
def told(monkeypatch):
    """What ran, in order; each call takes as many seconds as its name is long."""
    ran, clock = [], [0.0]
    monkeypatch.setattr(_pairs.time, "perf_counter", lambda: clock[0])

    def action(name):
        def act():
            ran.append(name)
            clock[0] += len(name)

        return act

    return ran, action


def test_actions_take_turns_each_round_in_the_opposite_order(told):
    ran, action = told
    times = _pairs.interleaved(action("a"), action("bb"), pairs=2, calls=2)
    assert "".join(ran) == "aa" + "bbbb" + "aabbbb" + "bbbbaa"
    assert times.tolist() == [[1, 1], [2, 2]]


def test_each_action_comes_after_steps_of_its_own(told):
    ran, action = told
    steps, spent = _pairs.after(action("step"), [action("a"), action("bb")], pairs=2)
    warm, a, bb = ["step", "step", "step", "a", "step", "bb"], ["step", "a"], ["step", "bb"]
    assert ran == [*warm, *a, *a, *bb, *bb, *bb, *bb, *a, *a]
    assert steps.tolist() == [[4, 4], [4, 4]]
    assert spent.tolist() == [[1, 1], [2, 2]]


def test_of_a_row_the_first_is_not_counted_and_the_others_are_averaged(told):
    _, action = told
    actions = [action("ccc"), action("a"), action("a long one")]

    def act():
        actions.pop()()

    assert _pairs.in_a_row(action("step"), act, calls=2).tolist() == [4, 2]


def test_a_step_may_be_shared(told):
    ran, action = told
    actions = [action("a"), action("bb")]
    steps, spent = _pairs.after(action("step"), actions, pairs=2, calls=7, shared=True)
    assert ran[-6:] == ["step", "a", "bb", "step", "bb", "a"]
    assert (steps.tolist(), spent.tolist()) == ([[4, 4], [4, 4]], [[1, 1], [2, 2]])


def test_an_exponent_is_the_slope_of_the_logarithms():
    sizes = [10, 100, 1000]
    assert _pairs.exponent(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    assert _pairs.exponent(sizes, [7.0] * 3) == pytest.approx(0)


def test_a_spread_is_the_median_and_the_quartiles():
    assert _pairs.spread(np.array([1.0, 2.0, 3.0]), ".1f") == "2.0 (1.5 to 2.5)"
