"""Masks and violations of a run that was restarted."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.violation import Violation
from tb_pastnet.reader import notes
from tb_pastnet.reader.mask_history import MaskEvent, MaskHistory
from tb_pastnet.reader.store import Store
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

W = "conv1/kernel"
SIZE = 36


def keep(holes: int) -> dict[tuple[str, str], np.ndarray]:
    return {("kept", W): np.arange(SIZE) >= holes}


def restarted(provider: MemoryProvider) -> tuple[MemoryWriter, MemoryWriter]:
    """Steps 1 to 100 with masks; again from 80 on, from a checkpoint."""
    one = memory_run(provider, "a", range(1, 101), ordinal=1, lineage=9)
    one.masks(10, keep(4))
    one.masks(85, keep(8))
    two = memory_run(provider, "a", range(80, 121), ordinal=2, lineage=4, first_step=80)
    return one, two


def held(provider: MemoryProvider) -> MaskHistory:
    store = Store(provider, fresh_for=0)
    return store.reader(CALLER, store.catalog(CALLER).runs["a"]).masks


def counts(found: MaskHistory, *steps: int, mask: str = "kept") -> list[float]:
    return found.count(W, mask, SIZE, np.array(steps)).tolist()


def test_from_its_start_on_the_later_lineage_tells() -> None:
    provider = MemoryProvider()
    _, two = restarted(provider)
    two.masks(79, keep(4))
    two.masks(100, keep(20))
    found = held(provider)
    assert counts(found, 9, 10, 79, 80, 85, 99, 100, 120) == [0, 4, 4, 4, 4, 4, 20, 20]
    assert found.events(W) == [MaskEvent(10, "kept", 32, SIZE), MaskEvent(100, "kept", 16, SIZE)]


def test_masks_that_came_back_otherwise_are_an_event() -> None:
    provider = MemoryProvider()
    _, two = restarted(provider)
    two.masks(80, keep(5))
    found = held(provider)
    assert counts(found, 79, 80, 120) == [4, 5, 5]
    assert [one.step for one in found.events(W)] == [10, 80]


@pytest.mark.parametrize("earlier", [True, False])
def test_the_later_lineage_tells_whether_held_weights_were_audited(earlier: bool) -> None:
    provider = MemoryProvider()
    one, two = restarted(provider)
    one.describe(0, audited=earlier)
    two.describe(80, audited=not earlier)
    assert held(provider).audited is not earlier


def test_a_lineage_that_lost_its_masks_has_none() -> None:
    provider = MemoryProvider()
    restarted(provider)
    found = held(provider)
    assert counts(found, 79, 80, 85, 120) == [4, 0, 0, 0]
    assert counts(found, 79, mask="trainable") == [0]


def test_a_full_mask_at_the_beginning_is_no_event_and_a_later_one_always_is() -> None:
    provider = MemoryProvider()
    one = memory_run(provider, "a", range(1, 41))
    one.masks(0, keep(0))
    one.masks(10, keep(6))
    one.masks(20, {("kept", W): np.arange(SIZE) < SIZE - 6})  # as many, but others
    assert [event.step for event in held(provider).events(W)] == [10, 20]


def test_a_lineage_inside_another_takes_all_from_its_start_on() -> None:
    provider = MemoryProvider()
    _, two = restarted(provider)
    two.masks(79, keep(4))
    three = memory_run(provider, "a", range(50, 61), ordinal=3, lineage=1, first_step=50)
    three.masks(49, keep(7))
    found = held(provider)
    assert counts(found, 49, 50, 79, 80, 110) == [4, 7, 7, 7, 7]
    assert [event.step for event in found.events(W)] == [10, 49]


def test_a_log_that_is_gone_while_its_masks_are_there_leaves_all_unknown() -> None:
    provider = MemoryProvider()
    one, _ = restarted(provider)
    del provider.tree[one.tb_run]["masks"]
    found = held(provider)
    assert np.isnan(counts(found, 1, 79)).all()
    assert counts(found, 80) == [0]
    assert not found.sure(W, SIZE)


def test_a_run_of_which_the_timeline_is_lost_is_cut_by_what_is_described() -> None:
    provider = MemoryProvider()
    _, two = restarted(provider)
    two.masks(79, keep(5))
    two.describe(120)
    del provider.tree[two.tb_run]["timeline"]
    provider.tree[two.tb_run]["description"].pop(0)
    assert counts(held(provider), 79, 80) == [4, 5]


@pytest.mark.promise("supersession")
def test_violations_are_superseded_as_records_are() -> None:
    provider = MemoryProvider()
    one, two = restarted(provider)
    two.masks(79, keep(4))
    before, over, after, again = (
        Violation(W, channel, first, last, 1, 4, 0.5, "loaded")
        for channel, first, last in ((0, 20, 40), (1, 70, 100), (2, 80, 90), (3, 95, 95))
    )
    one.violations(100, [before, over, after])
    two.violations(95, [again])
    found = held(provider)
    assert [(v.channel, v.first_step, v.last_step) for v in found.violations[W]] == [
        (0, 20, 40),
        (1, 70, 79),
        (3, 95, 95),
    ]


def test_channels_that_the_network_doesnt_have_are_counted() -> None:
    provider = MemoryProvider()
    one, _ = restarted(provider)
    one.violations(20, [Violation(W, 4, 20, 20, 1, 4, 0.5, "loaded")])
    found = held(provider)
    assert found.violations == {}
    assert found.notes == {notes.VIOLATIONS_ELSEWHERE: 1}


def test_nothing_of_a_run_without_lineages_is_known() -> None:
    assert np.isnan(counts(MaskHistory(), 1, 2)).all()
    assert MaskHistory().events(W) == []
    assert not MaskHistory().sure(W, SIZE)
