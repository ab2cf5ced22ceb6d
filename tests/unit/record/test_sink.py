from __future__ import annotations

import logging
import threading
import time

import numpy as np
import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.description import Description, encode_description
from tb_pastnet.format.tags import DESCRIPTIONS
from tb_pastnet.record import segments
from tb_pastnet.record import sink as sinks
from tb_pastnet.record.background_writer import FlushMarker
from tb_pastnet.record.batch import Batch, Record, Span
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.lineage_writer import LineageWriter
from tb_pastnet.record.messages import Message
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.segments import LocalSegments
from tests.fault.sinking import begun
from tests.patience import waiting
from tests.recorded import read_lineages, read_one

NAME = "pastnet.0001.00000007"


def describe(first_step, step):
    text = Description(7, 1, "o", 1, "previous", first_step, 0.0)
    return [
        Message(tag, step, encode_description(text, tag=tag, step=step)) for tag in DESCRIPTIONS
    ]


@pytest.fixture
def make(tmp_path, monkeypatch):
    # Those that other tests left open would be waited for as well.
    monkeypatch.setattr(sinks, "_OPEN", [])
    made = []

    def make_sink(**settings):
        files = LocalSegments(str(tmp_path / NAME), 0.0)
        batch = Batch([Span("w", 0, 4, True)], 7)
        sink = begun(files, batch, describe, Failures(), **settings)
        made.append(sink)
        return sink

    yield make_sink
    for sink in made:
        sink.close(timeout=0.1)


def offer(sink, step, values=None):
    given = np.ones((len(STATISTICS), 4)) if values is None else values
    return sink.offer(Record(sink.reserve(), step, step - 1, time.time(), 0.1, given))


class Gate:
    """Holds each write until it is let through."""

    def __init__(self, sink, monkeypatch):
        self.reached = threading.Event()
        self.through = threading.Event()
        write = sink._background._writer.segments.write

        def held(head, body):
            self.reached.set()
            assert self.through.wait(20)
            write(head, body)

        monkeypatch.setattr(sink._background._writer.segments, "write", held)


def test_flushed_records_can_be_read_at_once(make, tmp_path):
    sink = make()
    for step in range(1, 21):
        assert offer(sink, step)
    assert sink.flush()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    assert log.record_past_steps() == list(range(20))
    assert log.description.first_step == 1
    assert (log.last.offered, log.last.dropped, log.last.closed) == (20, 0, False)


def test_closing_writes_the_account(make, tmp_path):
    sink = make()
    offer(sink, 1)
    assert sink.close()
    log = read_one(tmp_path)
    assert log.last.closed
    assert log.last.offered == 1
    assert not offer(sink, 2)
    assert not sink.flush()
    assert sink.close()


def test_nothing_is_written_without_a_record(make, tmp_path):
    sink = make()
    assert sink.flush()
    assert sink.close()
    assert not (tmp_path / NAME).exists()


def test_an_old_block_is_written_without_being_full(make, tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "BLOCK_SECONDS", 0.01)
    sink = make()
    written = threading.Event()
    write = sink._background._writer.segments.write
    monkeypatch.setattr(
        sink._background._writer.segments, "write", lambda *data: (write(*data), written.set())[0]
    )
    offer(sink, 1)
    assert written.wait(20)
    assert read_one(tmp_path).record_steps() == [1]


def test_a_full_queue_drops_and_counts_exactly(make, tmp_path, monkeypatch):
    sink = make(queue_bytes=3 * len(STATISTICS) * 4 * 8)
    gate = Gate(sink, monkeypatch)
    offer(sink, 1)
    flushed = []
    began = threading.Thread(target=lambda: flushed.append(sink.flush(20)))
    began.start()
    assert gate.reached.wait(20)
    taken = [offer(sink, step) for step in range(2, 10)]
    assert taken == [True, True, True, False, False, False, False, False]
    gate.through.set()
    began.join(20)
    assert flushed == [False]  # not all that was offered is there
    assert sink.flush()
    assert offer(sink, 10)
    assert sink.flush()
    assert sink.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2, 3, 4, 10]
    assert (log.last.offered, log.last.thinned, log.last.dropped) == (10, 0, 5)


def test_records_dropped_at_the_end_are_counted(make, tmp_path, monkeypatch):
    sink = make(queue_bytes=1)
    gate = Gate(sink, monkeypatch)
    offer(sink, 1)
    began = threading.Thread(target=sink.flush, args=(20,))
    began.start()
    assert gate.reached.wait(20)
    assert [offer(sink, step) for step in (2, 3, 4)] == [True, False, False]
    gate.through.set()
    began.join(20)
    assert sink.close()
    assert (read_one(tmp_path).last.offered, read_one(tmp_path).last.dropped) == (4, 2)


def test_one_record_always_may_wait(make, tmp_path):
    sink = make(queue_bytes=1)
    assert offer(sink, 1)
    assert sink.close()
    assert read_one(tmp_path).record_steps() == [1]


def test_a_blocked_disk_blocks_neither_offers_nor_the_end(make, monkeypatch):
    sink = make()
    gate = Gate(sink, monkeypatch)
    offer(sink, 1)
    assert not sink.flush(timeout=0.01)
    with waiting() as limits:
        for step in range(2, 200):
            offer(sink, step)
        assert limits == []
        assert not sink.close(timeout=0.05)
    assert limits == [0.05]
    gate.through.set()


def test_a_group_that_failed_is_written_again(make, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.001))
    sink = make()
    write, failures = (
        sink._background._writer.segments.write,
        [OSError(28, "No space left on device")] * 3,
    )

    def failing(head, body):
        if failures:
            raise failures.pop()
        write(head, body)

    monkeypatch.setattr(sink._background._writer.segments, "write", failing)
    offer(sink, 1)
    assert not sink.flush()
    assert any(sink.flush() for _ in range(5))
    sink.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [1]
    assert log.last.dropped == 0
    assert log.last.notes == {"Could not write records: OSError: No space left on device": 3}


def test_a_dead_disk_costs_records_not_the_end(make, monkeypatch):
    monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.001))
    sink = make()

    def dead(head, body):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(sink._background._writer.segments, "write", dead)
    for step in range(1, 100):
        offer(sink, step)
    assert not sink.close(timeout=0.2)
    sink._background.thread.join(20)
    assert not sink._background.thread.is_alive()


def test_a_record_that_cannot_be_packed_is_dropped(make, tmp_path):
    sink = make()
    offer(sink, 1)
    offer(sink, 2, np.ones((3, 4)))
    offer(sink, 3)
    assert not sink.flush()
    assert sink.flush()
    assert sink.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 3]
    assert (log.last.offered, log.last.dropped) == (3, 1)
    (note,) = log.last.notes
    assert note.startswith("Could not prepare records: InvalidArgument: Could not quantise")


def test_a_record_that_is_never_made_is_dropped(make, tmp_path):
    sink = make()
    offer(sink, 1)
    sink.reserve()
    offer(sink, 3)
    assert not sink.flush()
    assert sink.close()
    assert read_one(tmp_path).last.dropped == 1


def test_another_process_leaves_it_alone(make, tmp_path, monkeypatch):
    sink = make()
    offer(sink, 1)
    monkeypatch.setattr(sink, "_pid", -1)
    assert not offer(sink, 2)
    assert not sink.flush()
    assert not sink.close()
    monkeypatch.undo()
    assert sink.close()
    assert read_one(tmp_path).last.offered == 1


def test_a_record_that_could_not_be_made_is_counted(make, tmp_path):
    sink = make()
    sink.reserve()
    assert offer(sink, 2)
    assert not sink.flush()
    assert sink.flush()
    assert sink.close()
    assert (read_one(tmp_path).last.offered, read_one(tmp_path).last.dropped) == (2, 1)
    sink.reserve()


def test_closed_without_waiting_the_end_of_the_program_waits(make, tmp_path, monkeypatch):
    sink = make()
    gate = Gate(sink, monkeypatch)
    offer(sink, 1)
    assert not sink.close(timeout=0.002)
    assert sink in sinks._OPEN
    gate.through.set()
    sinks._close_all()
    assert sink not in sinks._OPEN
    assert read_one(tmp_path).record_steps() == [1]


def test_what_there_is_no_time_for_at_the_end_is_counted(make, tmp_path, monkeypatch, caplog):
    sink = make(exit_seconds=0.2)
    add = sink._background._writer.batch.add
    monkeypatch.setattr(
        sink._background._writer.batch, "add", lambda record: (time.sleep(0.01), add(record))
    )
    assert all(offer(sink, step) for step in range(1, 201))
    assert not sink.close(timeout=0.2)
    sink._background.thread.join(20)
    last = read_one(tmp_path).last
    shown = len(read_one(tmp_path).record_steps())
    assert last.closed
    assert 0 < shown == last.offered - last.dropped < last.offered == 200
    assert last.notes == {
        "Could not write all records in the time that was left at the end": last.dropped
    }
    assert caplog.text.count("in the time that was left") == 1


def test_all_that_is_open_ends_within_one_limit(make, monkeypatch):
    gates = [Gate(make(exit_seconds=0.3), monkeypatch) for _ in range(3)]
    for sink in list(sinks._OPEN):
        offer(sink, 1)
    with waiting() as limits:
        sinks._close_all()
    # One that doesn't end uses the limit up; for the others there is no time left.
    assert max(limits) <= 0.3
    assert limits[-2:] == [0.001, 0.001]
    with waiting() as limits:
        sinks._close_all()
    assert limits == []
    for gate in gates:
        gate.through.set()


def another(sink, directory):
    """The writer of a lineage that follows."""
    batch = Batch([Span("w", 0, 4, True)], 7)
    files = LocalSegments(str(directory), 0.0)
    return LineageWriter(files, batch, describe, OverheadTotals(), sink.deferred)


def test_a_lineage_ends_before_the_next_is_acknowledged(make, tmp_path, monkeypatch):
    sink = make()
    gate = Gate(sink, monkeypatch)
    offer(sink, 1)
    sink.begin(another(sink, tmp_path / "pastnet.0002.00000007"))
    offer(sink, 2)
    assert not sink.flush(0.01)
    gate.through.set()
    assert sink.flush(20)
    first, second = read_lineages(tmp_path)
    assert (first.record_steps(), first.last.closed, first.last.offered) == ([1], True, 1)
    assert (second.record_steps(), second.last.closed, second.last.offered) == ([2], False, 1)


def test_records_of_a_lineage_without_an_account_are_in_the_next(make, tmp_path, monkeypatch):
    sink = make(exit_seconds=8)
    offer(sink, 1)
    assert sink.flush(20)
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(
        sink._background._writer.segments, "write", lambda *data: (_ for _ in ()).throw(full)
    )
    monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.001))
    offer(sink, 2)
    offer(sink, 3)
    sink.begin(another(sink, tmp_path / "pastnet.0002.00000007"))
    offer(sink, 4)
    assert not sink.flush(0.05)
    assert not sink.close(0.9)
    sink._background.thread.join(20)
    first, second = (log.last for log in read_lineages(tmp_path))
    assert (first.offered, first.dropped, first.notes) == (1, 0, {})
    assert (second.offered, second.dropped) == (3, 2)
    assert list(second.notes) == ["Could not write records: OSError: No space left on device"]


def test_a_flush_within_another_hides_no_loss_from_it(make, monkeypatch):
    sink = make(queue_bytes=1)
    reach, inner = sink._background.reach, []

    def interrupted(marker, timeout):
        reached = reach(marker, timeout)
        if not inner:
            inner.append(None)
            inner[0] = sink.flush(20)  # as in a signal handler
        return reached

    offer(sink, 1, np.ones((3, 4)))  # can't be packed
    monkeypatch.setattr(sink._background, "reach", interrupted)
    assert (sink.flush(20), inner) == (False, [False])
    assert sink.flush(20)


class Waits(logging.Handler):
    """Stands for a handler whose lock the training thread holds, interrupted within `logging`."""

    def __init__(self):
        super().__init__()
        self.reached, self.through = threading.Event(), threading.Event()

    def emit(self, record):
        if threading.current_thread().name == "tb_pastnet":
            self.reached.set()
            assert self.through.wait(20)


def test_whoever_waits_writes_while_the_thread_is_kept(make, tmp_path):
    sink, handler = make(), Waits()
    logger = logging.getLogger("tb_pastnet")
    logger.addHandler(handler)
    try:
        offer(sink, 1, np.ones((3, 4)))
        assert handler.reached.wait(20)
        offer(sink, 2)
        assert not sink.flush(20)  # one was dropped
        assert sink.flush(20)
        assert read_one(tmp_path).record_steps() == [2]
        assert sink.close(20)
    finally:
        handler.through.set()
        logger.removeHandler(handler)
    assert read_one(tmp_path).last.closed


def test_a_thread_that_has_ended_keeps_nobody_waiting(make, monkeypatch):
    sink = make()
    sink._background.put(FlushMarker(0, 0, closed=False, last=True))
    sink._background.thread.join(20)
    assert not sink.flush()
