from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.tags import TAG_VIOLATIONS
from tb_pastnet.format.violations import encode_violations
from tb_pastnet.reader import mask_history, notes
from tb_pastnet.reader.mask_history import LineageMasks, read_violations
from tb_pastnet.reader.series_source import StoredMessage

LINEAGE = 7
FIRST = Violation("a/kernel", 3, 40, 40, 1, 9, 0.5, "momentum")


def message(step: int, *found: Violation) -> StoredMessage:
    data = encode_violations(found, tag=TAG_VIOLATIONS, step=step, lineage=LINEAGE)
    return StoredMessage(step, 0.0, data)


def read(*messages: StoredMessage) -> LineageMasks:
    lost = notes.Notes()
    return LineageMasks(None, read_violations(messages, LINEAGE, {"a/kernel"}, lost), lost)


def test_a_later_entry_replaces_the_earlier_in_any_order() -> None:
    later = replace(FIRST, last_step=90, elements=4, largest=math.inf, cause="unknown")
    for order in ((FIRST, later), (later, FIRST)):
        found = read(*(message(one.last_step, one) for one in order))
        assert found.violations == (later,)


def test_another_channel_and_another_beginning_are_others() -> None:
    others = replace(FIRST, channel=4), replace(FIRST, first_step=60, last_step=60)
    assert set(read(message(60, FIRST, *others)).violations) == {FIRST, *others}


def test_what_cant_be_read_is_counted() -> None:
    good = message(40, FIRST)
    assert good.data is not None
    newer = good._replace(data=good.data[:4] + b"\x09" + good.data[5:])
    found = read(
        good,
        good._replace(step=41),
        newer,
        good._replace(data=b"not ours"),
        good._replace(data=None),
    )
    assert found.violations == (FIRST,)
    assert found.notes == {notes.DAMAGED: 1, notes.NEWER: 1, notes.FOREIGN: 2}


def test_variables_that_the_network_doesnt_have_are_counted() -> None:
    found = read(message(40, FIRST, replace(FIRST, variable="x")))
    assert found.violations == (FIRST,)
    assert found.notes == {notes.VIOLATIONS_ELSEWHERE: 1}


def test_a_log_without_end_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_history, "MOST_VIOLATIONS", 2)
    grown = replace(FIRST, last_step=50)
    found = read(
        message(40, *(replace(FIRST, channel=channel) for channel in range(3, 8))),
        message(50, grown),
    )
    assert found.violations == (grown, replace(FIRST, channel=4))
    assert found.notes == {notes.VIOLATIONS_TOO_MANY: 3}


def test_of_too_many_entries_the_newest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_history, "MOST_ENTRIES", 3)
    ended = replace(FIRST, channel=4)
    messages = [message(40, ended, FIRST)]
    messages += [message(step, replace(FIRST, last_step=step)) for step in (41, 42, 43)]
    assert read(*messages).violations == (replace(FIRST, last_step=43),)
    assert read(*messages).notes == {notes.VIOLATIONS_TOO_MANY: 1}
    found = read(*messages[:3])
    assert set(found.violations) == {replace(FIRST, last_step=42), ended}
    assert not found.notes
