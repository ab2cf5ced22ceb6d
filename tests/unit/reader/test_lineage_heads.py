from __future__ import annotations

from collections import Counter

import numpy as np

from tb_pastnet.errors import DamagedRecord, ForeignRecord, UnknownVersion
from tb_pastnet.format.description import Description, VariableEntry
from tb_pastnet.format.overhead import Overhead, encode_overhead
from tb_pastnet.format.tags import TAG_OVERHEAD, RunName
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader import notes
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all, make_lineage, merge_timelines
from tb_pastnet.reader.series_source import StoredMessage


def part(first: int, last: int, **more) -> Timeline:
    steps = np.arange(first, last)
    return Timeline(steps, steps * 2, steps * 1.0, steps * 0.1, offered=last, **more)


def test_blocks_are_joined_in_order_and_each_record_once() -> None:
    merged = merge_timelines([part(4, 8, closed=True), part(0, 4), part(4, 8)])
    assert merged.sequence.tolist() == list(range(8))
    assert merged.steps.tolist() == list(range(0, 16, 2))
    assert merged.offered == 8
    assert merged.closed


def test_the_latest_counts_stand() -> None:
    merged = merge_timelines([part(4, 8, thinned=3, notes={"b": 1}), part(0, 4, notes={"a": 1})])
    assert (merged.thinned, merged.notes) == (3, {"b": 1})


def test_steps_that_go_back_are_taken_out() -> None:
    back = Timeline(*(np.array(x) for x in ([9], [3], [0.0], [0.0])), offered=10)
    assert merge_timelines([part(0, 4), back]).steps.tolist() == [0, 2, 4, 6]


def test_rates_of_groups_are_joined_with_the_steps_that_they_are_of() -> None:
    later = part(4, 6, group_rates=np.array([[1.0, 2.0], [3.0, 4.0]]))
    merged = merge_timelines([later, part(0, 1), part(2, 3, group_rates=np.array([[5.0]]))])
    nan = np.nan
    np.testing.assert_array_equal(merged.group_rates, [[nan, 5, 1, 2], [nan, nan, 3, 4]])


def test_a_variable_has_the_rates_of_its_group() -> None:
    about = ("d", "kernel", "kernel", (2, 2), "float32", "-1", True, 2, 2)
    variables = [
        VariableEntry(name, *about, group=group)
        for name, group in (("a", None), ("b", 1), ("c", 2))
    ]
    described = Description(7, 1, "o", 1, "1", 0, 0.0, variables=tuple(variables))
    line = part(0, 2, group_rates=np.array([[1.0, 2.0], [3.0, 4.0]]))
    head = LineageHead("a", RunName("a", 1, 7), {}, described, line)
    rates = {name: head.rates_of(name).tolist() for name in "abcd"}
    common = [0.0, 0.1]
    assert rates == {"a": common, "b": [3.0, 4.0], "c": common, "d": common}


def test_what_cant_be_decoded_is_noted_by_its_cause() -> None:
    causes = {1: ForeignRecord("f"), 2: UnknownVersion("u"), 3: DamagedRecord("d")}

    def decode(data: bytes, *, step: int, **place: object) -> int:
        if step in causes:
            raise causes[step]
        return step

    found: notes.Notes = Counter()
    messages = [StoredMessage(step, 0.0, b"") for step in range(5)] + [StoredMessage(5, 0.0, None)]
    assert list(decode_all(messages, decode, "tag", 0, found)) == [0, 4]
    assert found == {notes.FOREIGN: 2, notes.NEWER: 1, notes.DAMAGED: 1}


def test_notes_are_listed_by_frequency_and_not_without_end() -> None:
    assert notes.listed(Counter(a=1, b=2)) == [{"text": "b", "count": 2}, {"text": "a", "count": 1}]
    assert len(notes.listed(Counter(str(i) for i in range(999)))) == 50


def test_the_newest_totals_that_can_be_read_stand() -> None:
    costs = [Overhead(steps=step, training=step / 2, bytes=100 * step) for step in (10, 20, 30)]
    sealed = [encode_overhead(one, tag=TAG_OVERHEAD, step=one.steps, lineage=7) for one in costs]
    # The second was written twice, as after a failed write, and the third is damaged.
    order = [(20, sealed[1]), (10, sealed[0]), (20, sealed[1]), (30, sealed[2][:-1])]
    readings = {("r", TAG_OVERHEAD): [StoredMessage(step, 0.0, data) for step, data in order]}
    found = make_lineage("r", RunName("a", 1, 7), {}, (readings, []))
    assert found.overhead == costs[1]
    assert found.notes == {notes.DAMAGED: 1, notes.NO_DESCRIPTION: 1}
    assert found.damaged == 0
    assert make_lineage("r", RunName("a", 1, 7), {}, ({}, [])).overhead is None
