"""Weights that masks hold: the framework's own updates leave them, and train the others as ever."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.story import wide

RATES = {"d9": lambda step: 0.25}
DECAY = 0.5
KERNELS = [name for name in wide() if name.endswith("kernel")]
KERNEL = "d9/kernel"


def drawn(seed: int) -> dict[str, np.ndarray]:
    """A mask of each kernel, in which each channel keeps an element."""
    rng = np.random.default_rng(seed)
    masks = {name: rng.random(wide()[name].shape) < 0.6 for name in KERNELS}
    for mask in masks.values():
        mask[0] = True
    return masks


KEPT, FREE = drawn(1), drawn(2)
for name in KERNELS:
    KEPT[name][-1], FREE[name][-1] = True, False  # frozen


def values() -> dict[str, np.ndarray]:
    """Some held ones are a negative zero, or smaller than a processor may compute with."""
    own = wide()
    for name in KERNELS:
        own[name][-1, ..., -1] = -0.0
        own[name][-1, ..., 0] = 1e-45
    return own


def held(begin: Any, name: str = "held", **settings: Any) -> tuple[Any, Any]:
    """A training in which masks hold elements of each kernel."""
    room = begin(values(), name, rates=RATES, decay=DECAY, **settings)
    masks = room.hold()
    for kernel in KERNELS:
        masks.prune(kernel, kept=KEPT[kernel])
        masks.freeze(kernel, trainable=FREE[kernel])
    return room, masks


def expected(name: str, trained: np.ndarray) -> np.ndarray:
    """What masks make of a kernel that a training without them has brought there."""
    pruned = np.where(KEPT[name], values()[name], np.float32(0))
    return np.where(KEPT[name] & FREE[name], trained, pruned)


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    """All bits."""
    np.testing.assert_array_equal(found.view("u4"), wanted.view("u4"))


def test_held_bits_stay_and_free_weights_train_as_without_masks(begin: Any) -> None:
    stock = begin(values(), "stock", rates=RATES, decay=DECAY)
    room, masks = held(begin)
    stock.train(3)
    room.train(3)
    for name, trained in stock.values().items():
        same(room.values()[name], expected(name, trained) if name in KERNELS else trained)
        assert (trained != values()[name]).any()
    for name in KERNELS:
        np.testing.assert_array_equal(masks.kept[name], KEPT[name])
        np.testing.assert_array_equal(masks.trainable[name], FREE[name] | ~KEPT[name])


def test_frozen_and_pruned_weights_are_recorded_without_a_violation(begin: Any) -> None:
    room, masks = held(begin)
    room.train(3)
    assert masks.audit() == []
    run = room.run()
    assert run.violations == ()
    assert run.verified.changed == 0
    assert run.verified.values == sum((~(KEPT[name] & FREE[name])).sum() for name in KERNELS)
    for name in KERNELS:
        shown = run.variables[name].masks(3)
        np.testing.assert_array_equal(shown.kept, KEPT[name])
        np.testing.assert_array_equal(shown.trainable | ~shown.kept, FREE[name] | ~KEPT[name])


def test_a_command_holds_the_values_of_its_step(begin: Any) -> None:
    room = begin(values(), rates=RATES)
    masks = room.hold()
    room.train(2)
    before = room.values()[KERNEL]
    masks.freeze(KERNEL, trainable=FREE[KERNEL])
    room.train(2)
    now = room.values()[KERNEL]
    same(now[~FREE[KERNEL]], before[~FREE[KERNEL]])
    assert (now != before)[FREE[KERNEL] & (before != 0)].all()
    masks.thaw(KERNEL)
    room.train(1)
    assert (room.values()[KERNEL] != now)[abs(now) > 1e-30].all()


def test_weights_that_grow_again_train_from_zero(begin: Any) -> None:
    room, masks = held(begin)
    masks.regrow(KERNEL)
    assert masks.kept[KERNEL].all()
    assert not room.values()[KERNEL][~KEPT[KERNEL]].any()
    room.put({KERNEL: np.ones_like(values()[KERNEL])})
    room.train(1)
    assert (room.values()[KERNEL] != 1)[~KEPT[KERNEL]].all()


def test_values_that_are_set_are_held_and_pruned_ones_stay_zero(begin: Any) -> None:
    room, _ = held(begin)
    room.train(1)
    room.put({name: np.full_like(values()[name], 0.375) for name in KERNELS})
    room.train(1)
    for name in KERNELS:
        now, frozen = room.values()[name], KEPT[name] & ~FREE[name]
        assert (now[frozen] == 0.375).all()
        assert not now[~KEPT[name]].any()


def test_the_smallest_weights_are_pruned(begin: Any) -> None:
    room = begin(values(), rates=RATES)
    masks, names = room.hold(), KERNELS[1:]  # of a small one the largest stays in any case
    masks.prune_smallest(0.75, variables=names)
    size = np.sort(np.concatenate([abs(values()[name]).ravel() for name in names]))
    for name in names:
        kept = abs(values()[name]) >= size[round(0.75 * size.size)]
        np.testing.assert_array_equal(masks.kept[name], kept)
    assert masks.sparsity(KERNEL) == masks.zeros(KERNEL) == (~masks.kept[KERNEL]).mean()


def test_masks_that_are_only_declared_write_nothing(begin: Any) -> None:
    room = begin(values(), rates=RATES)
    masks = room.hold(enforce=False)
    masks.prune(KERNEL, kept=KEPT[KERNEL])
    same(room.values()[KERNEL], values()[KERNEL])
    room.train(1)
    assert (room.values()[KERNEL] != 0)[abs(values()[KERNEL]) > 1e-30].all()
    assert {each.variable for each in masks.audit()} == {KERNEL}


def test_a_snapshot_is_gone_back_to_with_the_masks_of_now(begin: Any) -> None:
    room = begin(values(), rates=RATES)
    masks = room.hold()
    room.train(2)
    early, snapshot = room.values(), masks.snapshot()
    room.train(2)
    masks.prune(KERNEL, kept=KEPT[KERNEL])
    assert masks.rewind(snapshot).held == (~KEPT[KERNEL]).sum()
    now = room.values()
    for name in early:
        kept = KEPT[KERNEL] if name == KERNEL else True
        same(now[name], np.where(kept, early[name], np.float32(0)))
