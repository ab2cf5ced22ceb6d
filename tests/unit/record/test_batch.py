from __future__ import annotations

import weakref

import numpy as np
import pytest

from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import MOVED, NORM, STATISTICS
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits
from tb_pastnet.format.block import decode_block
from tb_pastnet.format.timeline import decode_timeline
from tb_pastnet.record import batch as module
from tb_pastnet.record import changes
from tb_pastnet.record.batch import Batch, Record, Span
from tb_pastnet.record.changes import Change, MaskUpdate

SPANS = [Span("a/kernel", 0, 3, True), Span("a/bias", 3, 4, False)]


def offer(sequence, step=None, **rows):
    values = np.ones((len(STATISTICS), 4))
    for name, row in rows.items():
        values[STATISTICS.index(name)] = row
    return Record(sequence, sequence + 1 if step is None else step, sequence, 5.0, 0.1, values)


def take(batch, **told):
    """What waits, as if it were written."""
    group = batch.pack(**told)
    batch.done(group)
    return group


def decode(group):
    *blocks, timeline = group.messages
    decoded = [decode_block(m.payload, tag=m.tag, step=m.step, lineage=7) for m in blocks]
    account = decode_timeline(timeline.payload, tag="timeline", step=timeline.step, lineage=7)
    return {m.tag: block for m, block in zip(blocks, decoded, strict=True)}, account


def test_of_what_waits_only_codes_are_kept():
    batch = Batch(SPANS, 7)
    record = offer(0)
    values = weakref.ref(record.values)
    batch.add(record)
    del record
    assert values() is None
    assert batch.nbytes == len(STATISTICS) * 4 * 2


def test_records_quantised_together_have_the_codes_of_each():
    records = [offer(n, norm=[n, 2 + n, 0, 1e-40], kept=[1, 1 - n / 9, 0, 1]) for n in range(5)]
    for record, together in zip(records, module.quantized(records), strict=True):
        (alone,) = module.quantized([record])
        np.testing.assert_array_equal(together.values, alone.values)
        assert together.values.base is None
        assert together._replace(values=None) == record._replace(values=None)


def test_a_block_a_variable_and_their_timeline():
    batch = Batch(SPANS, 7)
    for sequence in range(3):
        batch.add(offer(sequence, norm=[1, 2, 4, 8]))
    group = take(batch, notes={"slow": 2})
    blocks, timeline = decode(group)
    assert group.records == 3
    assert list(blocks) == ["channels/a/kernel", "channels/a/bias"]
    assert dequantize(blocks["channels/a/kernel"].codes[NORM, 2]).tolist() == [1, 2, 4]
    assert dequantize(blocks["channels/a/bias"].codes[NORM, 2]).tolist() == [8]
    assert blocks["channels/a/bias"].past_steps.tolist() == [0, 1, 2]
    assert timeline.steps.tolist() == [1, 2, 3]
    assert timeline.wall_times.tolist() == [5, 5, 5]
    assert timeline.learning_rates.tolist() == [0.1, 0.1, 0.1]
    assert timeline.notes == {"slow": 2}
    assert (timeline.offered, timeline.thinned, timeline.dropped) == (3, 0, 0)
    assert batch.empty


def test_what_cannot_be_packed_or_written_waits(monkeypatch):
    batch = Batch(SPANS, 7)
    batch.add(offer(0))
    batch.changes.add(Change(1, masks=(MaskUpdate("a/bias", "kept", np.zeros(1, np.uint8), 1, 0),)))
    monkeypatch.setattr(module, "encode_timeline", broken)
    with pytest.raises(MemoryError):
        batch.pack()
    monkeypatch.undo()
    first, again = batch.pack(), batch.pack()
    assert first == again
    assert [message.tag for message in first.messages][-3:] == ["kept/a/bias", "masks", "timeline"]
    assert batch.packed == 0
    batch.done(again)
    assert (batch.packed, batch.empty) == (1, True)


def broken(*args, **kwargs):
    raise MemoryError


def test_missing_sequence_numbers_are_dropped_records():
    batch = Batch(SPANS, 7)
    for sequence in (0, 1, 5):
        batch.add(offer(sequence))
    _, timeline = decode(take(batch))
    assert (timeline.offered, timeline.dropped) == (6, 3)
    batch.reach(8, 0)
    _, end = decode(take(batch, closed=True))
    assert (end.offered, end.dropped, end.closed, len(end.steps)) == (8, 5, True, 0)


def test_a_group_that_was_given_up_is_dropped():
    batch = Batch(SPANS, 7)
    batch.add(offer(0))
    batch.pack()
    batch.drop()
    batch.add(offer(1))
    _, timeline = decode(take(batch))
    assert (timeline.offered, timeline.dropped) == (2, 1)


def test_steps_of_the_timeline_increase_also_behind_an_end():
    batch = Batch(SPANS, 7)
    batch.add(offer(0))
    steps = [take(batch).messages[-1].step]
    steps.append(take(batch, closed=True).messages[-1].step)
    batch.add(offer(1, step=2))
    group = take(batch)
    steps.append(group.messages[-1].step)
    assert steps == [1, 2, 3]
    assert decode(group)[1].steps.tolist() == [2]


def test_full_at_sixteen_or_fewer_where_channels_are_many(monkeypatch):
    batch = Batch(SPANS, 7)
    for sequence in range(16):
        assert not batch.full
        batch.add(offer(sequence))
    assert batch.full
    monkeypatch.setattr(limits, "MAX_CELLS", 7)
    wide = Batch(SPANS, 7)
    wide.add(offer(0))
    assert not wide.full
    wide.add(offer(1))
    assert wide.full


def test_records_that_were_left_out_are_counted():
    batch = Batch(SPANS, 7)
    batch.add(offer(0))
    batch.add(offer(5)._replace(thinned=4))
    batch.reach(9, 7)
    _, timeline = decode(take(batch, closed=True))
    assert (timeline.offered, timeline.thinned, timeline.dropped) == (9, 7, 0)


def test_many_channels_are_quantised_in_pieces(monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 3)
    monkeypatch.setattr(module, "_COLUMNS", 3)
    batch = Batch(SPANS, 7)
    batch.add(offer(0, norm=[1, 2, 4, 8]))
    blocks, _ = decode(take(batch))
    assert dequantize(blocks["channels/a/bias"].codes[NORM, 0]).tolist() == [8]


@pytest.mark.parametrize("seed", range(8))
def test_what_moved_in_a_record_that_is_dropped_is_in_the_next_one(seed):
    rng = np.random.default_rng(seed)
    moved = rng.choice([0, 1, np.nan], (60, 4), p=[0.8, 0.15, 0.05])
    batch, shown, dropped = Batch(SPANS, 7), {}, set()
    for number, row in enumerate(moved):
        batch.add(offer(number, moved=row))
        if batch.full and rng.random() < 0.4:
            dropped |= {record.sequence for record in batch._pending}
            batch.drop()
        elif batch.full:
            shown |= of_each(take(batch))
    if not batch.empty:
        shown |= of_each(take(batch))
    begin = 0
    for number in sorted(shown):
        some = moved[begin : number + 1]
        unknown = np.where(np.isnan(some).any(0), np.nan, 0)
        np.testing.assert_array_equal(shown[number], np.where((some == 1).any(0), 1, unknown))
        begin = number + 1
    assert len(shown) == 60 - len(dropped)


def test_what_moved_in_a_record_that_cant_be_packed_is_unknown_in_the_next_one():
    batch = Batch(SPANS, 7)
    batch.add(offer(0, moved=[1, 0, 0, 0]))
    batch.drop()
    with pytest.raises(InvalidArgument):
        batch.add(offer(1)._replace(values=np.ones((3, 4))))
    batch.add(offer(2, moved=[0, 1, 0, 0]))
    batch.add(offer(3, moved=[0, 0, 0, 1]))
    shown = of_each(take(batch))
    np.testing.assert_array_equal(shown[2], [1, 1, np.nan, np.nan])
    np.testing.assert_array_equal(shown[3], [0, 0, 0, 1])


def of_each(group):
    blocks, _ = decode(group)
    both = [blocks[f"channels/a/{name}"] for name in ("kernel", "bias")]
    rows = np.concatenate([dequantize(block.codes[MOVED]) for block in both], axis=1)
    return dict(zip(both[0].sequence.tolist(), rows, strict=True))


def test_changes_are_written_with_records_or_alone():
    batch = Batch(SPANS, 7)
    change = Change(1, masks=(MaskUpdate("a/kernel", "kept", np.zeros(1, np.uint8), 6, 0),))
    batch.changes.add(change)
    assert not batch.empty
    alone = take(batch)
    assert [m.tag for m in alone.messages] == ["kept/a/kernel", "masks"]
    assert alone.records == 0
    assert batch.empty
    batch.changes.add(change._replace(step=2))
    batch.add(offer(0))
    together = [message.tag for message in take(batch).messages]
    blocks = ["channels/a/kernel", "channels/a/bias"]
    assert together == [*blocks, "kept/a/kernel", "masks", "timeline"]
    batch.changes.add(change._replace(step=3))
    end = take(batch, closed=True).messages
    assert [m.tag for m in end] == ["kept/a/kernel", "masks", "timeline"]


def test_many_changes_fill_a_batch(monkeypatch):
    batch = Batch(SPANS, 7)
    monkeypatch.setattr(changes, "GROUP_CHANGES", 1)
    assert not batch.full
    batch.changes.add(Change(1, masks=(MaskUpdate("w", "kept", np.zeros(1, np.uint8), 6, 0),)))
    assert batch.full
