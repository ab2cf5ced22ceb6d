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
