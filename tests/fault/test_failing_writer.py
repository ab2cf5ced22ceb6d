"""Any exception at any internal call of the thread that writes: nothing is lost without a count."""

from __future__ import annotations

import logging
import random

import pytest

from tb_pastnet.record.segments import LocalSegments
from tests.fault.injected import Injector, Point
from tests.fault.sinking import change, make_sink, offer
from tests.fault.test_disk import probed
from tests.recorded import read_one

pytestmark = [
    pytest.mark.promise("failing_internals"),
    # A file that couldn't be closed is closed by Python once nobody holds it.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO"),
]

STEPS = 40


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.001))


def write(logdir, injector):
    """Writes while something fails on the sink's thread alone, and says what was acknowledged."""
    acknowledged: list[int] = []
    injector.armed = False
    with injector.everywhere():
        sink, notes = make_sink(str(logdir))
    injector.armed = True
    for step in range(1, STEPS + 1):
        change(sink, step)
        offer(sink, step)
        if step % 10 == 0 and sink.flush():
            acknowledged += range(step - 9, step + 1)
    sink.close()
    sink._background.thread.join(20)
    return acknowledged, notes


def points_of(logdir):
    counter = Injector()
    write(logdir, counter)
    return [
        Point(name, event, nth)
        for name, count in sorted(counter.counts.items())
        for event in ("call", "return")
        for nth in sorted({1, (count + 1) // 2, max(1, count - 2)})
    ]


def fail_at(logdir, point, caplog):
    caplog.clear()
    injector = Injector()
    error = random.Random(repr(point)).choice([RuntimeError, MemoryError, OSError])
    injector.aim(point, error)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        acknowledged, notes = write(logdir, injector)
    log = read_one(logdir)
    steps = log.record_steps()
    assert set(acknowledged) <= set(steps)
    assert abs(log.values("a/bias")[:, 0, 0] / steps - 1).max() < 0.022
    assert probed(log) == set(steps)
    assert log.last.closed
    assert log.last.offered == STEPS
    assert len(steps) + log.last.thinned + log.last.dropped == STEPS
    assert [entry.step for _, entry in sorted(log.changes.items())] == list(range(1, STEPS + 1))
    # A file that the system can't look at is written anew, like one that is gone.
    gone = point.function == "files.py:intact > pathlib.py:stat" and error is OSError
    logged = len(caplog.records)
    # The last time that failures are logged, nobody is left to log that this failed.
    if logged or not point.function.startswith("failures.py:log"):
        assert logged == (injector.raised and not gone)
    assert sum(notes.counts().values()) == len(caplog.records)
    return injector.raised


def fail_at_all(tmp_path, points, caplog):
    failed = 0
    for number, point in enumerate(points):
        try:
            failed += fail_at(tmp_path / str(number), point, caplog)
        except AssertionError as error:
            raise AssertionError(f"{point}: {error}") from error
    return failed


def test_some_calls_of_the_writer_fail(tmp_path, caplog):
    points = random.Random(4).sample(points_of(tmp_path / "counted"), 40)
    assert fail_at_all(tmp_path, points, caplog) > 30


@pytest.mark.prove
def test_every_call_of_the_writer_fails(tmp_path, caplog, figure):
    points = points_of(tmp_path / "counted")
    failed = fail_at_all(tmp_path, points, caplog)
    assert failed > 0.8 * len(points)
    figure(f"{failed:,} calls of the writing thread failed: each record shown or counted")
