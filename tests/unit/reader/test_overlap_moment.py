"""When the masks of a run are the same, as far as its log tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_pastnet.format.tags import TAG_MASKS
from tb_pastnet.reader.overlap_sets import moment
from tb_pastnet.reader.store import Store
from tests.providers import CALLER, MemoryProvider, memory_run

LAYERS = {"c": 4, "d": 2}


def test_a_moment_is_one_between_two_changes_and_ends_with_what_is_written() -> None:
    provider = MemoryProvider()
    first = memory_run(provider, "a", range(1, 21), layers=LAYERS)
    for step in (4, 8, 12):
        first.masks(step, {("kept", "c/kernel"): np.arange(36) > step})
    store = Store(provider, fresh_for=0)

    def moments(steps: Sequence[int]) -> list:
        run = store.catalog(CALLER).runs["a"]
        masks = store.reader(CALLER, run).masks
        return [moment(masks, step) for step in steps]

    one, same_one, other = moments([4, 7, 8])
    assert one == same_one != other
    memory_run(provider, "b", range(1, 9))
    assert moments([4]) == [one]
    writer = memory_run(provider, "a", range(0), ordinal=2, lineage=7, first_step=30)
    before = moments([4])
    assert before != [one]
    # What it says that it begins with stands; records say no more.
    writer.records(range(30, 40))
    assert moments([4]) == before
    writer.masks(39, {("kept", "c/kernel"): np.zeros(36, bool)})
    assert moments([4]) != before


def test_a_moment_ends_where_a_gap_begins() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 21), layers=LAYERS)
    for step, variable in ((3, "c/kernel"), (6, "gone/kernel"), (9, "c/kernel")):
        writer.masks(step, {("kept", variable): np.arange(36) > step})
    writer.masks(15, {("kept", "d/kernel"): np.arange(18) > 3})
    del provider.tree[writer.tb_run][TAG_MASKS][2]
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    held = store.reader(CALLER, run).masks
    assert moment(held, 3) == moment(held, 5)
    assert moment(held, 5) != moment(held, 6)
