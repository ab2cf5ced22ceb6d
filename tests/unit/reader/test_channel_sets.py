"""Channels that are pruned or frozen, as sets: right, small, and kept when records aren't."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tb_pastnet.core import channel_states
from tb_pastnet.reader import notes
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import (
    UNKNOWN,
    ChannelSets,
    drawn,
    make_channel_sets,
    read_channel_sets,
)
from tb_pastnet.reader.store import RunReader, Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

CHANNELS, STEPS = 11, range(10, 50)


def written(provider: MemoryProvider, run: str = "a") -> tuple[MemoryWriter, np.ndarray]:
    """A run of which channels are pruned and frozen here and there, and its states by step."""
    writer = memory_run(provider, run, range(0), layers={"c": CHANNELS})
    codes = files.codes(STEPS, CHANNELS)
    right = np.full((len(STEPS), CHANNELS), channel_states.MOVING)
    files.freeze(codes, slice(5, 20), slice(2, 6))
    right[5:20, 2:6] = channel_states.FROZEN
    files.prune(codes, slice(12, None), slice(4, 9))
    right[12:, 4:9] = channel_states.PRUNED
    writer.records(STEPS, {"c/kernel": codes})
    return writer, right


def reader(store: Store) -> RunReader:
    return store.reader(CALLER, store.catalog(CALLER).runs["a"])


def read(found: RunReader, lost: Notes | None = None) -> Mapping[str, ChannelSets]:
    names = [one.id for one in drawn(found.run).values()]
    return read_channel_sets(found, names, Notes() if lost is None else lost)


def test_sets_are_those_of_the_states() -> None:
    provider = MemoryProvider()
    _, right = written(provider)
    sets = read(reader(Store(provider)))["c/kernel"]
    # A row where something changed: at the start, frozen, pruned, free again.
    assert sets.steps.tolist() == [10, 15, 22, 30]
    steps = np.array([9, 10, 14, 15, 21, 22, 29, 30, 49, 60])
    for mask, held in (
        ("kept", [channel_states.PRUNED]),
        ("trainable", [channel_states.PRUNED, channel_states.FROZEN]),
    ):
        found = sets.sets(mask, steps)
        assert found.elements == CHANNELS
        for step, which in zip(steps.tolist(), found.positions.tolist(), strict=True):
            if step < 10:
                assert which == UNKNOWN
                continue
            through = ~np.isin(right[min(step, 49) - 10], held)
            bits = found.bits(which)
            assert np.unpackbits(bits.view(np.uint8), count=CHANNELS).tolist() == through.tolist()
            assert found.size(which) == through.sum()


def test_a_threshold_has_no_bearing() -> None:
    provider = MemoryProvider()
    written(provider)
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    moves = store.reader(CALLER, run).state_series("c/kernel")
    sets = make_channel_sets(
        store.reader(CALLER, run).series("c/kernel"), run.variables["c/kernel"]
    )
    for threshold in (0.0, 1e-4, 1.0):
        told = moves.states(threshold) & np.uint8(channel_states.STATE)
        found = sets.sets("trainable", moves.steps)
        right = ((told != channel_states.PRUNED) & (told != channel_states.FROZEN)).sum(axis=1)
        assert [found.size(which) for which in found.positions] == right.tolist()


def test_a_variable_is_held_where_all_of_it_is_and_some_is_not_pruned() -> None:
    series = read_series(
        [("frozen", slice(1, 3), slice(None)), ("pruned", slice(2, 3), slice(0, 2)),
         ("pruned", slice(3, 4), slice(None))]
    )  # fmt: skip
    assert series.held(np.array([0, 1, 2, 3, 4, 5])).tolist() == [
        False, False, True, True, False, False,
    ]  # fmt: skip


def read_series(changes: list) -> object:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), layers={"c": 3})
    codes = files.codes(range(1, 6), 3)
    for how, records, channels in changes:
        (files.freeze if how == "frozen" else files.prune)(codes, records, channels)
    writer.records(range(1, 6), {"c/kernel": codes})
    return read(reader(Store(provider)))["c/kernel"]


def test_no_records_make_no_sets() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(0), layers={"c": 3})
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    sets = make_channel_sets(
        store.reader(CALLER, run).series("c/kernel"), run.variables["c/kernel"]
    )
    assert sets.sets("kept", np.array([-1, 0, 5])).positions.tolist() == [UNKNOWN] * 3
    assert not sets.held(np.array([-1, 5])).any()


def test_sets_stay_when_their_records_have_to_go() -> None:
    provider = MemoryProvider()
    writer, _ = written(provider)
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    moves = store.reader(CALLER, run).state_series("c/kernel")
    sets = make_channel_sets(
        store.reader(CALLER, run).series("c/kernel"), run.variables["c/kernel"]
    )
    assert 0 < sets.size < moves.size + 1024
    assert sets.kept.nbytes + sets.trainable.nbytes + sets.steps.nbytes == 4 * 3 * 8
    # Others are read, more than there is room for.
    memory_run(provider, "b", range(1, 400), layers={f"c{n}": 40 for n in range(5)})
    store = Store(provider, ceiling=10 * sets.size)
    found = reader(store)
    read(found)
    other = store.catalog(CALLER).runs["b"]
    for name in other.variables:
        store.reader(CALLER, other).state_series(name)
    del provider.tree[writer.tb_run]["channels/c/kernel"]
    assert read(found)["c/kernel"].steps.tolist() == [10, 15, 22, 30]


def test_without_room_they_are_still_answered() -> None:
    provider = MemoryProvider()
    written(provider)
    found = reader(Store(provider, ceiling=0))
    assert read(found)["c/kernel"].steps.tolist() == read(found)["c/kernel"].steps.tolist() != []


def test_all_variables_are_read_in_one_call() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 40), layers={f"c{n}": 3 for n in range(50)})
    found = reader(Store(provider))
    count = len(provider.reads)
    assert len(read(found)) == 50
    assert len(provider.reads) == count + 1


@pytest.mark.parametrize("broken", [True, False])
def test_what_was_withheld_is_not_kept(broken: bool) -> None:
    provider = MemoryProvider()
    writer, _ = written(provider)
    store = Store(provider)
    found = reader(store)
    if broken:
        provider.broken = {f"{writer.tb_run}/channels/c/kernel"}
    lost = Notes()
    read(found, lost)
    assert (notes.WITHHELD in lost) == broken
    provider.broken = set()
    count = len(provider.reads)
    assert read(found)["c/kernel"].steps.tolist() == [10, 15, 22, 30]
    assert (len(provider.reads) > count) == broken
