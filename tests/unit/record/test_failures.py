from __future__ import annotations

import logging

import pytest

from tb_pastnet.record.failures import LOGGER, Failures, noted


def test_logged_once_per_cause_and_counted(caplog):
    notes = Failures()
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        for name in ("a", "b"):
            notes.add("Could not write records", OSError(28, "No space left on device", name))
        notes.add("Could not write records", OSError(30, "Read-only file system", "a"))
    assert notes.counts() == {
        "Could not write records: OSError: No space left on device": 2,
        "Could not write records: OSError: Read-only file system": 1,
    }
    assert len(caplog.records) == 2


def test_reasons_that_differ_each_time_stay_few_and_short(caplog):
    notes = Failures()
    for step in range(1000):
        notes.add("Could not read the learning rate", KeyError(step))
    notes.add("Could not read the learning rate", KeyError(3))
    notes.add("Could not make a record", ValueError("x" * 100_000))
    *_, shown, others, long = notes.counts().items()
    assert len(notes.counts()) == len(caplog.records) == 7
    assert shown == ("Could not read the learning rate: KeyError: 4", 1)
    assert others == ("Could not read the learning rate: KeyError: other reasons", 995)
    assert len(long[0]) < 600


def test_a_reason_of_many_lines_is_one():
    notes = Failures()
    text = "Graph execution error:\n\nDetected at node 'x' defined at\n  File\nNode: 'x'\nno such w"
    notes.add("Could not look", ValueError(text))
    assert notes.counts() == {"Could not look: ValueError: no such w": 1}


class Observer:
    def __init__(self):
        self._failures = Failures()

    @noted("Could not look", otherwise=7)
    def look(self, error):
        raise error


def test_what_is_noted_does_not_raise():
    observer = Observer()
    assert [observer.look(MemoryError()) for _ in range(2)] == [7, 7]
    assert observer._failures.counts() == {"Could not look: MemoryError: no reason given": 2}


def test_only_failures_are_noted():
    observer = Observer()
    with pytest.raises(KeyboardInterrupt):
        observer.look(KeyboardInterrupt())
    assert observer._failures.counts() == {}


def test_a_handler_of_logs_and_a_text_that_raise(caplog):
    class Silent(Exception):
        def __str__(self):
            raise ValueError

    notes = Failures()
    broken = logging.Filter()
    broken.filter = lambda record: 1 / 0
    LOGGER.addFilter(broken)
    try:
        notes.add("Could not look", Silent())
    finally:
        LOGGER.removeFilter(broken)
    assert notes.counts() == {"Could not look: Silent: a reason that can't be shown": 1}
