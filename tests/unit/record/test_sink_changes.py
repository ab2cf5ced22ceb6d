"""Changes of masks and violations on their way through the sink."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tb_pastnet.core.violation import Violation
from tests.fault.sinking import flags, make_sink, mask, offer
from tests.patience import waiting
from tests.recorded import read_one


@pytest.fixture
def make(tmp_path):
    made = []

    def make_one(**settings):
        sink, notes = make_sink(str(tmp_path), **settings)
        made.append(sink)
        return sink, notes

    yield make_one
    for sink in made:
        sink.close(timeout=0.1)


@pytest.fixture
def blocked(monkeypatch):
    """Makes a sink's disk stand still until it is let go."""
    let_go = threading.Event()

    def block(sink):
        reached = threading.Event()
        write = sink._background._writer.segments.write

        def held(head, body):
            reached.set()
            assert let_go.wait(20)
            write(head, body)

        monkeypatch.setattr(sink._background._writer.segments, "write", held)
        sink.masks(0, [mask(0)])
        assert not sink.flush(timeout=0.01)
        assert reached.wait(20)
        return let_go

    yield block
    let_go.set()


def violation(step, channel=0, first_step=1):
    return Violation("a/kernel", channel, first_step, step, 1, 9, float(step), "ema")


def size(tmp_path):
    return sum(file.stat().st_size for file in tmp_path.glob("*/*"))


def test_masks_are_there_before_the_first_record(make, tmp_path):
    sink, _ = make()
    sink.masks(4, [mask(4), mask(4, "a/bias", "trainable", 10)])
    assert sink.flush()
    log = read_one(tmp_path)
    assert list(log.changes) == [0, 1]
    assert [(c.step, c.variable, c.mask) for c in log.changes.values()] == [
        (4, "a/kernel", "kept"),
        (4, "a/bias", "trainable"),
    ]
    np.testing.assert_array_equal(log.masks[0].flags, flags(4))
    np.testing.assert_array_equal(log.masks[1].flags, flags(4, 10))
    assert log.timelines == []
    assert log.tags["masks"] == [4]
    assert offer(sink, 9)
    assert sink.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [9]
    assert log.description.first_step == 4
    assert (log.last.offered, log.last.dropped) == (1, 0)


def test_a_log_of_changes_alone_ends_in_order(make, tmp_path):
    sink, _ = make()
    sink.masks(-1, [mask(4)])
    assert sink.close()
    log = read_one(tmp_path)
    assert (log.last.closed, log.last.offered) == (True, 0)
    # A model that nothing was done to yet has the step before 0.
    assert (log.changes[0].step, log.description.first_step) == (0, 0)
    sink.masks(5, [mask(5)])
    sink.violations(5, [violation(5)])
    assert read_one(tmp_path).changes == log.changes


def test_nothing_makes_no_log(make, tmp_path):
    sink, _ = make()
    sink.masks(4, [])
    sink.violations(4, [])
    assert sink.flush()
    assert size(tmp_path) == 0


@pytest.mark.parametrize("elements", [64, 4096, 1_000_000])
def test_a_change_costs_at_most_a_bit_a_weight(make, tmp_path, elements):
    sink, _ = make()
    sink.masks(1, [mask(1, elements=elements)])
    assert sink.flush()
    before = size(tmp_path)
    sink.masks(2, [mask(2, elements=elements)])
    assert sink.flush()
    assert size(tmp_path) - before <= elements / 8 + 300
    np.testing.assert_array_equal(read_one(tmp_path).masks[1].flags, flags(2, elements))


def test_masks_of_one_step_share_one_entry_of_the_log(make, tmp_path):
    sink, _ = make()
    sink.masks(1, [mask(1, f"{n}/kernel") for n in range(200)])
    assert sink.flush()
    log = read_one(tmp_path)
    assert sorted(log.changes) == list(range(200))
    assert log.tags["masks"] == [1]
    # 12 bytes of mask and what names them.
    assert size(tmp_path) < 200 * 250


def test_no_bound_of_records_drops_a_change(make, tmp_path, blocked):
    sink, _ = make(queue_bytes=1)
    let_go = blocked(sink)
    with waiting() as limits:
        for step in range(1, 3000):
            sink.masks(step, [mask(step)])
            sink.violations(step, [violation(step)])
            offer(sink, step)
    assert limits == []
    let_go.set()
    assert not sink.flush(20)  # because of the records
    assert sink.close(20)
    log = read_one(tmp_path)
    assert [c.step for _, c in sorted(log.changes.items())] == list(range(3000))
    assert sorted(log.changes) == sorted(log.masks) == list(range(3000))
    assert [one.last_step for one in log.violations.values()] == [2999]
    assert log.last.dropped > 0
    assert len(log.record_steps()) + log.last.dropped == 2999


def test_beyond_the_bound_masks_are_noted_and_their_numbers_missing(make, tmp_path, blocked):
    one = 12 + 256
    sink, notes = make(change_bytes=2 * one)
    let_go = blocked(sink)
    for step in range(1, 6):
        sink.masks(step, [mask(step)])
    let_go.set()
    assert not sink.flush(20)
    sink.masks(6, [mask(6)])
    assert sink.flush()
    sink.masks(7, [mask(7)])
    assert sink.close()
    log = read_one(tmp_path)
    assert {n: c.step for n, c in log.changes.items()} == {0: 0, 1: 1, 2: 2, 6: 6, 7: 7}
    text = "Could not keep up with masks and violations: the queue was full"
    assert notes.counts() == {text: 3}
    assert log.last.notes == {text: 3}


def test_the_masks_of_one_call_always_may_wait(make, tmp_path):
    sink, _ = make(change_bytes=1)
    sink.masks(1, [mask(1), mask(1, "a/bias")])
    assert sink.close()
    assert list(read_one(tmp_path).changes) == [0, 1]


def test_violations_beyond_the_bound_are_noted(make, tmp_path, blocked):
    sink, notes = make(change_bytes=1)
    let_go = blocked(sink)
    for step in (1, 2, 3):
        sink.violations(step, [violation(step)])
    let_go.set()
    assert not sink.flush(20)
    sink.masks(4, [mask(4)])
    assert sink.close()
    log = read_one(tmp_path)
    assert [one.last_step for one in log.violations.values()] == [1]
    assert sorted(log.changes) == [0, 1]
    assert sum(notes.counts().values()) == 2


def test_a_mask_that_cannot_be_packed_is_missing(make, tmp_path):
    sink, _ = make()
    sink.masks(1, [mask(1)])
    assert sink.flush()
    sink.masks(2, [mask(2)._replace(elements=5)])
    assert not sink.flush()
    sink.masks(3, [mask(3)])
    assert sink.flush()
    assert sink.close()
    log = read_one(tmp_path)
    assert {n: c.step for n, c in log.changes.items()} == {0: 1, 2: 3}
    (note,) = log.last.notes
    assert note.startswith("Could not prepare records: InvalidArgument: Could not encode a mask")


def test_another_process_leaves_it_alone(make, tmp_path, monkeypatch):
    sink, _ = make()
    monkeypatch.setattr(sink, "_pid", -1)
    sink.masks(1, [mask(1)])
    sink.violations(1, [violation(1)])
    monkeypatch.undo()
    assert sink.close()
    assert size(tmp_path) == 0
