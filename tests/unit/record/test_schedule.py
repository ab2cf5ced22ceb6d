from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.schedule import UNKNOWN_PAST, Action, Schedule


def run(schedule, steps):
    """What is recorded, as (step, past step, step really held by the copy), taking copies along."""
    held: dict[int, int | None] = {0: schedule.last}
    records = []
    for step in steps:
        if schedule.passes(step):
            continue
        action = schedule.advance(step)
        if action.record:
            records.append((step, action.past_step, held[action.compare]))
        if action.copy is not None:
            held[action.copy] = step
            schedule.copied(action.copy)
    return records


def test_previous_is_one_step_before_whatever_every_is():
    for every in (1, 3, 10):
        records = run(Schedule(every, "previous"), range(1, 41))
        assert [step for step, *_ in records] == sorted({1, *range(every, 41, every)})
        assert all(past == held == step - 1 for step, past, held in records)


def test_previous_copies_only_where_the_next_step_is_due():
    schedule = Schedule(10, "previous")
    copies = [step for step in range(1, 31) if schedule.advance(step).copy is not None]
    assert copies == [9, 19, 29]


def test_previous_of_executions_of_several_steps():
    records = run(Schedule(10, "previous"), range(4, 61, 4))
    assert records == [
        (4, 0, 0),
        (12, 8, 8),
        (20, 16, 16),
        (32, 28, 28),
        (40, 36, 36),
        (52, 48, 48),
        (60, 56, 56),
    ]


@pytest.mark.parametrize("every", [1, 4, 10])
@pytest.mark.parametrize("lag", [1, 3, 7, 16])
def test_k_steps_before(every, lag):
    records = run(Schedule(every, lag), range(1, 101))
    assert all(past == held for _, past, held in records)
    # Before k steps were made, the oldest value there is.
    assert all(past == max(step - lag, 0) for step, past, _ in records if step >= lag)
    first = {1} if lag == 1 else set()
    assert [step for step, *_ in records] == sorted({*first, *range(every, 101, every)})


@given(
    every=st.integers(1, 7),
    past=st.sampled_from(["previous", "record", "initial", 1, 3]),
    strides=st.lists(st.integers(1, 4), min_size=1, max_size=60),
)
def test_strides_that_change_leave_no_record_out(every, past, strides):
    steps = np.cumsum(strides).tolist()
    records = run(Schedule(every, past), steps)
    due = {b for a, b in pairwise([0, *steps]) if b // every > a // every}
    first = set() if past == 3 else {steps[0]}
    assert [step for step, *_ in records] == sorted(due | first)
    assert all(told is None or told == held < step for step, told, held in records)


def test_record_is_the_last_record():
    assert run(Schedule(5, "record"), range(1, 16)) == [
        (1, 0, 0),
        (5, 1, 1),
        (10, 5, 5),
        (15, 10, 10),
    ]


def test_initial_stays():
    assert run(Schedule(5, "initial"), range(1, 11)) == [
        (1, 0, 0),
        (5, 0, 0),
        (10, 0, 0),
    ]


def test_epoch_follows_sync():
    schedule = Schedule(2, "epoch")
    assert run(schedule, range(1, 5)) == [(1, 0, 0), (2, 0, 0), (4, 0, 0)]
    assert schedule.sync() == 0
    schedule.copied(0)
    assert schedule.advance(5) == Action(False, 0, 4, None)
    assert schedule.advance(6) == Action(True, 0, 4, None)


def test_steps_may_begin_anywhere():
    assert run(Schedule(10, "previous", None), range(21)) == [
        (0, -1, None),
        (10, 9, 9),
        (20, 19, 19),
    ]
    assert run(Schedule(10, "previous", 85), range(86, 101)) == [
        (86, 85, 85),
        (90, 89, 89),
        (100, 99, 99),
    ]


@pytest.mark.parametrize("past", ["previous", 1, "record", "initial", "epoch"])
def test_the_last_step_of_a_training_is_recorded_where_it_is_foretold(past):
    schedule = Schedule(10, past)
    assert [step for step, *_ in run(schedule, range(1, 13))] == [1, 10]
    schedule.expect_end(17)
    records = run(schedule, range(13, 40))
    assert [step for step, *_ in records] == [17, 20, 30]
    told = {"record": [10, 17, 20], "initial": [0, 0, 0], "epoch": [0, 0, 0]}
    assert [step for _, step, _ in records] == told.get(past, [16, 19, 29])


@pytest.mark.parametrize("end", [1, 2, 10, 11, 20, 21])
def test_an_end_beside_another_record_is_one_record(end):
    schedule = Schedule(10, "previous")
    schedule.expect_end(end)
    records = run(schedule, range(1, 31))
    assert [step for step, *_ in records] == sorted({1, 10, 20, 30, end})
    assert all(told == held == step - 1 for step, told, held in records)


def test_an_execution_that_passes_the_end_is_the_last():
    schedule = Schedule(100, "previous")
    schedule.expect_end(14)
    assert run(schedule, range(4, 33, 4)) == [(4, 0, 0), (16, 12, 12)]


def test_a_lag_that_has_no_copy_for_it_has_neither_first_nor_last():
    schedule = Schedule(10, 3)
    schedule.expect_end(15)
    assert [step for step, *_ in run(schedule, range(1, 31))] == [10, 20, 30]


def test_an_end_may_be_known_before_the_first_step_is():
    schedule = Schedule(10, "previous", None)
    schedule.expect_end(17)
    assert [step for step, *_ in run(schedule, range(1, 20))] == [1, 10, 17]


def test_a_new_beginning_knows_no_end():
    schedule = Schedule(10, "previous")
    schedule.expect_end(15)
    run(schedule, range(1, 6))
    schedule.copied(schedule.restart(2))
    assert [step for step, *_ in run(schedule, range(3, 21))] == [3, 10, 20]


def test_only_due_steps_seen():
    for past, start, told in [
        ("previous", None, [None] * 5),
        ("previous", 0, [None] * 5),
        (10, 0, [0, 10, 20, 30, 40]),
        ("record", 0, [0, 10, 20, 30, 40]),
        ("record", None, [None, 10, 20, 30, 40]),
        ("initial", None, [None] * 5),
        ("initial", 0, [0] * 5),
    ]:
        records = run(Schedule(10, past, start), range(10, 51, 10))
        assert [past_step for _, past_step, _ in records] == told


def test_steps_that_go_back_begin_anew():
    schedule = Schedule(1, "previous")
    run(schedule, range(1, 11))
    assert schedule.goes_back(10)
    assert not schedule.goes_back(11)
    assert schedule.restart(5) == 0
    schedule.copied(0)
    assert schedule.advance(6) == Action(True, 0, 5, 0)


@pytest.mark.parametrize("past", ["previous", "record", 1])
def test_a_copy_that_could_not_be_taken_is_of_no_known_step(past):
    schedule = Schedule(1, past)
    assert schedule.advance(1) == Action(True, 0, 0, 0)
    assert not schedule.knows(0)
    assert schedule.advance(2) == Action(True, 0, None, 0, note=UNKNOWN_PAST)
    schedule.copied(0)
    assert schedule.advance(3) == Action(True, 0, 2, 0)


def test_steps_at_which_nothing_is_due_pass():
    schedule = Schedule(10, 3)
    assert [step for step in range(1, 25) if not passes(schedule, step)] == [1, 7, 10, 17, 20]
    assert not schedule.passes(26)  # the one before wasn't seen
    schedule.restart(4)
    assert not schedule.passes(5)
    assert schedule.last == 4


def passes(schedule, step):
    passed = schedule.passes(step)
    if not passed:
        schedule.advance(step)
    return passed


def test_of_several_copies_an_older_one_stands_in():
    schedule = Schedule(1, 2)
    for step in (1, 2, 3):
        schedule.copied(schedule.advance(step).copy)
    unknown = schedule.advance(4).copy
    assert not schedule.knows(unknown)
    assert schedule.advance(5).past_step == 3
    # That of step 4, which step 6 was to be compared with.
    assert schedule.advance(6).past_step == 3


def test_neither_a_restart_nor_sync_is_believed_before_it_has_copied():
    schedule = Schedule(1, "epoch", 3)
    assert schedule.sync() == 0
    assert schedule.advance(4).past_step is None
    assert schedule.restart(1) == 0
    assert schedule.advance(2).past_step is None


def test_the_initial_copy_survives_a_restart():
    schedule = Schedule(1, "initial")
    run(schedule, range(1, 4))
    assert schedule.restart(2) is None
    assert schedule.advance(3) == Action(True, 0, 0, None)


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "10", None])
def test_every_is_checked(every):
    with pytest.raises(InvalidArgument, match=r"expected every= a whole number of at least 1, got"):
        Schedule(every, "previous")


@pytest.mark.parametrize("past", ["last", None, 1.5, True])
def test_past_is_checked(past):
    with pytest.raises(InvalidArgument, match=r"expected past= one of 'previous', 'record'"):
        Schedule(10, past)


@pytest.mark.parametrize("past", [0, -3, 161])
def test_a_lag_is_checked(past):
    with pytest.raises(InvalidArgument, match=r"expected past= from 1 to 160 steps with every=10"):
        Schedule(10, past)


def test_numbers_of_numpy_are_whole_numbers():
    schedule = Schedule(np.int64(3), np.int32(2), np.uint8(4))
    assert [schedule.every, schedule.past, schedule.last] == [3, 2, 4]
    assert {type(each) for each in (schedule.every, schedule.past, schedule.last)} == {int}


@pytest.mark.parametrize("start", ["now", -1, 0.5, [1]])
def test_a_first_step_that_is_none_is_refused(start):
    with pytest.raises(InvalidArgument, match="expected initial_step= a whole number from 0 on"):
        Schedule(10, "previous", start)


class Simulated:
    """A training whose values are the step that made them, with `updates` counted in each."""

    def __init__(self, schedule, updates, skipping):
        self.schedule, self.updates, self.skipping = schedule, updates, skipping
        self.begun = self.step = self.value = schedule.last or 0
        self.held, self.made = {0: self.value}, 0

    def take(self, copy, value):
        if copy is not None:
            self.held[copy] = value
            self.schedule.copied(copy)

    def train(self):
        self.step += 1
        skips = self.updates > 0 and self.step in self.skipping
        self.value = self.value if skips else self.step
        for number in range(0 if skips else self.updates):
            self.made += 1
            if self.made > self.schedule.overdue:
                # A part of a step is like no step.
                part = 0 if number + 1 == self.updates else 0.5
                self.take(self.schedule.updated(self.made), self.value - part)

    def sync(self):
        if self.schedule.past == "epoch" and self.step % 5 == 0:
            self.schedule.made = self.made
            self.take(self.schedule.sync(), self.value)

    def call(self):
        if self.updates and not self.made:
            self.take(self.schedule.skipped(self.step), self.value)
            return
        self.schedule.made, self.made = self.made, 0
        if not self.schedule.passes(self.step):
            action = self.schedule.advance(self.step)
            if action.record and action.past_step is not None:
                assert self.held[action.compare] == self.value_at(action.past_step)
            self.take(action.copy, self.value)
        self.sync()

    def value_at(self, step):
        if not self.updates:
            return step
        made = (at for at in range(step + 1) if at not in self.skipping)
        return max(max(made, default=0), self.begun)


@given(
    every=st.integers(1, 7),
    past=st.sampled_from(["previous", "record", "initial", "epoch", 1, 2, 5]),
    start=st.sampled_from([None, 0, 3]),
    updates=st.integers(0, 3),
    skipping=st.sets(st.integers(1, 80), max_size=8),
    strides=st.lists(st.integers(1, 9), min_size=1, max_size=25),
    sees_all=st.booleans(),
)
def test_a_past_that_is_named_is_the_one_of_the_copy(
    every, past, start, updates, skipping, strides, sees_all
):
    schedule = Schedule(every, past, start)
    schedule.sees_all = sees_all and not updates
    # Without skipped steps an optimizer may make several.
    schedule.count(updates if skipping else 1)
    training = Simulated(schedule, updates, skipping)
    for stride in strides:
        for until in reversed(range(stride)):
            training.train()
            if until and not schedule.sees_all:
                training.sync()
        training.call()
