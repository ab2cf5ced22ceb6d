"""Long trainings: which due records are stored, and that what isn't stored loses nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_pastnet.core import thinning
from tests.conformance.figures import bits_differ, compare
from tests.conformance.room import Arrays, Room
from tests.conformance.story import moved, small
from tests.conformance.test_masks import KERNEL, kernels, leak

DUE = [1, *range(3, 91, 3)]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four due records every second is stored, after eight more every fourth."""
    monkeypatch.setattr(thinning, "CAPACITY", 4)


def by_rule(due: list[int]) -> list[int]:
    """Written down, not computed as the package does."""
    numbers = [0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24]
    return [due[number] for number in numbers if number < len(due)]


def lived(room: Room, steps: int) -> list[Arrays]:
    at = [room.values()]
    for step in range(1, steps + 1):
        at.append(moved(at[-1], step))
        room.put(at[-1])
        room.record(step)
    return at


@pytest.mark.parametrize("past", ["previous", "record", "initial", 2])
def test_what_is_stored_is_as_if_all_were(begin: Any, past: Any) -> None:
    room = begin(small(), every=3, past=past)
    at = lived(room, 81)
    run, due = room.run(), [step for step in DUE if step <= 81]
    if past == 2:
        del due[0]  # no copy is as old
    stored = by_rule(due)
    assert run.steps.tolist() == [*stored, 81]
    assert run.account.offered == len(due) == run.account.shown + run.account.thinned
    pasts = {
        "previous": [step - 1 for step in stored],
        "record": [0, *(due[due.index(step) - 1] for step in stored[1:])],
        "initial": [0] * len(stored),
        2: [step - 2 for step in stored],
    }[past]
    for name, variable in run.variables.items():
        assert variable.past_steps.tolist()[:-1] == pasts
        for row, (step, old) in enumerate(zip(run.steps, variable.past_steps, strict=True)):
            compare(variable, row, at[old][name], at[step][name])
        for row in range(1, len(stored)):
            before, now = at[stored[row - 1]][name], at[stored[row]][name]
            assert variable.moved[row].tolist() == bits_differ(before, now).tolist()


def test_what_moves_in_a_record_that_is_left_out_has_moved(begin: Any) -> None:
    room = begin(small())
    for step in range(1, 17):
        if step == 14:  # stored are 13 and 17
            room.put(moved(room.values(), step))
        room.record(step)
    run = room.run()
    assert run.steps.tolist() == [*by_rule([*range(1, 17)]), 16]
    for variable in run.variables.values():
        assert variable.moved[1:].any(axis=1).tolist() == [False] * 8 + [True]


def test_a_mask_that_changes_is_stored_at_its_record(begin: Any) -> None:
    room, mask = begin(kernels(9), trainable={KERNEL: True}), np.ones((3, 9), bool)
    mask[:, 4] = False
    for step in range(1, 21):
        if step == 15:
            room.declare({KERNEL: mask}, {})
        room.record(step)
    run = room.run()
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 17]
    kernel = run.variables[KERNEL]
    assert kernel.trainable[:, 4].tolist() == [1] * 9 + [0] * 2
    assert kernel.masks(14).trainable.all()
    np.testing.assert_array_equal(kernel.masks(15).trainable, mask)


def test_a_held_weight_that_moves_is_stored_at_its_record(begin: Any) -> None:
    room = begin(kernels(9), trainable={KERNEL: False})
    for step in range(1, 21):
        if step == 15:
            leak(room, KERNEL, (0, 3), 7.0)
        room.record(step)
    run = room.run()
    assert 15 in run.steps.tolist()
    (violation,) = run.violations
    assert (violation.first_step, violation.channel) == (15, 3)
    assert run.verified.records == 20


def test_a_function_gets_each_due_record(begin: Any) -> None:
    told: list[int] = []
    room = begin(small(), log=lambda numbers, step: told.append(step))
    lived(room, 20)
    run = room.run()
    assert told == [*range(1, 21)]
    assert run.steps.tolist() == [*by_rule([*range(1, 21)]), 20]


def test_each_lineage_begins_with_each_record(begin: Any) -> None:
    room = begin(small())
    lived(room, 20)
    room.restart(20)
    for step in range(21, 26):
        room.record(step)
    steps = room.run().steps.tolist()
    assert steps == [*by_rule([*range(1, 21)]), *range(21, 26)]
