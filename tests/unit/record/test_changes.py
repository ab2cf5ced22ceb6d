"""Changes of masks and violations, packed."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.mask_bits import decode_mask
from tb_pastnet.format.mask_log import decode_mask_log
from tb_pastnet.format.standing import StandingChange, decode_standing
from tb_pastnet.format.violations import decode_violations
from tb_pastnet.record import changes as module
from tb_pastnet.record.changes import Change, Changes, MaskUpdate


def mask(value, variable="w", kind="kept"):
    flags = np.arange(9) < value
    return MaskUpdate(variable, kind, np.packbits(flags), 9, value)


def violation(channel, last_step=5, first_step=5):
    return Violation("w", channel, first_step, last_step, 1, 1, 0.5, "unknown")


def take(changes):
    """What waits, as if it were written."""
    messages = changes.pack()
    changes.done()
    return messages


def entries(messages):
    """Number, step and `through` of each change, in order."""
    (log,) = [m for m in messages if m.tag == "masks"]
    found = decode_mask_log(log.payload, tag=log.tag, step=log.step, lineage=7)
    return [(change.number, change.step, change.through) for change in found]


def test_masks_then_their_log_then_violations():
    changes = Changes(7)
    assert changes.empty
    changes.add(Change(5, masks=(mask(3), mask(2, kind="trainable"))))
    changes.add(Change(6, violations=(violation(0),)))
    assert not changes.empty
    messages = take(changes)
    assert changes.empty
    assert [(m.tag, m.step) for m in messages] == [
        ("kept/w", 5),
        ("trainable/w", 5),
        ("masks", 5),
        ("violations", 6),
    ]
    bits = decode_mask(messages[1].payload, tag="trainable/w", step=5, lineage=7)
    assert (bits.number, bits.step, bits.flags.sum()) == (1, 5, 2)
    assert entries(messages) == [(0, 5, 3), (1, 5, 2)]
    found = decode_violations(messages[3].payload, tag="violations", step=6, lineage=7)
    assert found == (violation(0),)


def test_causes_of_standing_still_wait_and_are_packed_once():
    changes = Changes(7)
    causes = [StandingChange(step, "w", cause) for step, cause in ((4, "rate"), (6, ""))]
    changes.add(Change(5, standing=(causes[0],)))
    changes.add(Change(5, standing=(causes[0],)))  # repeated, as after a failure
    changes.add(Change(6, standing=(causes[1],)))
    assert not changes.empty
    (message,) = take(changes)
    assert changes.empty
    found = decode_standing(message.payload, tag="standing", step=6, lineage=7)
    assert found == tuple(causes)
    assert take(changes) == []


def test_of_one_step_what_was_in_force_is_written():
    changes = Changes(7)
    changes.add(Change(5, masks=(mask(3), mask(2, "v"))))
    changes.add(Change(5, masks=(mask(4),)))
    messages = take(changes)
    assert [m.tag for m in messages] == ["kept/v", "kept/w", "masks"]
    assert entries(messages) == [(0, 5, 2), (1, 5, 4)]


def test_steps_of_a_tag_increase_also_where_one_step_comes_twice():
    changes = Changes(7)
    found = []
    for value, step in ((3, 5), (4, 5), (5, 6), (6, 9)):
        changes.add(Change(step, masks=(mask(value),), violations=(violation(0, step),)))
        messages = take(changes)
        found += [(m.tag, m.step) for m in messages]
        assert entries(messages)[0][1:] == (step, value)
    for tag in ("kept/w", "masks", "violations"):
        assert [step for name, step in found if name == tag] == [5, 6, 7, 9]


def test_changes_of_several_steps_share_one_entry_of_the_log():
    changes = Changes(7)
    changes.add(Change(5, masks=(mask(3),)))
    changes.add(Change(8, masks=(mask(4),)))
    messages = take(changes)
    assert [(m.tag, m.step) for m in messages] == [("kept/w", 5), ("kept/w", 8), ("masks", 8)]
    assert entries(messages) == [(0, 5, 3), (1, 8, 4)]


def test_numbers_count_what_was_lost_too():
    changes = Changes(7)
    changes.add(Change(5, masks=(mask(3),)))
    changes.add(Change(5, masks=(mask(4), mask(1, "v")), lost=2))
    assert entries(take(changes)) == [(2, 5, 4), (3, 5, 1)]
    changes.add(Change(6, masks=(mask(5),), lost=1))
    assert entries(take(changes)) == [(5, 6, 5)]


@pytest.mark.parametrize(("most", "size"), [(3, 1 << 20), (1 << 20, 3 * (256 + 2))])
def test_full_by_number_or_bytes(monkeypatch, most, size):
    monkeypatch.setattr(module, "GROUP_CHANGES", most)
    monkeypatch.setattr(module, "GROUP_BYTES", size)
    changes = Changes(7)
    for step in (1, 2):
        changes.add(Change(step, masks=(mask(3),)))
        assert not changes.full
    changes.add(Change(3, masks=(mask(3),)))
    assert changes.full
    take(changes)
    assert not changes.full


def test_a_violation_that_goes_on_replaces_itself():
    changes = Changes(7)
    changes.add(Change(5, violations=(violation(0), violation(1))))
    changes.add(Change(6, violations=(violation(0, 6),)))
    changes.add(Change(7, violations=(violation(0, 7, first_step=7),)))
    (message,) = take(changes)
    found = decode_violations(message.payload, tag="violations", step=7, lineage=7)
    assert set(found) == {violation(0, 6), violation(1), violation(0, 7, first_step=7)}


def test_many_violations_are_stored_in_several_messages(monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 4)
    changes = Changes(7)
    changes.add(Change(5, violations=tuple(violation(n) for n in range(9))))
    messages = take(changes)
    assert [m.step for m in messages] == [5, 6, 7]
    place = [{"tag": m.tag, "step": m.step, "lineage": 7} for m in messages]
    found = [decode_violations(m.payload, **p) for m, p in zip(messages, place, strict=True)]
    assert [one.channel for piece in found for one in piece] == list(range(9))


def test_bytes_count_masks_and_entries():
    change = Change(5, masks=(mask(3), mask(4)), violations=(violation(0),))
    assert change.nbytes == 2 * 2 + 3 * 256


def test_what_is_given_up_leaves_a_gap_in_the_numbers():
    changes = Changes(7)
    changes.add(Change(1, masks=(mask(1), mask(1, kind="trainable"))))
    changes.drop()
    changes.add(Change(2, masks=(mask(2),)))
    changes.lose(Change(3, masks=(mask(3),)))
    changes.add(Change(4, masks=(mask(4),)))
    assert entries(changes.pack()) == entries(take(changes)) == [(2, 2, 2), (4, 4, 4)]
