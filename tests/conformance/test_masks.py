"""Weights that are held: what the log has of their masks, and what is said when they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.conformance.story import moved, small

KERNEL = "d/kernel"
CHANNELS = [1, 9, 65, 4097]


def kernel(channels: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        KERNEL: 1 + rng.random((3, channels), "f4"),
        "e/kernel": np.ones((2, 3), "f4"),
    }


def train(room: Any, steps: Any, through: Any = 1.0) -> None:
    """Moves what a mask lets through, and all of another layer."""
    for step in steps:
        now = room.values()
        now[KERNEL] = (now[KERNEL] * (1 + 0.1 * np.asarray(through))).astype("f4")
        now["e/kernel"] += np.float32(0.1)
        room.put(now)
        room.record(step)


def some(channels: int, seed: int = 1) -> np.ndarray:
    """A mask of elements, in which each channel keeps one."""
    mask = np.random.default_rng(seed).random((3, channels)) < 0.5
    mask[0] = True
    return mask


def pruned(room: Any, mask: np.ndarray) -> None:
    room.put({KERNEL: (room.values()[KERNEL] * mask).astype("f4")})


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_mask_of_elements_is_in_the_log(begin: Any, channels: int) -> None:
    mask = some(channels)
    room = begin(kernel(channels), masks={KERNEL: mask})
    train(room, range(1, 4), mask)
    run = room.run()
    variable = run.variables[KERNEL]
    np.testing.assert_array_equal(variable.masks(2).trainable, mask)
    np.testing.assert_allclose(variable.trainable, [mask.mean(0)] * 3, rtol=0.05)
    assert run.violations == ()
    assert run.variables["e/kernel"].trainable.all()


@pytest.mark.parametrize("channels", [7, 65])
def test_a_mask_of_channels_freezes_them(begin: Any, channels: int) -> None:
    mask = np.ones((3, channels), bool)
    mask[:, [0, channels - 1]] = False
    room = begin(kernel(channels), masks={KERNEL: mask})
    train(room, range(1, 4), mask)
    run = room.run()
    np.testing.assert_array_equal(run.variables[KERNEL].trainable, [mask[0]] * 3)
    states = run.variables[KERNEL].states()
    assert {*states[:, [0, -1]].ravel()} == {"frozen"}
    assert "frozen" not in states[:, 1:-1]


@pytest.mark.parametrize("channels", [9, 65])
def test_pruned_weights_are_in_the_log(begin: Any, channels: int) -> None:
    mask = some(channels)
    mask[:, 1] = False
    room = begin(kernel(channels), kept={KERNEL: mask})
    pruned(room, mask)
    train(room, range(1, 4))
    run = room.run()
    variable = run.variables[KERNEL]
    np.testing.assert_array_equal(variable.masks(3).kept, mask)
    np.testing.assert_allclose(variable.kept, [mask.mean(0)] * 3, rtol=0.05)
    assert {*variable.states()[:, 1]} == {"pruned"}


def test_a_declaration_holds_from_its_step_until_it_is_taken_back(begin: Any) -> None:
    room = begin(kernel(9), masks={})
    train(room, range(1, 4))
    room.declare({KERNEL: False}, {})
    train(room, range(4, 7), 0)
    room.declare({KERNEL: True}, {})
    train(room, range(7, 9))
    run = room.run()
    free = [1, 1, 1, 0, 0, 0, 1, 1]
    assert run.variables[KERNEL].trainable.tolist() == [[each] * 9 for each in free]
    assert run.variables["e/kernel"].trainable.all()
    assert run.violations == ()


def test_a_declaration_of_one_mask_leaves_the_other(begin: Any) -> None:
    kept, held = some(65, 1), some(65, 2)
    room = begin(kernel(65), kept={KERNEL: kept})
    pruned(room, kept)
    train(room, range(1, 3))
    room.declare({KERNEL: held}, {})
    train(room, range(3, 5), held)
    room.declare({}, {KERNEL: kept})  # again
    train(room, range(5, 7), held)
    run = room.run()
    masks = run.variables[KERNEL].masks
    np.testing.assert_array_equal([masks(1).kept, masks(4).kept, masks(6).kept], [kept] * 3)
    assert masks(2).trainable.all()
    np.testing.assert_array_equal(masks(6).trainable | ~kept, held | ~kept)
    assert run.violations == ()


@pytest.mark.parametrize(("channels", "moving"), [(1, 0), (64, 63), (65, 64), (4097, 4096)])
def test_a_held_weight_that_moves_is_a_violation(begin: Any, channels: int, moving: int) -> None:
    mask = np.ones((3, channels), bool)
    mask[1:, moving] = False
    room = begin(kernel(channels), masks={KERNEL: mask})
    train(room, [1, 2], mask)
    leak = room.values()
    leak[KERNEL][2, moving] += 1
    room.put(leak)
    train(room, [3, 4], mask)
    run = room.run()
    (violation,) = run.violations
    assert (violation.variable, violation.channel) == (KERNEL, moving)
    assert violation.first_step == 3
    assert (violation.elements, violation.held) == (1, 2)
    assert violation.largest == pytest.approx(1, rel=1e-5)
    assert violation.layer == "d"
    assert run.variables[KERNEL].violated[:, moving].tolist()[:3] == [False, False, True]


def test_a_weight_held_as_a_whole_is_watched_in_each_channel(begin: Any) -> None:
    room = begin(kernel(65), masks={KERNEL: False})
    train(room, [1, 2], 0)
    leak = room.values()
    leak[KERNEL][:, [0, 63, 64]] += 1
    room.put(leak)
    train(room, [3], 0)
    found = {(each.channel, each.first_step, each.elements) for each in room.run().violations}
    assert found == {(0, 3, 3), (63, 3, 3), (64, 3, 3)}


@pytest.mark.parametrize("bits", [(-0.0, 0.0), (np.nan, 1.0), (1e-45, 0.0)], ids=str)
def test_held_weights_are_compared_bit_by_bit(begin: Any, bits: tuple[float, float]) -> None:
    values = kernel(7)
    values[KERNEL][1, 3] = bits[0]
    room = begin(values, masks={KERNEL: False})
    train(room, [1, 2], 0)
    assert room.recorder.alerts.violated is False
    leak = room.values()
    leak[KERNEL][1, 3] = bits[1]
    room.put(leak)
    train(room, [3], 0)
    assert [(each.channel, each.first_step) for each in room.run().violations] == [(3, 3)]


def test_a_pruned_weight_that_is_not_zero_is_a_violation(begin: Any) -> None:
    mask = some(65)
    mask[1, 64] = False
    room = begin(kernel(65), kept={KERNEL: mask})
    pruned(room, mask)
    train(room, [1, 2])
    leak = room.values()
    leak[KERNEL][1, 64] = 0.5
    room.put(leak)
    train(room, [3], 0)
    assert {(each.channel, each.first_step) for each in room.run().violations} == {(64, 3)}


def test_decay_that_moves_a_held_weight_is_its_cause(begin: Any) -> None:
    values = kernel(9)
    room = begin(values, masks={KERNEL: False}, rates={"d": lambda step: 0.01}, decay=0.1)
    for step in range(1, 4):
        room.update(0)
        room.record(step)
    run = room.run()
    assert {each.cause for each in run.violations} == {"weight_decay"}
    assert {each.channel for each in run.violations} == {*range(9)}


def test_a_function_is_called_with_new_violations(begin: Any) -> None:
    told: list[Any] = []
    room = begin(kernel(9), masks={KERNEL: False}, on_violation=told.extend)
    train(room, [1, 2], 0)
    train(room, [3, 4])
    room.close()
    assert {(each.variable, each.channel, each.first_step) for each in told} == {
        (KERNEL, channel, 3) for channel in range(9)
    }
    assert len(told) == 9


def test_without_an_audit_nothing_is_compared(begin: Any) -> None:
    room = begin(kernel(9), audit=False)
    train(room, [1, 2])
    assert not room.recorder.alerts.violated
    assert room.run().violations == ()


def test_what_follows_moves_on_purpose(begin: Any) -> None:
    room = begin(small(), follows=["d7/kernel"])
    for step in range(1, 4):
        room.put(moved(room.values(), step))
        room.record(step)
    run = room.run()
    assert {*run.variables["d7/kernel"].states().ravel()} == {"following"}
    assert "following" not in run.variables["d9/kernel"].states()
    assert run.violations == ()


def columns(channels: int, which: Any) -> np.ndarray:
    return np.broadcast_to(which(np.arange(channels)), (3, channels))


@pytest.mark.parametrize("unit", ["weights", "channels"])
@pytest.mark.parametrize("kind", ["kept", "trainable"])
@pytest.mark.parametrize("channels", [8, 129])
def test_masks_of_two_runs_overlap(begin: Any, channels: int, kind: str, unit: str) -> None:
    held = [columns(channels, lambda each: each >= 2), columns(channels, lambda each: each < 7)]
    word = "masks" if kind == "trainable" else "kept"
    for name, mask in zip("ab", held, strict=True):
        room = begin(kernel(channels), f"both/{name}", **{word: {KERNEL: mask}})
        pruned(room, mask) if kind == "kept" else None
        train(room, [1, 2, 3], mask)
        room.close()
    log = pastnet.read(room.logdir.rpartition("/")[0])
    shown = log.overlap("a", "b", unit=unit, kind=kind).layers["d"].overlap
    both, either = np.sum(held[0] & held[1]), np.sum(held[0] | held[1])
    assert shown == pytest.approx(both / either)


@pytest.mark.parametrize("through", ["nothing", "the last channel"])
@pytest.mark.parametrize("channels", [8, 129])
def test_a_run_whose_kept_weights_are_frozen_trains_none(
    begin: Any, channels: int, through: str
) -> None:
    """All of the first word are pruned: the others are frozen."""
    mask = columns(channels, lambda each: each >= min(64, channels - 2))
    last = columns(channels, lambda each: each == channels - 1)
    frozen = False if through == "nothing" else last
    for name in "ab":
        room = begin(kernel(channels), f"both/{name}", masks={KERNEL: frozen}, kept={KERNEL: mask})
        pruned(room, mask)
        train(room, [1, 2, 3], frozen)
        room.close()
    log = pastnet.read(room.logdir.rpartition("/")[0])
    shown = log.overlap("a", "b", unit="weights", kind="trainable")
    assert shown.layers["d"].overlap == 1
