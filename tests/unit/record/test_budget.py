"""Records are left out so that recording keeps under its share of the training's time."""

from __future__ import annotations

import fractions
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.overhead_timer import COPIES, MASKS, RECORDS, OverheadTimer
from tb_pastnet.record.schedule import Schedule, check
from tests.examples import examples


class Training:
    """A training whose steps, records and copies take what it is told, and what was made of it."""

    def __init__(self, share, every=1, past="previous"):
        self.now = 0.0
        self.meter = OverheadTimer(lambda: self.now)
        self.schedule = Schedule(every, past, 0, share, self.meter)
        self.made, self.thinned, self.copies, self.compared = [], [], [], []
        self.worst = self.first = 0.0
        self._paid = 0.0

    def step(self, number, takes, record=0.0, copy=0.0, always=0.0):
        self.now += takes
        assert self.meter.enter()
        action = self.schedule.advance(number)
        with self.meter.part(MASKS):
            self.now += always
        if action.record:
            self._record(number, action, record)
        if action.thinned:
            self.thinned.append(number)
        if action.copy is not None:
            with self.meter.part(COPIES):
                self.now += copy
            self.copies.append(number)
            self.schedule.copied(action.copy)
        self.meter.leave()

    def _record(self, number, action, takes):
        with self.meter.part(RECORDS):
            self.now += takes
        self.schedule.finished()
        cost = self.meter.so_far()
        if not self.made:
            self.first = cost.seconds
        self.worst = max(self.worst, cost.records + cost.copies - self._paid)
        self._paid = cost.records + cost.copies
        self.made.append(number)
        self.compared.append(action.past_step)

    @property
    def cost(self):
        return self.meter.totals.overhead()


seconds = st.floats(0, 10, allow_subnormal=False)
steps = st.lists(st.tuples(seconds, seconds, seconds), min_size=1, max_size=60)
pasts = st.sampled_from(["previous", "record", "initial", 1, 3, 7])


@given(st.sampled_from([0.001, 0.01, 0.1, 0.5]), st.integers(1, 5), pasts, steps)
@examples(6)
@example(0.01, 1, "previous", [(100.0, 10.0, 0.0), *[(100.0, 0.01, 0.01)] * 50])
def test_whatever_things_take_it_keeps_under_the_share(share, every, past, told):
    training = Training(share, every, past)
    for number, (takes, record, copy) in enumerate(told, start=1):
        training.step(number, takes, record, copy)
    due = {number for number in range(1, len(told) + 1) if number % every == 0}
    first = set() if past in (3, 7) else {1}
    assert sorted(training.made + training.thinned) == sorted(due | first)
    cost = training.cost
    assert math.isclose(cost.training, training.now - told[0][0], abs_tol=1e-9)
    allowed = max(share * cost.training, training.first + share * cost.training / 2)
    # Records that wait for their step may each take more than was expected, with their copies.
    waiting = max(training.worst, *(max(a, b) for _, a, b in told)) * 2
    assert cost.seconds <= allowed + training.schedule.copies * waiting + 1e-9


def test_a_steady_training_spends_its_share_and_no_more():
    training = Training(0.01, every=10)
    for number in range(1, 100_001):
        training.step(number, 0.1, record=0.04, copy=0.01, always=1e-5)
    cost = training.cost
    assert 0.0099 < cost.share <= 0.01
    # A record takes half a step, one in ten steps is due: one in five of these can be paid.
    assert len(training.made) / 10_000 == pytest.approx(0.2 - 1e-5 / 0.05, rel=0.02)


def test_the_first_is_made_and_paid_off_with_half_of_the_share():
    training = Training(0.01)
    training.step(1, 1.0, record=1.0)
    for number in range(2, 1001):
        training.step(number, 1.0, record=0.01, copy=0.0)
    assert training.made[0] == 1
    # At 100 of 200 s the first alone takes the share.
    early = sum(number <= 100 for number in training.made[1:])
    late = sum(number > 500 for number in training.made)
    assert early == pytest.approx(100 * 0.005 / 0.01, abs=3)
    assert late == pytest.approx(500 * 0.01 / 0.01, abs=3)
    assert training.cost.share <= 0.01 + 0.01 / 1000


def test_no_copy_is_in_vain():
    training = Training(0.02, every=5)
    for number in range(1, 2001):
        training.step(number, 0.1, record=0.05, copy=0.02)
    assert training.thinned
    assert training.copies == [number - 1 for number in training.made[1:]]
    assert training.compared == [0, *training.copies]


@pytest.mark.parametrize("past", ["record", "initial", 3])
def test_each_past_goes_on_as_it_should(past):
    training = Training(0.02, every=2, past=past)
    for number in range(1, 1001):
        training.step(number, 0.1, record=0.05, copy=0.02)
    assert training.thinned
    expected = {
        "record": [0, *training.made[:-1]],
        "initial": [0] * len(training.made),
        3: [max(number - 3, 0) for number in training.made],
    }
    assert training.compared == expected[past]


def test_what_is_never_left_out_may_take_more_than_the_share():
    training = Training(0.01)
    for number in range(1, 501):
        training.step(number, 0.1, record=0.001, always=0.01)
    assert training.made == [1, 3]
    assert training.cost.share > 0.05


def test_a_new_lineage_begins_with_a_record():
    training = Training(0.001)
    for number in range(1, 21):
        training.step(number, 0.1, record=1.0)
    assert training.made == [1, 3]
    training.schedule.copied(training.schedule.restart(7))
    training.step(8, 0.1, record=1.0)
    assert training.made == [1, 3, 8]


def test_steps_that_pass_over_a_record_wait_for_none():
    training = Training(0.5, every=10)
    for number in (5, 9, 31, 35, 39, 40, 41, 59, 60):
        training.step(number, 100.0, record=0.1)
    assert training.made[:2] == [5, 31]
    assert sorted(training.made + training.thinned) == [5, 31, 40, 59, 60]


@pytest.mark.parametrize("share", [0.01, 0.5, np.float32(0.25), fractions.Fraction(1, 100), None])
def test_a_share_is_taken(share):
    check(1, 1, share)


@pytest.mark.parametrize(
    "share", [0, 0.0, -0.01, 1, 1.0, 5, math.nan, math.inf, True, False, "0.01", [0.01], 1j]
)
def test_anything_else_is_refused(share):
    text = r"above 0 and below 1, got .*\. Use budget=0.01 for 1 %, or None for no limit\.$"
    with pytest.raises(
        InvalidArgument, match=f"Could not schedule records: expected budget=.*{text}"
    ):
        check(1, 1, share)
    with pytest.raises(InvalidArgument, match=text):
        Schedule(1, "previous", 0, share)
