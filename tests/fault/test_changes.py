"""Changes of masks and violations survive what records survive: a full disk, a killed program."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.fault.sinking import change, flags, make_sink, offer
from tests.fault.test_disk import OPERATIONS, Failing, each_operation, probed
from tests.fault.test_ends import finish, start
from tests.recorded import read_lineages, read_one


def check(log, steps):
    """All changes of these steps are there, and each mask is the one of its step."""
    assert [change.step for _, change in sorted(log.changes.items())] == list(steps)
    assert sorted(log.masks) == sorted(log.changes)
    for number, found in log.changes.items():
        kept = flags(found.step)
        assert (found.through, found.elements) == (kept.sum(), kept.size)
        assert log.masks[number].step == found.step
        np.testing.assert_array_equal(log.masks[number].flags, kept)
    (violation,) = log.violations.values()
    assert (violation.last_step, violation.largest) == (steps[-1], steps[-1])
    # The order in files is the order of steps, also where a group stands twice.
    for tag in ("masks", "violations", "kept/a/kernel"):
        assert list(dict.fromkeys(log.tags[tag])) == sorted(set(log.tags[tag]))


@pytest.mark.promise("full_disk")
def test_the_nth_operation_fails_for_every_n(tmp_path, monkeypatch):
    for _, sink, _, logdir in each_operation(monkeypatch, tmp_path):
        for step in range(1, 31):
            change(sink, step)
            if step % 3 == 0:
                sink.flush()
            if step > 9:
                offer(sink, step)
        sink.close()
        log = read_one(logdir)
        check(log, range(1, 31))
        assert sorted(log.changes) == list(range(30))
        assert log.description.first_step == 1
        assert log.record_steps() == list(range(10, 31))


@pytest.mark.promise("full_disk")
@pytest.mark.parametrize("nth", range(1, OPERATIONS + 1, 5))
def test_full_for_a_while_then_freed(tmp_path, monkeypatch, nth):
    # Records may be dropped meanwhile; changes are not.
    sink, _ = make_sink(str(tmp_path), queue_bytes=5 * 8 * 40 * 8)
    Failing(monkeypatch, lambda count: nth <= count < nth + 12)
    acknowledged = 0
    for step in range(1, 61):
        change(sink, step)
        offer(sink, step)
        if step % 3 == 0 and sink.flush():
            acknowledged = step
            check(read_one(tmp_path), range(1, step + 1))
    sink.close()
    log = read_one(tmp_path)
    check(log, range(1, 61))
    assert acknowledged > 0
    assert len(log.record_steps()) + log.last.dropped == 60


@pytest.mark.promise("kill_9")
def test_kill_9_loses_no_acknowledged_change(tmp_path):
    random.seed(7)
    last = 0
    for lineage in range(8):
        process = start(tmp_path, "run", last + 1)
        first, acknowledged = last + 1, last
        for _ in range(random.randint(1, 40)):
            acknowledged = int(process.stdout.readline())
        process.kill()
        more, _, _ = finish(process)
        last = (more or [acknowledged])[-1]
        log = read_lineages(tmp_path)[lineage]
        found = [entry.step for _, entry in sorted(log.changes.items())]
        assert found[: last - first + 1] == list(range(first, last + 1))
        assert max(one.last_step for one in log.violations.values()) >= last
        assert set(log.changes) <= set(log.masks)
        for number in log.changes:
            np.testing.assert_array_equal(log.masks[number].flags, flags(log.masks[number].step))
        assert log.description.first_step == first
        assert probed(log) >= set(range(first, last + 1))


@pytest.mark.promise("ends")
def test_a_forked_child_changes_nothing(tmp_path):
    process = start(tmp_path, "fork")
    _, err, code = finish(process)
    assert (err, code) == ("", 0)
    assert read_one(tmp_path).changes == {}
