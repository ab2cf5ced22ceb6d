"""Time goes to where the thread that trains is, each moment once."""

from __future__ import annotations

import threading

import pytest

from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.overhead_timer import COPIES, MASKS, RECORDS, OverheadTimer, metered


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Observer:
    """What training calls, each call of which takes a known time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._timer = OverheadTimer(self.clock)
        self._failures = Failures()

    @metered()
    def record(self, seconds):
        self.clock.now += 1
        with self._timer.part(RECORDS):
            self.clock.now += seconds
        return self.sync(0.25)

    @metered()
    def sync(self, seconds):
        with self._timer.part(COPIES):
            self.clock.now += seconds
            with self._timer.part(MASKS):
                self.clock.now += 0.5
        return "synced"

    @metered()
    def fail(self):
        self.clock.now += 3
        raise ValueError("no")

    @metered("Could not try", otherwise="nothing")
    def attempt(self):
        self.fail()

    @property
    def cost(self):
        return self._timer.totals.overhead()


def test_each_moment_counts_once():
    one = Observer()
    assert one.cost == Overhead()
    assert one.record(2) == "synced"
    assert one.cost == Overhead(training=3.75, records=2, copies=0.25, masks=0.5, other=1)
    one.clock.now += 40
    one.sync(8)
    assert one.cost == Overhead(training=52.25, records=2, copies=8.25, masks=1, other=1)
    assert one.cost.seconds == 12.25


def test_training_ends_where_it_was_last_seen():
    one = Observer()
    one.sync(1)
    one.clock.now += 500
    assert one.cost.training == one._timer.so_far().training == 1.5


def test_a_call_that_raises_is_over():
    one = Observer()
    with pytest.raises(ValueError, match="no"):
        one.fail()
    one.clock.now += 10
    one.sync(0)
    assert one.cost == Overhead(training=13.5, masks=0.5, other=3)


def test_what_only_observes_raises_nothing_and_takes_its_time():
    one = Observer()
    assert one.attempt() == "nothing"
    assert one._failures.counts() == {"Could not try: ValueError: no": 1}
    assert one.cost == Overhead(training=3, other=3)


def test_the_time_between_two_trainings_is_none_of_them():
    one = Observer()
    one.sync(1)
    one._timer.rest()
    one.clock.now += 3600
    one.sync(1)
    one.clock.now += 2
    one.sync(1)
    assert one.cost == Overhead(training=6.5, copies=3, masks=1.5)


def test_a_lineage_keeps_its_totals_and_the_next_begins_at_0():
    one = Observer()
    one.sync(1)
    first = one._timer.totals
    assert one._timer.enter()
    one.clock.now += 7
    one._timer.restart()
    one.clock.now += 2
    one._timer.leave()
    assert first.overhead() == Overhead(training=8.5, copies=1, masks=0.5, other=7)
    assert one.cost == Overhead(training=2, other=2)


def test_another_thread_takes_no_time_of_the_training():
    one = Observer()
    assert one._timer.enter()
    one.clock.now += 1
    beside = threading.Thread(target=one.record, args=(0,))
    beside.start()
    beside.join()
    one._timer.leave()
    # The clock went on, but it is the thread's that trains: it was in us all the time.
    assert one.cost.seconds == one.cost.training == 2.75


def test_without_a_meter_it_is_called_all_the_same():
    one = Observer()
    one._timer, meter = None, one._timer
    with pytest.raises(ValueError, match="no"):
        one.fail()
    assert meter.totals.overhead() == Overhead()


@pytest.mark.parametrize("broken", ["enter", "leave"])
def test_a_meter_that_fails_costs_nothing_else(broken, monkeypatch):
    one = Observer()

    def fail():
        raise MemoryError("no room")

    monkeypatch.setattr(one._timer, broken, fail)
    assert one.record(2) == "synced"
    text = "Could not measure the recording overhead: MemoryError: no room"
    assert one._failures.counts() == {text: {"enter": 2, "leave": 1}[broken]}
