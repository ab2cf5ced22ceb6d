from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.tags import TAG_MASKS
from tb_pastnet.reader import mask_changes as mask_log
from tb_pastnet.reader import notes
from tb_pastnet.reader.mask_changes import MaskLog, read_mask_log
from tb_pastnet.reader.series_source import StoredMessage

LINEAGE = 7
W, V = "a/kernel", "b/kernel"


def change(number: int, step: int, through: int, variable: str = W, mask: str = "kept"):
    return MaskChange(number, step, variable, mask, through, 10)


def message(*changes: MaskChange, step: int | None = None) -> StoredMessage:
    at = changes[-1].step if step is None else step
    data = encode_mask_log(changes, tag=TAG_MASKS, step=at, lineage=LINEAGE)
    return StoredMessage(at, 0.0, data)


def read(*messages: StoredMessage, **more: bool) -> MaskLog:
    return read_mask_log(messages, LINEAGE, {W, V}, **more)


def held(log: MaskLog, steps: list[int], variable: str = W, mask: str = "kept") -> list[float]:
    return log.held(variable, mask, 10, np.array(steps)).tolist()


def test_a_change_is_in_force_from_its_step_on() -> None:
    log = read(message(change(0, 5, 8), change(1, 9, 3)), message(change(2, 20, 10)))
    assert held(log, [0, 4, 5, 8, 9, 19, 20, 99]) == [0, 0, 2, 2, 7, 7, 0, 0]
    assert not log.notes


def test_of_two_changes_at_one_step_the_later_is_in_force() -> None:
    log = read(message(change(0, 5, 8)), message(change(1, 5, 3), step=6))
    assert held(log, [4, 5, 6]) == [0, 7, 7]
    assert log.positions(W, "kept", 10, np.array([4, 5])).tolist() == [-1, 1]


def test_masks_and_variables_dont_mix() -> None:
    log = read(
        message(change(0, 1, 8), change(1, 1, 7, mask="trainable"), change(2, 1, 6, variable=V))
    )
    assert held(log, [1]) == [2]
    assert held(log, [1], mask="trainable") == [3]
    assert held(log, [1], V) == [4]
    assert held(log, [1], V, "trainable") == [0]


def test_what_was_written_twice_counts_once() -> None:
    first = message(change(0, 1, 8), change(1, 2, 7))
    log = read(first, first, message(change(2, 3, 6)))
    assert held(log, [1, 2, 3]) == [2, 3, 4]
    assert not log.notes


def test_behind_a_gap_nothing_is_known_until_the_next_change_of_the_mask() -> None:
    log = read(
        message(change(0, 1, 8), change(1, 1, 9, variable=V)),
        message(change(3, 9, 3)),
        message(change(4, 12, 5, variable=V)),
    )
    # The lost change, number 2, may be of either variable and of any step from 1 to 9.
    np.testing.assert_array_equal(held(log, [0, 1, 8, 9, 20]), [0, np.nan, np.nan, 7, 7])
    np.testing.assert_array_equal(held(log, [0, 1, 9, 11, 12], V), [0, *[np.nan] * 3, 5])
    np.testing.assert_array_equal(held(log, [20], mask="trainable"), [np.nan])
    assert log.notes == {notes.MASKS_LOST: 1}


def test_a_gap_at_the_beginning_reaches_back_to_all_steps() -> None:
    log = read(message(change(2, 9, 3)))
    np.testing.assert_array_equal(held(log, [-5, 0, 8, 9]), [np.nan] * 3 + [7])
    assert log.notes == {notes.MASKS_LOST: 2}


def flipped(one: StoredMessage) -> StoredMessage:
    data = bytearray(one.data or b"")
    data[-3] ^= 16
    return one._replace(data=bytes(data))


def newer(one: StoredMessage) -> StoredMessage:
    data = bytearray(one.data or b"")
    data[4] = 9
    return one._replace(data=bytes(data))


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (flipped, notes.DAMAGED),
        (newer, notes.NEWER),
        (lambda one: one._replace(data=b"not ours"), notes.FOREIGN),
        (lambda one: one._replace(data=None), notes.FOREIGN),
        (lambda one: one._replace(step=one.step + 1), notes.DAMAGED),
    ],
)
def test_behind_a_last_message_that_cant_be_read_nothing_is_known(spoil, note: str) -> None:
    log = read(message(change(0, 1, 8)), spoil(message(change(1, 9, 3))))
    np.testing.assert_array_equal(held(log, [0, 1, 20]), [0, np.nan, np.nan])
    assert log.notes == {note: 1}


def test_what_cant_be_read_and_isnt_missing_costs_nothing() -> None:
    log = read(StoredMessage(0, 0.0, b"not ours"), message(change(0, 1, 8)))
    assert held(log, [0, 1]) == [0, 2]
    assert log.notes == {notes.FOREIGN: 1}


def test_where_nothing_could_be_read_nothing_is_known() -> None:
    for log in (read(withheld=True), read(StoredMessage(0, 0.0, None))):
        np.testing.assert_array_equal(held(log, [0, 9]), [np.nan] * 2)
    assert read(withheld=True).notes == {notes.WITHHELD: 1}


def test_a_mask_of_another_number_of_elements_is_of_an_older_network() -> None:
    log = read(message(change(0, 1, 8)), message(change(1, 9, 10)))
    found = log.held(W, "kept", 11, np.array([0, 1, 9]))
    np.testing.assert_array_equal(found, [0, np.nan, np.nan])


def test_changes_of_unknown_variables_and_masks_only_count() -> None:
    log = read(
        message(change(0, 1, 8, variable="x"), change(1, 2, 8), change(2, 2, 1, mask="grown"))
    )
    assert list(log.changes) == [(W, "kept")]
    assert held(log, [1, 2]) == [0, 2]
    assert not log.notes


def test_a_step_that_goes_back_is_as_good_as_lost() -> None:
    log = read(message(change(0, 9, 8), step=9), message(change(1, 3, 3), step=10))
    np.testing.assert_array_equal(held(log, [2, 3, 9]), [0, 0, np.nan])
    assert log.notes == {notes.MASKS_LOST: 1}


def test_behind_a_step_that_goes_back_the_next_change_is_known_to_the_end() -> None:
    log = read(*(message(change(n, at, 8 - n), step=9 + n) for n, at in enumerate([9, 3, 12])))
    np.testing.assert_array_equal(held(log, [9, 11, 12, 99]), [np.nan, np.nan, 4, 4])


def test_a_log_without_end_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_log, "MOST_CHANGES", 2)
    log = read(*(message(change(number, number, 5)) for number in range(5)))
    np.testing.assert_array_equal(held(log, [0, 1, 4]), [5, np.nan, np.nan])
    assert log.notes == {notes.MASKS_TOO_MANY: 1}


def test_a_mask_that_is_stored_behind_the_end_of_the_log_tells_of_a_lost_change() -> None:
    messages = message(change(0, 1, 8)), message(change(1, 4, 3), change(2, 4, 2, variable=V))
    for stored, lost in (({}, False), ({(W, "kept"): 4}, False), ({(W, "kept"): 5}, True)):
        log = read_mask_log(messages, LINEAGE, {W, V}, stored={(V, "kept"): 4, **stored})
        np.testing.assert_array_equal(held(log, [1, 4, 5]), [2, *[np.nan if lost else 7] * 2])
        assert log.sure(W, "kept", 10) == (not lost)
        assert held(log, [4], V) == [8]
        assert log.notes == ({notes.MASKS_LOST: 1} if lost else {})
    log = read_mask_log(messages, LINEAGE, {W, V}, stored={(V, "trainable"): 9, ("x", "kept"): 9})
    np.testing.assert_array_equal(held(log, [0], V, "trainable"), [np.nan])
    assert log.torn == {(V, "trainable")}


def test_masks_of_one_step_are_stored_in_events_one_after_the_other() -> None:
    messages = [message(change(at, 4, at), step=4 + at // 3) for at in range(3)]
    for step in (6, 7):
        log = read_mask_log(messages, LINEAGE, {W}, stored={(W, "kept"): step})
        assert bool(log.torn) == (step > 6)


def test_it_is_what_a_plain_replay_tells() -> None:
    rng = np.random.default_rng(3)
    changes = [
        change(number, number // 3, int(rng.integers(0, 11)), variable=str(rng.choice([W, V])))
        for number in range(200)
    ]
    log = read(*(message(*changes[at : at + 7], step=at + 7) for at in range(0, 200, 7)))
    for variable in (W, V):
        for step in range(-1, 80):
            seen = [one for one in changes if one.variable == variable and one.step <= step]
            right = 10 - seen[-1].through if seen else 0
            assert held(log, [step], variable) == [right]
