"""Trainings that go back, go on, or begin anew: which records stay, and what is accounted for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tests.conformance.figures import compare
from tests.conformance.room import Arrays
from tests.conformance.story import moved, small


def goes_on(room: Any, at: dict[int, Arrays], steps: Iterable[int], seed: int = 0) -> None:
    for step in steps:
        at[step] = moved(room.values(), 100 * seed + step)
        room.put(at[step])
        room.record(step)


def exact(account: Any) -> bool:
    parts = (account.shown, account.superseded, account.thinned, account.dropped)
    return bool(account.offered == sum(parts) + account.unreadable)


def agrees(run: Any, at: dict[int, Arrays]) -> None:
    """Each record is that of the newest training at its step."""
    for name, variable in run.variables.items():
        for row, step in enumerate(variable.steps.tolist()):
            compare(variable, row, at[int(variable.past_steps[row])][name], at[step][name])


def test_after_a_restart_new_records_replace_those_from_there_on(begin: Any) -> None:
    at = {0: small()}
    room = begin(at[0])
    goes_on(room, at, range(1, 11))
    room.put(at[6])
    room.restart(6)
    goes_on(room, at, range(7, 10), seed=1)
    run = room.run()
    assert run.steps.tolist() == [*range(1, 10)]
    assert [each.ordinal for each in run.lineages] == [1, 2]
    account = run.account
    assert (account.offered, account.shown, account.superseded) == (13, 9, 4)
    assert exact(account)
    del at[10]
    agrees(run, at)


def test_steps_that_go_back_begin_a_lineage_without_a_past(begin: Any) -> None:
    at = {0: small()}
    room = begin(at[0])
    goes_on(room, at, range(1, 11))
    goes_on(room, at, range(6, 9), seed=1)
    run = room.run()
    # What step 6 came from isn't known: 7 is the first with something to compare with.
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(run.lineages) == 2
    assert exact(run.account)
    assert run.account.superseded == 4


def test_another_program_continues_from_a_checkpoint(begin: Any) -> None:
    at = {0: small()}
    for start in (0, 3, 2):
        room = begin(at[start], start=start)
        goes_on(room, at, range(start + 1, start + 4), seed=start)
        room.close()
    run = room.run()
    assert run.steps.tolist() == [1, 2, 3, 4, 5]
    assert len(run.lineages) == 3
    assert exact(run.account)
    assert (run.account.offered, run.account.shown) == (9, 5)
    agrees(run, {step: at[step] for step in range(6)})


def test_other_weights_are_another_run(begin: Any) -> None:
    for seed in range(3):
        room = begin(moved(small(), seed))
        goes_on(room, {}, range(1, 4), seed)
        room.close()
    runs = room.log().runs.values()
    assert [run.steps.tolist() for run in runs] == [[1, 2, 3]] * 3
    assert [run.account.superseded for run in runs] == [0] * 3


def test_a_loop_from_zero_records_its_first_step(begin: Any) -> None:
    at = {-1: small()}
    room = begin(at[-1], start=None, every=10)
    goes_on(room, at, range(21))
    run = room.run()
    assert run.steps.tolist() == [0, 10, 20]
    assert run.variables["d7/kernel"].past_steps.tolist() == [-1, 9, 19]
    agrees(run, at)


def test_the_past_of_a_late_beginning_is_unknown(begin: Any) -> None:
    room = begin(small(), start=None, every=5)
    goes_on(room, {}, range(17, 26))
    variable = room.run().variables["d7/kernel"]
    assert variable.steps.tolist() == [17, 20, 25]
    assert np.isnan(variable.delta_norm[0]).all()
    assert np.isfinite(variable.delta_norm[1:]).all()
    assert variable.past_steps.tolist() == [17, 19, 24]


@pytest.mark.parametrize("every", [1, 7])
def test_a_long_training_is_accounted_for_in_every_lineage(begin: Any, every: int) -> None:
    at, due = {0: small()}, list[int]()
    room = begin(at[0], every=every)
    for back in (0, 30, 11, 40):
        if back:
            room.put(at[back])
            room.restart(back)
        if back == 40:
            room.recorder.expect_end(80)
        goes_on(room, at, range(back + 1, back + 41), seed=back)
        # The first of each lineage is due.
        later = [step for step in range(back + 2, back + 41) if step % every == 0]
        due = [*[step for step in due if step <= back], back + 1, *later]
    due = sorted({*due, 80})
    run = room.run()
    assert run.steps.tolist() == due
    assert exact(run.account)
    assert run.account.shown == len(due)
    assert run.account.thinned == run.account.dropped == run.account.unreadable == 0
    agrees(run, at)
