"""What was held and compared: counted here beside the recorder, and by the log."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.core.verified import Verified
from tests.conformance.test_masks import KERNEL, columns, kernels, leak, pruned, some, train

Held = dict[str, np.ndarray]


class Count:
    """Values times records, by what was held before each step."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self.records: dict[str, int] = {}
        self.comparisons = 0

    def record(self, held: Held) -> None:
        for name, mask in held.items():
            values = int(mask.sum())
            self.most[name] = max(self.most.get(name, 0), values)
            if values:
                self.records[name] = self.records.get(name, 0) + 1
                self.comparisons += values

    def verified(self, changed: int = 0, **more: Any) -> Verified:
        return Verified(
            len(self.records),
            sum(most for name, most in self.most.items() if name in self.records),
            max(self.records.values()),
            min(self.records.values()),
            self.comparisons,
            changed,
            "value",
            **more,
        )


def train_counted(room: Any, count: Count, steps: Any, held: Held) -> None:
    free = {name: ~mask for name, mask in held.items()}
    for step in steps:
        count.record(held)
        train(room, [step], free)


def rows(size: int) -> np.ndarray:
    return np.broadcast_to(np.arange(3)[:, None] > 0, (3, size))


def test_values_that_were_compared_are_counted(begin: Any) -> None:
    masks = {
        KERNEL: some(9),
        "d65/kernel": rows(65),
        "d129/kernel": columns(129, lambda at: at > 3),
    }
    room = begin(kernels(9, 64, 65, 129), trainable={**masks, "d64/kernel": False})
    held, whole = {name: ~mask for name, mask in masks.items()}, np.ones((3, 64), bool)
    count = Count()
    train_counted(room, count, range(1, 6), {**held, "d64/kernel": whole})
    more = rows(65) & columns(65, lambda at: at != 7)
    room.declare({"d64/kernel": True, "d65/kernel": more}, {})
    held |= {"d65/kernel": ~more}
    train_counted(room, count, range(6, 9), {**held, "d64/kernel": ~whole})
    room.declare({"d64/kernel": False}, {})
    train_counted(room, count, range(9, 11), {**held, "d64/kernel": whole})
    assert room.run().verified == count.verified()


def test_a_weight_held_as_a_whole_is_compared_at_each_record(begin: Any) -> None:
    room, count = begin(kernels(9), trainable={KERNEL: False}), Count()
    train_counted(room, count, range(1, 8), {KERNEL: np.ones((3, 9), bool)})
    run = room.run()
    assert run.verified == count.verified()
    assert str(run.verified) == (
        "27 frozen values in 1 weight, compared by value at 7 records: 0 changed"
    )


def test_pruned_values_are_compared(begin: Any) -> None:
    kept, count = some(9), Count()
    room = begin(kernels(), kept={KERNEL: kept})
    pruned(room, {KERNEL: kept})
    train_counted(room, count, range(1, 5), {KERNEL: ~kept})
    assert room.run().verified == count.verified(pruned=True)


def test_values_that_changed_are_counted(begin: Any) -> None:
    room, count = begin(kernels(9, 64), trainable={KERNEL: False, "d64/kernel": False}), Count()
    whole = {KERNEL: np.ones((3, 9), bool), "d64/kernel": np.ones((3, 64), bool)}
    train_counted(room, count, [1, 2], whole)
    leak(room, KERNEL, (slice(None), 2), 5)
    leak(room, "d64/kernel", (0, [0, 63]), 5)
    train_counted(room, count, [3, 4], whole)
    assert room.run().verified == count.verified(changed=5)


def test_records_that_are_not_stored_are_counted(begin: Any) -> None:
    room, count = begin(kernels(9), trainable={KERNEL: False}), Count()
    for step in range(1, 1101):
        count.record({KERNEL: np.ones((3, 9), bool)})
        room.record(step)
    run = room.run()
    assert run.account.thinned > 0
    assert run.verified == count.verified()


def test_each_lineage_is_counted(begin: Any) -> None:
    room, count = begin(kernels(9), trainable={KERNEL: False}), Count()
    whole = {KERNEL: np.ones((3, 9), bool)}
    train_counted(room, count, range(1, 6), whole)
    room.restart(5)
    train_counted(room, count, range(6, 9), whole)
    assert room.run().verified == count.verified()


def test_a_training_in_which_all_weights_train_has_frozen_nothing(begin: Any) -> None:
    room = begin(kernels(9), trainable={})
    train(room, [1, 2])
    verified = room.run().verified
    assert (str(verified), verified.weights) == ("nothing was frozen", 0)
