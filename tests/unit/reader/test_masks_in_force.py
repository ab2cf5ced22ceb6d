"""What is read of masks, when, and bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.tags import TAG_MASKS, TAG_VIOLATIONS, mask_tag
from tb_pastnet.reader import notes, store
from tb_pastnet.reader.series_source import ALL
from tb_pastnet.reader.store import Store
from tests.masks_in_force import MasksInForce, masks_in_force
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

W = "conv1/kernel"
SIZE = 36
TAGS = sorted([TAG_MASKS, TAG_VIOLATIONS])
RNG = np.random.default_rng(2)
KEPT = [RNG.random(SIZE) < share for share in (0.9, 0.5, 0.5)]


@pytest.fixture
def provider() -> MemoryProvider:
    return MemoryProvider()


def masked(provider: MemoryProvider) -> MemoryWriter:
    writer = memory_run(provider, "a", range(1, 17))
    writer.masks(0, {("kept", W): np.ones(SIZE, bool), ("trainable", W): np.ones(SIZE, bool)})
    for step, mask in zip((4, 8, 8), KEPT, strict=True):
        writer.masks(step, {("kept", W): mask})
    return writer


def in_force(here: Store, step: int, variable: str = W) -> MasksInForce:
    return masks_in_force(here.reader(CALLER, here.catalog(CALLER).runs["a"]), variable, step)


def test_the_index_reads_no_masks(provider: MemoryProvider) -> None:
    masked(provider)
    Store(provider, fresh_for=0).catalog(CALLER)
    assert not [tags for _, tags, _ in provider.reads if set(tags) & set(TAGS)]


def test_a_run_without_masks_costs_no_call(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    count = len(provider.reads)
    found = here.reader(CALLER, run).masks
    assert found.count(W, "kept", SIZE, np.array([1, 16])).tolist() == [0, 0]
    assert found.sure(W, SIZE)
    assert len(provider.reads) == count


def test_all_lineages_are_read_in_one_call_and_once(provider: MemoryProvider) -> None:
    writer = masked(provider)
    other = memory_run(provider, "a", range(17, 20), ordinal=2, lineage=5)
    other.masks(16, {("kept", W): KEPT[0]})
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    count = len(provider.reads)
    assert here.reader(CALLER, run).masks
    assert provider.reads[count:] == [(sorted([writer.tb_run, other.tb_run]), TAGS, ALL)]
    other.records(range(20, 30))
    assert here.reader(CALLER, here.catalog(CALLER).runs["a"]).masks
    assert [tags for _, tags, _ in provider.reads[count:]].count(TAGS) == 1
    other.masks(29, {("kept", W): KEPT[1]})
    assert here.reader(CALLER, here.catalog(CALLER).runs["a"]).masks
    assert provider.reads[-1] == ([other.tb_run], TAGS, ALL)


def test_without_room_everything_is_still_answered(provider: MemoryProvider) -> None:
    masked(provider).violations(4, [Violation(W, 0, 4, 4, 1, 2, 0.5, "ema")])
    here = Store(provider, ceiling=0, fresh_for=0)
    for _ in range(2):
        found = here.reader(CALLER, here.catalog(CALLER).runs["a"]).masks
        assert (len(found.events(W)), len(found.violations[W])) == (3, 1)


@pytest.mark.parametrize("tag", TAGS)
def test_what_was_withheld_is_noted_and_asked_for_again(provider: MemoryProvider, tag: str) -> None:
    writer = masked(provider)
    writer.violations(4, [Violation(W, 0, 4, 4, 1, 2, 0.5, "ema")])
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    provider.broken = {f"{writer.tb_run}/{tag}"}
    found = here.reader(CALLER, run).masks
    assert found.notes == {notes.WITHHELD: 1}
    assert np.isnan(found.count(W, "kept", SIZE, np.array([5]))[0]) == (tag == TAG_MASKS)
    assert (W in found.violations) == (tag == TAG_MASKS)
    provider.broken = set()
    found = here.reader(CALLER, run).masks
    assert not found.notes
    assert (len(found.events(W)), len(found.violations[W])) == (3, 1)


def test_a_log_that_is_listed_and_comes_back_empty_leaves_all_unknown(
    provider: MemoryProvider,
) -> None:
    writer = masked(provider)
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    del provider.tree[writer.tb_run][TAG_MASKS]
    assert np.isnan(here.reader(CALLER, run).masks.count(W, "kept", SIZE, np.array([5]))).all()
    assert in_force(Store(provider, fresh_for=0), 5).unknown == ("kept", "trainable")


def test_nothing_is_held_before_the_first_step(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17)).masks(0, {("kept", W): KEPT[0]})
    here = Store(provider, fresh_for=0)
    assert in_force(here, -1) == (None, None, ())
    assert in_force(here, 0).kept is not None


def test_the_bits_in_force_are_those_of_the_last_change(provider: MemoryProvider) -> None:
    masked(provider)
    here = Store(provider, fresh_for=0)
    for step, right in ((0, None), (3, None), (4, KEPT[0]), (7, KEPT[0]), (8, KEPT[2])):
        found = in_force(here, step)
        assert (found.trainable, found.unknown) == (None, ())
        if right is None:
            assert found.kept is None
        else:
            assert found.kept is not None
            assert found.kept.dtype == np.bool_
            np.testing.assert_array_equal(found.kept, right)


def test_where_all_is_through_no_bits_are_read(provider: MemoryProvider) -> None:
    masked(provider)
    here = Store(provider, fresh_for=0)
    in_force(here, 3)
    count = len(provider.reads)
    for step, variable in ((3, W), (9, "conv1/bias"), (9, "block/conv2/kernel")):
        found = in_force(here, step, variable)
        assert (found.kept, found.trainable, found.unknown) == (None, None, ())
    assert len(provider.reads) == count


def test_after_a_restart_the_bits_are_those_of_the_later_lineage(provider: MemoryProvider) -> None:
    masked(provider)
    other = memory_run(provider, "a", range(10, 20), ordinal=2, lineage=5, first_step=10)
    frozen = ~KEPT[1]
    other.masks(9, {("trainable", W): frozen})
    here = Store(provider, fresh_for=0)
    before, after = in_force(here, 9), in_force(here, 10)
    np.testing.assert_array_equal(before.kept, KEPT[2])
    assert (before.trainable, after.kept) == (None, None)
    np.testing.assert_array_equal(after.trainable, frozen)


@pytest.mark.parametrize("how", ["flip", "gone", "other"])
def test_bits_that_cant_be_read_are_unknown(provider: MemoryProvider, how: str) -> None:
    writer = masked(provider)
    tag = mask_tag("kept", W)
    events = provider.tree[writer.tb_run][tag]
    if how == "flip":
        step, wall, array, content = events[1]
        array = array.copy()
        array[-1] ^= 1
        events[1] = (step, wall, array, content)
    elif how == "gone":
        del events[1]
    else:
        events[1] = (events[1][0], 0.0, "no bytes", b"")
    here = Store(provider, fresh_for=0)
    found = in_force(here, 5)
    assert (found.kept, found.unknown) == (None, ("kept",))
    np.testing.assert_array_equal(in_force(here, 9).kept, KEPT[2])


def test_behind_a_gap_of_the_log_the_bits_are_unknown(provider: MemoryProvider) -> None:
    writer = masked(provider)
    del provider.tree[writer.tb_run][TAG_MASKS][1]
    here = Store(provider, fresh_for=0)
    assert in_force(here, 5).unknown == ("kept", "trainable")
    found = in_force(here, 9)
    assert found.unknown == ("trainable",)
    np.testing.assert_array_equal(found.kept, KEPT[2])


def test_a_mask_of_another_shape_is_unknown(provider: MemoryProvider) -> None:
    writer = masked(provider)
    writer.masks(12, {("kept", W): np.zeros(SIZE + 1, bool)})
    assert in_force(Store(provider, fresh_for=0), 12).unknown == ("kept",)


def test_a_mask_that_is_too_large_to_unpack_is_unknown(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked(provider)
    monkeypatch.setattr(store, "MOST_ELEMENTS", SIZE - 1)
    assert in_force(Store(provider, fresh_for=0), 9).unknown == ("kept", "trainable")


def test_of_a_users_own_writer_nothing_is_known(provider: MemoryProvider) -> None:
    from tb_pastnet.format.block import Block, encode_block
    from tb_pastnet.format.description import Series, encode_series
    from tests import event_files as files

    at = np.array([1])
    data = encode_block(Block(at, at, at, files.codes([1], 3)), tag="w", lineage=0)
    provider.add("a", "w", 1, data, encode_series(Series((2, 3), "-1", 3)))
    assert in_force(Store(provider, fresh_for=0), 1, "w").unknown == ("kept", "trainable")
