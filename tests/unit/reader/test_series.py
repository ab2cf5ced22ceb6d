from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.quantize import NAN
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.block import Block, OpenBlock, encode_block, open_block
from tb_pastnet.format.tags import RunName
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader import notes
from tb_pastnet.reader.bundles import Bundle, SeriesPart
from tb_pastnet.reader.joined_blocks import restored
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.series import RecordSeries, make_series
from tb_pastnet.reader.series_source import StoredMessage
from tests.sealed import block as block_message

TAG = "channels/w"


def place(
    ordinal: int,
    steps: np.ndarray,
    *,
    offered: int | None = None,
    thinned: int = 0,
    dropped: int = 0,
) -> SeriesPart:
    sequence = np.arange(len(steps))
    line = Timeline(
        sequence,
        steps,
        steps * 1.0,
        steps * 0.5,
        len(steps) if offered is None else offered,
        thinned,
        dropped,
    )
    name = RunName("a", ordinal, 100 + ordinal)
    head = LineageHead(f"r{ordinal}", name, {}, None, line)
    return SeriesPart(f"r{ordinal}", TAG, head, 2, None)


def alone(*parts: SeriesPart, channels: int = 2) -> Bundle:
    return Bundle(("w",), (channels,), parts, channels)


def message(
    steps: np.ndarray, first: int, lineage: int, channels: int = 2, value: int = 0
) -> StoredMessage:
    codes = np.full((len(STATISTICS), len(steps), channels), value, np.int16)
    sequence = np.arange(first, first + len(steps))
    block = Block(sequence, steps, steps - 1, codes)
    last = int(steps[-1])
    return StoredMessage(last, last * 2.0, encode_block(block, tag=TAG, lineage=lineage))


def messages(steps: np.ndarray, lineage: int, size: int = 4, **more) -> list[StoredMessage]:
    return [
        message(steps[at : at + size], at, lineage, **more) for at in range(0, len(steps), size)
    ]


def check(series: RecordSeries) -> None:
    """What always holds."""
    a = series.account
    assert a.offered == a.shown + a.superseded + a.thinned + a.dropped + a.unreadable
    assert a.shown == len(series.steps)
    assert (np.diff(series.steps) > 0).all()


def test_one_lineage_is_read_whole() -> None:
    steps = np.arange(1, 11)
    series = make_series(alone(place(1, steps)), {("r1", TAG): messages(steps, 101)})
    check(series)
    assert series.steps.tolist() == steps.tolist()
    assert series.past_steps.tolist() == (steps - 1).tolist()
    assert series.wall_times.tolist() == steps.tolist()
    assert series.learning_rates.tolist() == (steps / 2).tolist()
    assert series.codes.shape == (len(STATISTICS), 10, 2)


def test_blocks_in_any_order_and_twice_make_the_same() -> None:
    steps = np.arange(1, 11)
    found = messages(steps, 101)
    straight = make_series(alone(place(1, steps)), {("r1", TAG): found})
    mixed = make_series(alone(place(1, steps)), {("r1", TAG): [*found[::-1], found[0]]})
    check(mixed)
    assert mixed.steps.tolist() == straight.steps.tolist()
    assert mixed.account == straight.account


@pytest.mark.promise("supersession")
def test_a_restart_supersedes_what_it_writes_again() -> None:
    old, new = np.arange(100), np.arange(80, 150)
    series = make_series(
        alone(place(1, old), place(2, new)),
        {("r1", TAG): messages(old, 101, value=1), ("r2", TAG): messages(new, 102, value=2)},
    )
    check(series)
    assert series.steps.tolist() == list(range(150))
    assert series.codes[0, :, 0].tolist() == [1] * 80 + [2] * 70
    assert series.writers.tolist() == [0] * 80 + [1] * 70
    assert (series.account.offered, series.account.superseded) == (170, 20)


def test_a_lost_block_of_the_restart_leaves_a_gap_and_not_the_old_records() -> None:
    old, new = np.arange(100), np.arange(80, 100)
    readings = {("r1", TAG): messages(old, 101), ("r2", TAG): messages(new, 102)[1:]}
    series = make_series(alone(place(1, old), place(2, new)), readings)
    check(series)
    assert series.steps.tolist() == [*range(80), *range(84, 100)]
    assert (series.account.superseded, series.account.unreadable) == (20, 4)


def test_damaged_foreign_and_newer_messages_are_counted() -> None:
    steps = np.arange(1, 13)
    found = messages(steps, 101)
    flipped = bytearray(found[0].data or b"")
    flipped[-1] ^= 1
    newer = bytearray(found[1].data or b"")
    newer[4] = 9
    found[0] = found[0]._replace(data=bytes(flipped))
    found[1] = found[1]._replace(data=bytes(newer))
    found += [StoredMessage(99, 0.0, b"not ours"), StoredMessage(100, 0.0, None)]
    series = make_series(alone(place(1, steps)), {("r1", TAG): found})
    check(series)
    assert series.steps.tolist() == [9, 10, 11, 12]
    assert series.account.unreadable == 8
    assert series.notes == {notes.DAMAGED: 1, notes.NEWER: 1, notes.FOREIGN: 2}


def test_a_message_of_another_lineage_is_not_taken() -> None:
    steps = np.arange(1, 5)
    series = make_series(alone(place(1, steps)), {("r1", TAG): messages(steps, 999)})
    check(series)
    assert series.account.unreadable == 4


def test_thinned_and_dropped_are_taken_from_the_writer() -> None:
    steps = np.arange(0, 20, 2)
    here = place(1, steps, offered=20, thinned=7, dropped=3)
    series = make_series(alone(here), {("r1", TAG): messages(steps, 101)})
    check(series)
    account = series.account
    assert (account.offered, account.shown, account.thinned, account.dropped) == (20, 10, 7, 3)
    assert account.unreadable == 0


def test_records_newer_than_the_timeline_are_offered_too() -> None:
    steps = np.arange(1, 9)
    series = make_series(alone(place(1, steps[:4])), {("r1", TAG): messages(steps, 101)})
    check(series)
    assert (series.account.offered, series.account.unreadable) == (8, 0)
    assert np.isnan(series.wall_times[4:]).all()


def test_another_number_of_channels_is_an_older_network() -> None:
    old, new = np.arange(10), np.arange(10, 20)
    readings = {("r1", TAG): messages(old, 101, channels=3), ("r2", TAG): messages(new, 102)}
    series = make_series(alone(place(1, old), place(2, new)), readings)
    check(series)
    assert series.steps.tolist() == new.tolist()
    assert series.account.superseded == 10
    assert series.notes == {notes.RESHAPED: 10}


def test_a_series_that_was_withheld_is_unreadable() -> None:
    steps = np.arange(1, 5)
    series = make_series(alone(place(1, steps)), {}, withheld=[("r1", TAG)])
    check(series)
    assert series.account.unreadable == 4
    assert series.notes == {notes.WITHHELD: 1}


def test_what_was_only_sampled_counts_as_thinned() -> None:
    steps = np.arange(1, 13)
    found = messages(steps, 101)
    series = make_series(alone(place(1, steps)), {("r1", TAG): [found[0], found[2]]}, sampled=True)
    check(series)
    assert (series.account.thinned, series.account.unreadable) == (4, 0)


def own(steps: list[int]) -> list[StoredMessage]:
    return [message(np.array([step]), 0, 0, value=at) for at, step in enumerate(steps)]


def test_in_a_users_own_writer_a_step_back_replaces_what_followed() -> None:
    here = SeriesPart("r", TAG, None, 2, None)
    series = make_series(alone(here), {("r", TAG): own([1, 2, 3, 2, 3, 4])})
    check(series)
    assert series.steps.tolist() == [1, 2, 3, 4]
    assert series.codes[0, :, 0].tolist() == [0, 3, 4, 5]
    assert series.wall_times.tolist() == [2, 4, 6, 8]


@given(
    st.lists(st.booleans(), min_size=10, max_size=10),
    st.integers(0, 30),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_the_account_always_adds_up(
    readable: list[bool], back: int, thinned: int, dropped: int
) -> None:
    old, new = np.arange(20), np.arange(20 - min(back, 20), 40 - min(back, 20))
    found = [*messages(old, 101), *messages(new, 102)]
    kept = [
        one if ok else one._replace(data=b"PAST") for one, ok in zip(found, readable, strict=True)
    ]
    series = make_series(
        alone(
            place(1, old, offered=25, thinned=thinned), place(2, new, offered=25, dropped=dropped)
        ),
        {("r1", TAG): kept[:5], ("r2", TAG): kept[5:]},
    )
    check(series)


def test_nothing_at_all_is_an_empty_series() -> None:
    series = make_series(alone(channels=3), {})
    check(series)
    assert series.codes.shape == (len(STATISTICS), 0, 3)


def test_a_users_own_writer_that_restarts_inside_a_block_replaces_all_of_it() -> None:
    blocks = [[1, 2, 3], [4, 5, 6], [5, 7]]
    written = [message(np.array(steps), 0, 0, value=at) for at, steps in enumerate(blocks)]
    series = make_series(alone(SeriesPart("r", TAG, None, 2, None)), {("r", TAG): written})
    check(series)
    assert series.steps.tolist() == [1, 2, 3, 5, 7]
    assert series.codes[0, :, 0].tolist() == [0, 0, 0, 2, 2]


def test_the_account_of_a_restart_of_which_only_a_part_was_read() -> None:
    old, new = np.arange(1, 13), np.arange(9, 21)
    first, second = messages(old, 101), messages(new, 102)
    readings = {("r1", TAG): [first[0], first[2]], ("r2", TAG): second[1:]}
    places = [place(1, old, offered=14, dropped=1), place(2, new, offered=15, thinned=2)]
    for sampled in (True, False):
        series = make_series(alone(*places), readings, sampled=sampled)
        check(series)
        account = series.account
        # Of the first lineage 4 are superseded, and 4 + 1 that nobody read are of no known fate.
        assert (account.offered, account.shown, account.superseded) == (29, 12, 4)
        lost = (4 + 1) + (4 + 1)
        assert (account.thinned, account.dropped) == (2 + lost * sampled, 1)
        assert account.unreadable == lost * (not sampled)


def test_what_is_left_out_for_memory_is_noted_and_counts_as_thinned(monkeypatch) -> None:
    monkeypatch.setattr("tb_pastnet.reader.series.MOST_CELLS", 2 * 6)
    steps = np.arange(1, 13)
    for here, lineage in ((place(1, steps), 101), (SeriesPart("r1", TAG, None, 2, None), 0)):
        series = make_series(alone(here), {("r1", TAG): messages(steps, lineage)})
        check(series)
        assert len(series.steps) == 6
        assert series.notes == {notes.SAMPLED: 6}
        assert (series.account.thinned, series.account.unreadable) == (6, 0)


def test_of_many_lineages_that_dont_fit_into_memory_the_latest_are_read(monkeypatch) -> None:
    monkeypatch.setattr("tb_pastnet.reader.series.MOST_CELLS", 3 * 2)
    steps = [np.arange(4 * at, 4 * at + 4) for at in range(5)]
    series = make_series(
        alone(*(place(at + 1, own) for at, own in enumerate(steps))),
        {(f"r{at + 1}", TAG): messages(own, 101 + at) for at, own in enumerate(steps)},
    )
    check(series)
    assert series.writers.tolist() == [2, 3, 4]
    assert (series.account.offered, series.account.thinned) == (20, 17)
    assert series.notes == {notes.SAMPLED: 17}


def test_statistics_of_a_later_version_are_noted_and_the_others_are_read() -> None:
    steps = np.arange(1, 4)
    cells = np.arange(6, dtype=np.int16).reshape(3, 2)
    data = block_message({"norm": cells, "skewness": cells}, tag=TAG, step=3, lineage=101, near={})
    series = make_series(alone(place(1, steps)), {("r1", TAG): [StoredMessage(3, 0.0, data)]})
    check(series)
    assert series.account.shown == 3
    assert series.codes[0].tolist() == cells.tolist()
    # What wasn't recorded isn't known.
    assert (series.codes[1:] == NAN).all()
    assert series.notes == {notes.LATER_STATISTICS: 3}


def test_blocks_whose_steps_overlap_are_restored_apart() -> None:
    place = {"tag": "t", "lineage": 1}

    def opened(first: int, at: list[int]) -> OpenBlock:
        count, steps = len(at), np.array(at)
        codes = np.zeros((len(STATISTICS), count, 2), np.int16)
        block = Block(np.arange(first, first + count), steps, steps - 1, codes)
        return open_block(encode_block(block, **place), **place, step=at[-1])

    pieces = [opened(0, [1, 2, 3]), opened(3, [2, 3, 4]), opened(6, [5, 6])]
    found = [block.steps.tolist() for block in restored(pieces)]
    assert found == [[1, 2, 3], [2, 3, 4, 5, 6]]
