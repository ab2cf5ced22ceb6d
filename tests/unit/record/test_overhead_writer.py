"""What recording costs stands in the log, beside each timeline, and counts each byte."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.description import Description, encode_description
from tb_pastnet.format.overhead import decode_overhead
from tb_pastnet.format.tags import DESCRIPTIONS, TAG_OVERHEAD, TAG_TIMELINE
from tb_pastnet.record import overhead_timer as module
from tb_pastnet.record.batch import Batch, Record, Span
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.messages import Message, read_messages
from tb_pastnet.record.overhead_timer import RECORDS, OverheadTotals
from tb_pastnet.record.segments import LocalSegments
from tests.fault.sinking import begun, mask
from tests.recorded import read_one

NAME = "pastnet.0001.00000007"


def describe(first_step, step):
    text = Description(7, 1, "o", 1, "previous", first_step, 0.0)
    return [
        Message(tag, step, encode_description(text, tag=tag, step=step)) for tag in DESCRIPTIONS
    ]


@pytest.fixture
def spent():
    found = OverheadTotals()
    found.steps = 12
    found.seconds[:] = [97.0, 0.5, 1.0, 0.25, 0.125, 0.0625]
    return found


@pytest.fixture
def sink(tmp_path, spent):
    segments = LocalSegments(str(tmp_path / NAME), 0.0, size=900)
    batch = Batch([Span("w", 0, 4, True)], 7)
    made = begun(segments, batch, describe, Failures(), spent)
    yield made
    made.close()


def put(sink, step):
    values = np.full((len(STATISTICS), 4), 1.0 + step)
    sink.offer(Record(sink.reserve(), step, step - 1, time.time(), 0.1, values))


def size_of(tmp_path):
    return sum(path.stat().st_size for path in (tmp_path / NAME).iterdir())


def test_each_group_counts_all_bytes_up_to_its_end(sink, tmp_path):
    for step in range(1, 40):
        put(sink, step)
        assert sink.flush()
        log = read_one(tmp_path)
        assert log.overheads[-1].bytes == size_of(tmp_path)
    sink.close()
    log = read_one(tmp_path)
    assert log.overheads[-1].bytes == size_of(tmp_path)
    assert log.segments > 3
    assert log.tags[TAG_OVERHEAD] == log.tags[TAG_TIMELINE]


def test_a_byte_that_makes_the_number_longer_is_counted(spent):
    """A number of bytes takes one more where it reaches a power of 128."""
    for written in range((1 << 14) - 250, (1 << 14) + 5):
        event = spent.event(7, 5, 0.0, written, 0.5)
        (message,) = read_messages(io.BytesIO(event))
        found = decode_overhead(message.payload, tag=TAG_OVERHEAD, step=5, lineage=7)
        assert found.bytes == written + len(event)


def test_it_tells_what_was_spent_by_then(sink, spent, tmp_path):
    put(sink, 1)
    assert sink.flush()
    spent.seconds[RECORDS] += 2
    put(sink, 2)
    assert sink.flush()
    first, second = read_one(tmp_path).overheads
    assert (first.steps, first.training, first.seconds) == (12, 98.9375, 1.9375)
    assert (first.records, first.copies, first.masks, first.probe) == (1, 0.25, 0.125, 0.0625)
    assert (second.records, second.training) == (3, 100.9375)
    assert 0 < first.writer < second.writer < 60


def test_its_failure_costs_no_record(sink, tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(module, "encode_overhead", broken)
    put(sink, 1)
    assert sink.flush()
    monkeypatch.undo()
    sink.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [1]
    assert len(log.overheads) == 1  # that of the end
    assert log.last.notes == {"Could not write the recording overhead: MemoryError: no room": 1}


def test_changes_alone_need_none(sink, tmp_path):
    put(sink, 1)
    assert sink.flush()
    before = read_one(tmp_path).tags[TAG_OVERHEAD]
    sink.masks(2, [mask(2)])
    assert sink.flush()
    assert read_one(tmp_path).tags[TAG_OVERHEAD] == before
