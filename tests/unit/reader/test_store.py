from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.format.tags import (
    DESCRIPTIONS,
    TAG_COMPARED,
    TAG_DESCRIPTION,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    channels_tag,
)
from tb_pastnet.reader import notes, store
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.run_findings import findings_of
from tb_pastnet.reader.series_source import ALL, RequestContext
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run


@pytest.fixture
def provider() -> MemoryProvider:
    return MemoryProvider()


def test_where_nothing_is_new_nothing_is_read(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    first, second = here.catalog(CALLER), here.catalog(CALLER)
    assert (provider.lists, len(provider.reads)) == (3, 1)  # one of them of everything
    assert first.runs["a"].version == second.runs["a"].version


def test_one_listing_serves_all_the_requests_of_a_page(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=3600)
    assert here.catalog(CALLER) is here.catalog(CALLER)
    assert provider.lists == 2


def test_all_new_runs_are_read_in_one_call_and_a_run_that_grew_alone(
    provider: MemoryProvider,
) -> None:
    writers = [memory_run(provider, run, range(1, 17), lineage=7) for run in "abc"]
    here = Store(provider, fresh_for=0)
    here.catalog(CALLER)
    assert len(provider.reads) == 1
    writers[1].records(range(17, 33))
    assert here.catalog(CALLER).runs["b"].axis.steps.tolist() == list(range(1, 33))
    head = sorted([*DESCRIPTIONS, TAG_COMPARED, TAG_OVERHEAD, TAG_TIMELINE])
    assert provider.reads[1:] == [([writers[1].tb_run], head, ALL)]


def test_a_run_that_vanished_is_forgotten(provider: MemoryProvider) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    here.catalog(CALLER)
    tree = provider.tree.pop(writer.tb_run)
    assert here.catalog(CALLER).runs == {}
    provider.tree[writer.tb_run] = tree
    assert list(here.catalog(CALLER).runs) == ["a"]


def test_many_layers_take_few_calls_and_none_is_asked_for_too_much(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = {f"layer{i}": 1 + i for i in range(30)}
    memory_run(provider, "a", range(1, 17), layers=layers)
    monkeypatch.setattr(store, "CELLS_A_CALL", 1600)
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    mains = [layer.main for layer in run.layers]
    found = list(here.reader(CALLER, run).each(mains, lambda name, made: (name, made.codes.shape)))
    assert found == [(f"{layer}/kernel", (len(STATISTICS), 16, n)) for layer, n in layers.items()]
    asked = [tags for _, tags, _ in provider.reads[1:]]
    assert sorted(tag for tags in asked for tag in tags) == sorted(
        channels_tag(one) for one in mains
    )
    width = {channels_tag(f"{name}/kernel"): n for name, n in layers.items()}
    assert all(16 * sum(width[tag] for tag in tags) <= 1600 for tags in asked)
    assert len(asked) < 10


def test_a_run_that_grew_is_read_again(provider: MemoryProvider) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    assert (
        len(here.reader(CALLER, here.catalog(CALLER).runs["a"]).state_series("conv1/kernel").steps)
        == 16
    )
    assert (
        len(here.reader(CALLER, here.catalog(CALLER).runs["a"]).series("conv1/kernel").steps) == 16
    )
    writer.records(range(17, 33))
    assert (
        len(here.reader(CALLER, here.catalog(CALLER).runs["a"]).state_series("conv1/kernel").steps)
        == 32
    )
    assert (
        len(here.reader(CALLER, here.catalog(CALLER).runs["a"]).series("conv1/kernel").steps) == 32
    )


def test_without_room_everything_is_still_answered(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, ceiling=0, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    for _ in range(2):
        found = [here.reader(CALLER, run).state_series(layer.main) for layer in run.layers]
        assert [len(moves.steps) for moves in found] == [16, 16]


@pytest.mark.parametrize(
    "tag", [channels_tag("conv1/kernel"), TAG_TIMELINE, TAG_DESCRIPTION, TAG_OVERHEAD]
)
def test_what_was_withheld_is_asked_for_again(provider: MemoryProvider, tag: str) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    writer.overhead(16, Overhead(steps=16))
    here = Store(provider, fresh_for=0)
    listed = provider.list_tensors
    provider.broken = {f"{writer.tb_run}/{tag}"}
    # Listed without its values, so it is reading that fails.
    provider.list_tensors = lambda *args, **more: _unbroken(provider, listed, *args, **more)  # type: ignore[method-assign]
    run = here.catalog(CALLER).runs["a"]
    if tag == TAG_DESCRIPTION:
        assert run.layers == ()
    elif tag in (TAG_TIMELINE, TAG_OVERHEAD):
        assert run.notes[notes.WITHHELD] == 1
    else:
        assert here.reader(CALLER, run).state_series("conv1/kernel").notes == {notes.WITHHELD: 1}
    provider.broken = set()
    run = here.catalog(CALLER).runs["a"]
    assert len(here.reader(CALLER, run).state_series("conv1/kernel").steps) == 16
    assert len(run.axis.steps) == 16
    assert run.overhead == Overhead(steps=16)
    assert not run.notes


def _unbroken(provider: MemoryProvider, listed, *args, **more):
    broken, provider.broken = provider.broken, set()
    try:
        return listed(*args, **more)
    finally:
        provider.broken = broken


def test_a_very_wide_variable_is_sampled_and_the_rest_counts_as_thinned(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_run(provider, "a", range(1, 161), layers={"embedding": 100})
    monkeypatch.setattr(store, "MOST_CELLS", 2400)
    here = Store(provider, fresh_for=0)
    moves = here.reader(CALLER, here.catalog(CALLER).runs["a"]).state_series("embedding/kernel")
    assert provider.reads[-1][2] == 3
    account = moves.account
    assert (account.offered, account.shown, account.thinned) == (160, 48, 112)
    assert account.unreadable == 0


def test_experiments_dont_mix(provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    here.catalog(CALLER)
    monkeypatch.setattr("tests.providers.CALLER", RequestContext("context", "another"))
    other = RequestContext("context", "another")
    assert list(here.catalog(other).runs) == ["a"]
    assert len(provider.reads) == 2


def test_blocks_of_a_lineage_that_isnt_described_are_not_looked_for(
    provider: MemoryProvider,
) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    at = np.array([1])
    block = Block(at, at, at, files.codes([1], 3))
    tag = channels_tag("stranger")
    data = encode_block(block, tag=tag, lineage=writer.lineage)
    provider.add(writer.tb_run, tag, 1, data)
    run = Store(provider, fresh_for=0).catalog(CALLER).runs["a"]
    assert "stranger" not in run.bundles


def test_records_of_a_log_without_audit_are_read_once_for_figures_findings_and_violations(
    provider: MemoryProvider,
) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    reader = here.reader(CALLER, here.catalog(CALLER).runs["a"])
    assert not reader.masks.audited
    figures_of(reader, 0.001)
    findings_of([reader])
    assert reader.violations == ()
    stored = [channels_tag(name) for name in reader.run.variables]
    read = [tag for _, tags, _ in provider.reads for tag in tags if tag in stored]
    assert sorted(read) == sorted(tag for tag in stored if tag in provider.tree[writer.tb_run])
