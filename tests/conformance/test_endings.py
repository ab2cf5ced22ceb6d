"""What changes after the last record, up to the end of the recorder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import tb_pastnet as pastnet
from tests.conformance.figures import compare
from tests.conformance.room import Arrays
from tests.conformance.story import moved, small, wide


def train(room: Any, at: list[Arrays], steps: int) -> None:
    for _ in range(steps):
        at.append(moved(at[-1], len(at)))
        room.put(at[-1])
        room.record(len(at) - 1)


def ended(room: Any) -> Any:
    room.close()
    (run,) = pastnet.read(room.logdir).runs.values()
    return run


@pytest.mark.parametrize("past", ["previous", "record", "initial"])
def test_weights_set_after_the_last_record_are_recorded_at_the_end(begin: Any, past: str) -> None:
    at = [small()]
    room = begin(at[0], past=past)
    train(room, at, 3)
    room.put(moved(at[-1], 99))  # averages, say, or the best weights
    last = room.values()
    run = ended(room)
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert run.account.offered == run.account.shown == 4
    for name, variable in run.variables.items():
        since = 0 if past == "initial" else 3
        assert variable.past_steps[-1] == since
        compare(variable, -1, at[since][name], last[name])


@pytest.mark.parametrize(("past", "since"), [("previous", 3), ("record", 4), ("epoch", 5)])
def test_the_last_step_is_recorded_though_it_was_not_due(begin: Any, past: str, since: int) -> None:
    at = [small()]
    room = begin(at[0], every=4, past=past)
    train(room, at, 5)
    if past == "epoch":
        room.sync()
    train(room, at, 1)
    run = ended(room)
    assert run.steps.tolist() == [1, 4, 6]
    for name, variable in run.variables.items():
        assert variable.past_steps[-1] == since
        compare(variable, -1, at[since][name], at[6][name])


@pytest.mark.parametrize("past", ["previous", "record", "initial"])
def test_without_a_change_nothing_more_is_recorded_at_the_end(begin: Any, past: str) -> None:
    at = [small()]
    room = begin(at[0], every=2, past=past)
    train(room, at, 4)
    for step in (5, 6, 7):  # the optimizer rests
        room.record(step)
    run = ended(room)
    assert run.steps.tolist() == [1, 2, 4, 6]


def test_a_held_weight_that_moves_after_the_last_record_is_a_violation(begin: Any) -> None:
    at = [small()]
    room = begin(at[0], trainable={"d7/kernel": False})
    for step in (1, 2):
        now = moved(room.values(), step)
        room.put({name: value for name, value in now.items() if name != "d7/kernel"})
        room.record(step)
    room.put({"d7/kernel": at[0]["d7/kernel"] + 1})
    run = ended(room)
    assert {(each.variable, each.first_step) for each in run.violations} == {("d7/kernel", 3)}
    assert len(run.violations) == 7


def test_the_last_values_have_a_sketch(begin: Any) -> None:
    at = [{"d65/kernel": wide()["d65/kernel"]}]
    room = begin(at[0])
    train(room, at, 67)  # the 64 first have one each, then each eighth
    run = ended(room)
    assert run.travel.steps[-3:].tolist() == [64, 65, 67]


def by_with(room: Any, training: Callable[[], None]) -> None:
    with room.block():
        training()


def by_finally(room: Any, training: Callable[[], None]) -> None:
    try:
        training()
    finally:
        room.close()


def by_except(room: Any, training: Callable[[], None]) -> None:
    try:
        training()
    except ZeroDivisionError:
        room.close()


@pytest.mark.parametrize("ends", [by_with, by_finally, by_except])
@pytest.mark.parametrize("fails", [True, False])
def test_a_training_that_raises_has_not_ended_normally(begin: Any, fails: bool, ends: Any) -> None:
    room, at = begin(small(), expect={"d7/kernel": "trains"}), moved(small(), 1)

    def training() -> None:
        del at["d7/kernel"]  # its update would have come
        room.put(at)
        room.record(1)
        if fails:
            raise ZeroDivisionError

    with suppress(ZeroDivisionError):
        ends(room, training)
    run = ended(room)
    assert run.closed is not fails
    assert run.steps.tolist() == [1]
    # What is judged at the end isn't, without one.
    assert any(each.kind == "contradictions" for each in run.findings()) is not fails


@pytest.mark.parametrize("fails", [True, False])
def test_a_training_within_a_handler_ends_as_it_does_elsewhere(begin: Any, fails: bool) -> None:
    try:
        raise MemoryError  # of a larger batch, say
    except MemoryError:
        room = begin(small())
        with suppress(ZeroDivisionError):
            try:
                train(room, [small()], 1)
                _ = 1 // (not fails)
            finally:
                room.close()
    assert ended(room).closed is not fails
