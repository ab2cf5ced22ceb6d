"""Time goes to where the thread that trains is, each moment once."""

from __future__ import annotations

import threading

import pytest

from tb_pastnet.format.overhead import Overhead
from tb_pastnet.keras.cost.meter import COPIES, MASKS, RECORDS, Meter, metered
from tb_pastnet.keras.log.notes import Notes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Observer:
    """What training calls, each call of which takes a known time."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._meter = Meter(self.clock)
        self._notes = Notes()

    @metered()
    def record(self, seconds):
        self.clock.now += 1
        with self._meter.part(RECORDS):
            self.clock.now += seconds
        return self.sync(0.25)

    @metered()
    def sync(self, seconds):
        with self._meter.part(COPIES):
            self.clock.now += seconds
            with self._meter.part(MASKS):
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
        return self._meter.spent.overhead()


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
    assert one.cost.training == one._meter.so_far().training == 1.5


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
    assert one._notes.counts() == {"Could not try: ValueError: no": 1}
    assert one.cost == Overhead(training=3, other=3)


def test_the_time_between_two_trainings_is_none_of_them():
    one = Observer()
    one.sync(1)
    one._meter.rest()
    one.clock.now += 3600
    one.sync(1)
    one.clock.now += 2
    one.sync(1)
    assert one.cost == Overhead(training=6.5, copies=3, masks=1.5)


def test_a_lineage_keeps_its_totals_and_the_next_begins_at_0():
    one = Observer()
    one.sync(1)
    first = one._meter.spent
    assert one._meter.enter()
    one.clock.now += 7
    one._meter.restart()
    one.clock.now += 2
    one._meter.leave()
    assert first.overhead() == Overhead(training=8.5, copies=1, masks=0.5, other=7)
    assert one.cost == Overhead(training=2, other=2)


def test_another_thread_takes_no_time_of_the_training():
    one = Observer()
    assert one._meter.enter()
    one.clock.now += 1
    beside = threading.Thread(target=one.record, args=(0,))
    beside.start()
    beside.join()
    one._meter.leave()
    # The clock went on, but it is the thread's that trains: it was in us all the time.
    assert one.cost.seconds == one.cost.training == 2.75


def test_without_a_meter_it_is_called_all_the_same():
    one = Observer()
    one._meter, meter = None, one._meter
    with pytest.raises(ValueError, match="no"):
        one.fail()
    assert meter.spent.overhead() == Overhead()


@pytest.mark.parametrize("broken", ["enter", "leave"])
def test_a_meter_that_fails_costs_nothing_else(broken, monkeypatch):
    one = Observer()

    def fail():
        raise MemoryError("no room")

    monkeypatch.setattr(one._meter, broken, fail)
    assert one.record(2) == "synced"
    text = "Could not measure what recording takes: MemoryError: no room"
    assert one._notes.counts() == {text: {"enter": 2, "leave": 1}[broken]}
