"""Weights that are held: what the log has of their masks, and what is said when they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tests.conformance.story import moved, small

KERNEL = "d9/kernel"
SIZES = (1, 9, 64, 65, 129, 4097)


def kernels(*sizes: int) -> dict[str, np.ndarray]:
    """A kernel of each number of channels, and one that no mask holds."""
    rng = np.random.default_rng(0)
    own = {f"d{size}/kernel": 1 + rng.random((3, size), "f4") for size in sizes or (9,)}
    return {**own, "e/kernel": np.ones((2, 3), "f4")}


def masked(*sizes: int, make: Any) -> dict[str, Any]:
    """A mask of each of these kernels, by its number of channels."""
    return {f"d{size}/kernel": make(size) for size in sizes}


def train(room: Any, steps: Any, through: Any = 1.0) -> None:
    """Moves what masks let through, one for all or by name, and all of another layer."""
    for step in steps:
        now = room.values()
        for name in now:
            own = through.get(name, 1) if isinstance(through, dict) else through
            free = 1.0 if name == "e/kernel" else np.asarray(own, float)
            now[name] = (now[name] * (1 + 0.1 * free)).astype("f4")
        room.put(now)
        room.record(step)


def leak(room: Any, name: str, where: Any, value: float) -> None:
    now = room.values()
    now[name][where] = value
    room.put({name: now[name]})


def some(channels: int, seed: int = 1) -> np.ndarray:
    """A mask of elements, in which each channel keeps one."""
    mask = np.random.default_rng(seed).random((3, channels)) < 0.5
    mask[0] = True
    return mask


def columns(channels: int, which: Any) -> np.ndarray:
    return np.broadcast_to(which(np.arange(channels)), (3, channels))


def pruned(room: Any, masks: dict[str, np.ndarray]) -> None:
    now = room.values()
    room.put({name: (now[name] * mask).astype("f4") for name, mask in masks.items()})


def test_a_mask_of_elements_is_in_the_log(begin: Any) -> None:
    masks = masked(*SIZES, make=some)
    room = begin(kernels(*SIZES), trainable=masks)
    train(room, range(1, 4), masks)
    run = room.run()
    for name, mask in masks.items():
        variable = run.variables[name]
        np.testing.assert_array_equal(variable.masks(2).trainable, mask)
        np.testing.assert_allclose(variable.trainable, [mask.mean(0)] * 3, rtol=0.05)
    assert run.violations == ()
    assert run.variables["e/kernel"].trainable.all()


def test_a_mask_of_channels_freezes_them(begin: Any) -> None:
    masks = masked(9, 65, make=lambda size: columns(size, lambda at: (at > 0) & (at < size - 1)))
    room = begin(kernels(9, 65), trainable=masks)
    train(room, range(1, 4), masks)
    run = room.run()
    for name, mask in masks.items():
        np.testing.assert_array_equal(run.variables[name].trainable, [mask[0]] * 3)
        states = run.variables[name].states()
        assert {*states[:, [0, -1]].ravel()} == {"frozen"}
        assert "frozen" not in states[:, 1:-1]


def test_pruned_weights_are_in_the_log(begin: Any) -> None:
    masks = masked(9, 65, make=lambda size: some(size) & columns(size, lambda at: at != size - 1))
    room = begin(kernels(9, 65), kept=masks)
    pruned(room, masks)
    train(room, range(1, 4))
    run = room.run()
    for name, mask in masks.items():
        variable = run.variables[name]
        np.testing.assert_array_equal(variable.masks(3).kept, mask)
        np.testing.assert_allclose(variable.kept, [mask.mean(0)] * 3, rtol=0.05)
        assert {*variable.states()[:, -1]} == {"pruned"}


def test_a_declaration_holds_from_its_step_until_it_is_taken_back(begin: Any) -> None:
    room = begin(kernels(), trainable={})
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
    kept, held = some(9, 1), some(9, 2)
    room = begin(kernels(), kept={KERNEL: kept})
    pruned(room, {KERNEL: kept})
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


def test_a_held_weight_that_moves_is_a_violation(begin: Any) -> None:
    masks = masked(*SIZES, make=lambda size: columns(size, lambda at: at != size - 1))
    room = begin(kernels(*SIZES), trainable=masks)
    train(room, [1, 2], masks)
    for name in masks:
        leak(room, name, (2, -1), 3)
    train(room, [3, 4], masks)
    run = room.run()
    assert {each.variable for each in run.violations} == {*masks}
    for violation in run.violations:
        before = kernels(*SIZES)[violation.variable][2, -1]
        assert violation.channel == masks[violation.variable].shape[1] - 1
        assert (violation.first_step, violation.elements, violation.held) == (3, 1, 3)
        assert violation.largest == pytest.approx(3 - before, rel=1e-5)
        shown = run.variables[violation.variable].violated[:3]
        assert np.argwhere(shown).tolist() == [[2, violation.channel]]


def test_a_weight_held_as_a_whole_is_watched_in_each_channel(begin: Any) -> None:
    room = begin(kernels(65), trainable={"d65/kernel": False})
    train(room, [1, 2], 0)
    leak(room, "d65/kernel", (slice(None), [0, 63, 64]), 5)
    train(room, [3], 0)
    found = {(each.channel, each.first_step, each.elements) for each in room.run().violations}
    assert found == {(0, 3, 3), (63, 3, 3), (64, 3, 3)}


BITS = {2: (-0.0, 0.0), 3: (np.nan, 1.0), 4: (1e-45, 0.0)}


def test_held_weights_are_compared_bit_for_bit(begin: Any) -> None:
    values = kernels()
    for channel, (before, _) in BITS.items():
        values[KERNEL][1, channel] = before
    room = begin(values, trainable={KERNEL: False})
    train(room, [1, 2], 0)
    assert room.recorder.alerts.violated is False
    now = room.values()
    for channel, (_, after) in BITS.items():
        now[KERNEL][1, channel] = after
    room.put(now)
    train(room, [3], 0)
    assert [(each.channel, each.first_step) for each in room.run().violations] == [
        (channel, 3) for channel in BITS
    ]


def test_a_pruned_weight_that_is_not_zero_is_a_violation(begin: Any) -> None:
    masks = masked(65, make=lambda size: columns(size, lambda at: at != 64))
    room = begin(kernels(65), kept=masks)
    pruned(room, masks)
    train(room, [1, 2])
    leak(room, "d65/kernel", (1, 64), 0.5)
    train(room, [3], 0)
    assert {(each.channel, each.first_step) for each in room.run().violations} == {(64, 3)}


def test_decay_that_moves_a_held_weight_is_its_cause(begin: Any) -> None:
    rates = {"d9": lambda step: 0.01}
    room = begin(kernels(), trainable={KERNEL: False}, rates=rates, decay=0.1)
    for step in range(1, 4):
        room.update(0)
        room.record(step)
    run = room.run()
    assert {each.cause for each in run.violations} == {"weight_decay"}
    assert {each.channel for each in run.violations} == {*range(9)}


def test_a_function_is_called_with_new_violations(begin: Any) -> None:
    told: list[Any] = []
    room = begin(kernels(), trainable={KERNEL: False}, on_violation=told.extend)
    train(room, [1, 2], 0)
    train(room, [3, 4])
    room.close()
    assert [(each.variable, each.channel, each.first_step) for each in told] == [
        (KERNEL, channel, 3) for channel in range(9)
    ]


def test_stop_is_refused_where_nothing_could_stop(begin: Any) -> None:
    with pytest.raises(InvalidArgument, match="Pass a function that sets a flag"):
        begin(kernels(), on_violation="stop")


def test_without_an_audit_nothing_is_compared(begin: Any) -> None:
    room = begin(kernels(), audit=False)
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


def overlaps(begin: Any, kind: str, first: dict[str, Any], second: dict[str, Any]) -> list[float]:
    """Of two runs from the same beginning with masks of their own: by weights and channels."""
    for name, masks in (("a", first), ("b", second)):
        room = begin(kernels(8, 129), f"both/{name}", **masks)
        pruned(room, masks.get("kept", {}))
        train(room, [1, 2, 3], masks.get("trainable", 1))
        room.close()
    log = pastnet.read(room.logdir.rpartition("/")[0])
    both = [log.overlap("a", "b", unit=unit, kind=kind) for unit in ("weights", "channels")]
    return [each.layers[layer].overlap for layer in ("d8", "d129") for each in both]


def each_of(which: Any) -> dict[str, np.ndarray]:
    return masked(8, 129, make=lambda size: columns(size, lambda at: which(at, size)))


@pytest.mark.parametrize("kind", ["kept", "trainable"])
def test_masks_of_two_runs_overlap(begin: Any, kind: str) -> None:
    first, second = each_of(lambda at, size: at >= 2), each_of(lambda at, size: at < 7)
    shown = overlaps(begin, kind, {kind: first}, {kind: second})
    assert shown == pytest.approx([5 / 8] * 2 + [5 / 129] * 2)


def test_single_channels_that_train_overlap_nowhere(begin: Any) -> None:
    first, last = each_of(lambda at, size: at == 0), each_of(lambda at, size: at == size - 1)
    assert overlaps(begin, "trainable", {"trainable": first}, {"trainable": last}) == [0] * 4


def test_runs_whose_kept_weights_are_frozen_train_the_same(begin: Any) -> None:
    """Nothing, whichever they keep: all of the first word are pruned."""
    first = each_of(lambda at, size: at >= min(64, size - 2))
    second = each_of(lambda at, size: at >= min(70, size - 3))
    frozen = dict.fromkeys(first, False)
    runs = [{"trainable": frozen, "kept": kept} for kept in (first, second)]
    assert overlaps(begin, "trainable", *runs) == [1] * 4
