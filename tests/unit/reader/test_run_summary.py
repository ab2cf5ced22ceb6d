"""What is kept of a run for every threshold."""

from __future__ import annotations

import pytest
from tensorboard import errors

from tb_pastnet.format.tags import channels_tag
from tb_pastnet.reader import notes
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.run_summary import RunSummary, summary_of, tallies_of
from tb_pastnet.reader.store import Store
from tests.providers import CALLER, MemoryProvider, memory_run

LAYERS = {f"layer{at}": 50 for at in range(12)}


@pytest.fixture
def provider() -> MemoryProvider:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 101), layers=LAYERS)
    return provider


def test_another_threshold_reads_nothing_where_no_records_fit_into_the_cache() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 101), layers=dict.fromkeys(LAYERS, 200))
    records = 100 * 200 * len(LAYERS) * 3  # bytes of their states and relative deltas
    # Three fifths are for records.
    store = Store(provider, ceiling=records * 3 // 2, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    first = figures_of(store.reader(CALLER, run), 1e-4)
    count = len(provider.reads)
    settled = [
        int(figures.states.counts[:, :, 3].sum())
        for figures in (first, *(figures_of(store.reader(CALLER, run), th) for th in (0.07, 1.0)))
    ]
    assert settled[0] == 0
    assert settled[0] < settled[1] < settled[2]
    assert len(provider.reads) == count


def test_it_is_made_anew_when_the_run_grew() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    store = Store(provider, fresh_for=0)

    def of() -> RunSummary:
        return summary_of(store.reader(CALLER, store.catalog(CALLER).runs["a"]))

    assert of() is of()
    assert of().steps.tolist() == list(range(1, 33))
    writer.records(range(33, 65))
    assert of().steps.tolist() == list(range(1, 65))


def test_places_tell_the_record_of_each_layer_at_each_step() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    del provider.tree[writer.tb_run]["channels/block/conv2/kernel"][0]
    store = Store(provider)
    reader = store.reader(CALLER, store.catalog(CALLER).runs["a"])
    found = summary_of(reader)
    assert [one.tolist() for one in found.rows] == [
        list(range(32)),
        [-1] * 16 + list(range(16)),
    ]
    assert [tally.records for tally in tallies_of(reader).layers] == [32, 16]


def test_every_variable_is_read_once(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    before = len(provider.reads)
    summary_of(store.reader(CALLER, run))
    asked = [tag for _, tags, _ in provider.reads[before:] for tag in tags]
    assert sorted(asked) == sorted(channels_tag(f"{layer}/kernel") for layer in LAYERS)


def test_what_was_withheld_is_asked_for_again(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    (tb_run,) = run.tb_runs
    provider.broken = {f"{tb_run}/{channels_tag('layer3/kernel')}"}
    broken = summary_of(store.reader(CALLER, run))
    assert broken.notes == {notes.WITHHELD: 1}
    provider.broken = set()
    whole = summary_of(store.reader(CALLER, run))
    assert not whole.notes
    tally = tallies_of(store.reader(CALLER, run)).layers[3]
    assert tally.counts(1e-4).counts[:, 1].sum() > 0


def test_the_size_of_tallies_is_what_they_hold(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    found = tallies_of(store.reader(CALLER, store.catalog(CALLER).runs["a"]))
    held = sum(len(one.packed) + len(one.still) for one in found.layers)
    assert held < found.size < 2 * held + 4096 * len(LAYERS)


def test_figures_stay_at_hand_where_the_tallies_of_no_run_fit() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 301), layers=dict.fromkeys(LAYERS, 200))
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    tallies = tallies_of(store.reader(CALLER, run)).size
    store = Store(provider, ceiling=tallies, fresh_for=0)  # three fifths are for what is large
    first = figures_of(store.reader(CALLER, run), 1e-4)
    count = len(provider.reads)
    second = figures_of(store.reader(CALLER, run), 1e-4)
    assert len(provider.reads) == count
    assert (first.states.counts == second.states.counts).all()
    assert store.small.held < tallies / 5


def test_a_refusal_of_tensorboard_reaches_the_caller(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]

    def refuse(*_: object, **__: object) -> None:
        raise errors.PermissionDeniedError("no")

    with monkeypatch.context() as patch:
        patch.setattr(provider, "read_tensors", refuse)
        with pytest.raises(errors.PermissionDeniedError):
            summary_of(store.reader(CALLER, run))
    assert len(summary_of(store.reader(CALLER, run)).steps) == 100
