"""A disk that fails: training goes on, drops are counted, what was acknowledged is readable."""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.record import segments
from tb_pastnet.record.segments import LocalSegments
from tests.fault.sinking import make_sink, offer
from tests.recorded import read_one

pytestmark = pytest.mark.promise("full_disk")

ROOT = Path(__file__).parents[2]
OPERATIONS = 24


class Failing:
    """Lets the files fail at chosen operations.

    These are making a directory, opening, asking whether a file is there, writing (half of it), and
    closing. Nothing is renamed.
    """

    def __init__(self, monkeypatch, fails):
        self.count = 0
        self.fails = fails
        self._open = segments.GrowingFile
        self._make = segments.make_directory
        monkeypatch.setattr(segments, "make_directory", self.make_directory)
        monkeypatch.setattr(segments, "GrowingFile", self.open_file)
        monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.001))

    def fail(self):
        self.count += 1
        if self.fails(self.count):
            raise OSError(28, "No space left on device")

    def make_directory(self, path):
        self.fail()
        self._make(path)

    def open_file(self, path):
        self.fail()
        return _File(self, self._open(path))


def each_operation(monkeypatch, tmp_path):
    """A disk whose first operation fails, one whose second does, and so on until none is reached."""
    for nth in itertools.count(1):
        logdir = tmp_path / str(nth)
        # Not one of the operations of the test.
        sink, notes = make_sink(str(logdir))
        with monkeypatch.context() as patch:
            disk = Failing(patch, nth.__eq__)
            yield disk, sink, notes, logdir
        if disk.count < nth:
            return


class _File:
    def __init__(self, disk, file):
        self._disk = disk
        self._file = file

    def intact(self):
        self._disk.fail()
        return self._file.intact()

    def write(self, data):
        half = len(data) // 2
        self._file.write(data[:half])
        self._disk.fail()
        self._file.write(data[half:])

    def close(self):
        self._file.close()
        self._disk.fail()


def train(sink, steps):
    """Offers a record a step and returns those taken and acknowledged."""
    acknowledged = []
    waiting = []
    for step in range(1, steps + 1):
        if offer(sink, step):
            waiting.append(step)
        if step % 3 == 0 and sink.flush():
            acknowledged += waiting
            waiting = []
    return acknowledged


def probed(log):
    """The steps of which the probe says the right values, and no others."""
    steps = set()
    for one in log.functions:
        assert (one.values == one.steps.astype(np.float32)[None, :, None]).all()
        assert (one.past_steps == one.steps - 1).all()
        steps |= set(one.steps.tolist())
    assert list(dict.fromkeys(log.tags["function"])) == sorted(set(log.tags["function"]))
    return steps


def check(tmp_path, acknowledged, steps):
    log = read_one(tmp_path)
    assert set(acknowledged) <= set(log.record_steps())
    assert abs(log.values("a/bias")[:, 0, 0] / log.record_steps() - 1).max() < 0.022
    assert probed(log) == set(log.record_steps())
    assert log.last.closed
    assert log.last.offered == steps
    assert len(log.record_steps()) + log.last.thinned + log.last.dropped == steps
    return log


def test_the_nth_operation_fails_for_every_n(tmp_path, monkeypatch, figure):
    failed = operations = 0
    for disk, sink, notes, logdir in each_operation(monkeypatch, tmp_path):
        acknowledged = train(sink, 30)
        sink.close()
        log = check(logdir, acknowledged, 30)
        assert log.last.dropped == 0
        assert log.record_steps() == list(range(1, 31))
        failed += bool(notes.counts())
        operations = disk.count
    assert failed >= operations - 2  # closing can't cost anything
    figure(f"{operations} operations of the disk failed, one at a time: 0 records lost or dropped")


@pytest.mark.parametrize("nth", range(1, OPERATIONS + 1, 5))
def test_full_for_a_while_then_freed(tmp_path, monkeypatch, nth):
    sink, _ = make_sink(str(tmp_path), queue_bytes=5 * 8 * 40 * 8)
    Failing(monkeypatch, lambda count: nth <= count < nth + 12)
    acknowledged = train(sink, 60)
    sink.close()
    log = check(tmp_path, acknowledged, 60)
    assert sum(log.last.notes.values()) > 0


def test_full_for_ever(tmp_path, monkeypatch):
    Failing(monkeypatch, lambda count: count > 6)
    sink, notes = make_sink(str(tmp_path))
    acknowledged = train(sink, 60)
    sink.close(timeout=0.5)
    assert set(acknowledged) <= set(read_one(tmp_path).record_steps())
    assert notes.counts()["Could not write records: OSError: No space left on device"] > 1


LIMITED = """
import resource, sys
from tests.fault.sinking import make_sink, offer
from tb_pastnet.record.segments import LocalSegments
from tests.patience import be_patient
be_patient()
LocalSegments.retry_seconds = (0.001, 0.001)
sink, notes = make_sink(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
for step in range(1, 31):
    offer(sink, step)
    if sink.flush():
        print(step, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for step in range(31, 61):
    offer(sink, step)
sink.close()
"""


def test_a_real_limit_of_size_then_lifted(tmp_path):
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    log = check(tmp_path, [int(line) for line in done.stdout.split()], 60)
    assert log.segments > 1
    assert log.record_steps() == list(range(1, 61))
    assert done.stderr.count("Could not write records: OSError: File too large") == 1
