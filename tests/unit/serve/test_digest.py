"""What is kept of a run for every threshold."""

from __future__ import annotations

import numpy as np
import pytest
from tensorboard import errors

from tb_pastnet.core import planes
from tb_pastnet.core.names import channels_tag
from tb_pastnet.core.planes import inflate
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.store import Store
from tb_pastnet.serve.views import digest
from tb_pastnet.serve.views.overview import make_overview
from tests.providers import CALLER, MemoryProvider, memory_run

LAYERS = {f"layer{at}": 50 for at in range(12)}


@pytest.fixture
def provider() -> MemoryProvider:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 101), layers=LAYERS)
    return provider


def test_another_threshold_reads_nothing_where_no_records_fit_into_the_cache(
    provider: MemoryProvider,
) -> None:
    records = 100 * 50 * len(LAYERS) * 3  # bytes of their states and relative deltas
    store = Store(provider, ceiling=records // 3, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    first = make_overview(store, CALLER, run, 1e-4, digest.Part(16))
    count = len(provider.reads)
    settled = [
        sum(int(row.counts[:, 3].sum()) for row in overview.rows)
        for overview in (
            first,
            *(make_overview(store, CALLER, run, th, digest.Part(16)) for th in (0.07, 1.0)),
        )
    ]
    assert settled[0] == 0
    assert settled[0] < settled[1] < settled[2]
    assert len(provider.reads) == count


def test_it_is_made_anew_for_other_columns_and_when_the_run_grew() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    store = Store(provider, fresh_for=0)

    def of(most: int | None) -> digest.Digest:
        return digest.digest_of(store, CALLER, store.catalog(CALLER).runs["a"], digest.Part(most))

    assert of(8) is of(8)
    assert (len(of(8).steps), len(of(4).steps), len(of(None).steps)) == (8, 4, 32)
    writer.records(range(33, 65))
    assert of(8).steps[-1] == 64


def test_every_variable_is_read_once(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    before = len(provider.reads)
    digest.digest_of(store, CALLER, run, digest.Part(16))
    asked = [tag for _, tags, _ in provider.reads[before:] for tag in tags]
    assert sorted(asked) == sorted(channels_tag(f"{layer}/kernel") for layer in LAYERS)


def test_what_was_withheld_is_asked_for_again(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    (tb_run,) = run.tb_runs
    provider.broken = {f"{tb_run}/{channels_tag('layer3/kernel')}"}
    broken = digest.digest_of(store, CALLER, run, digest.Part(16))
    assert broken.notes == {notes.WITHHELD: 1}
    provider.broken = set()
    whole = digest.digest_of(store, CALLER, run, digest.Part(16))
    assert not whole.notes
    assert whole.tallies[3].row(1e-4).counts[:, 1].sum() > 0


def test_its_size_is_what_it_holds(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    found = digest.digest_of(store, CALLER, store.catalog(CALLER).runs["a"], digest.Part(16))
    held = sum(len(one.packed) + len(one.still) for one in found.tallies)
    assert held < found.size < 2 * held + 4096 * len(LAYERS)


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
            digest.digest_of(store, CALLER, run, digest.Part(16))
    assert len(digest.digest_of(store, CALLER, run, digest.Part(16)).steps) == 16


def inflated(
    monkeypatch: pytest.MonkeyPatch, provider: MemoryProvider, part: digest.Part
) -> tuple[int, digest.Digest]:
    """How many planes a digest inflates, and that digest."""
    store, count = Store(provider, fresh_for=0), iter(range(1 << 20))
    run = store.catalog(CALLER).runs["a"]

    def counted(data: bytes, size: int) -> bytes:
        next(count)
        return inflate(data, size)

    with monkeypatch.context() as patch:
        patch.setattr(planes, "inflate", counted)
        found = digest.digest_of(store, CALLER, run, part)
    return next(count), found


def test_of_the_latest_records_only_so_much_is_read_as_tells_their_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 161), layers=LAYERS)
    writer.describe(160, audited=True)
    everything, whole = inflated(monkeypatch, provider, digest.Part())
    of_one = everything // len(LAYERS)
    some, late = inflated(monkeypatch, provider, digest.Part(latest=3))
    # The first layer tells which records are the latest; of the others 1 block in 10 is enough.
    assert some - of_one < everything / 9
    _, same = inflated(monkeypatch, provider, digest.Part(first=158))
    for found in (late, same):
        assert found.steps.tolist()[-3:] == [158, 159, 160]
        for one, other in zip(found.tallies, whole.tallies, strict=True):
            rows = one.row(0.05), other.row(0.05)
            for name in ("counts", "violated", "nonfinite", "mean_delta"):
                mine, right = (getattr(row, name) for row in rows)
                np.testing.assert_array_equal(mine[-3:], right[-3:], name)
        assert found.accounts == whole.accounts
    # Where the last blocks of a layer are gone, those before them tell.
    del provider.tree[writer.tb_run][channels_tag("layer5/kernel")][-1]
    more, _ = inflated(monkeypatch, provider, digest.Part(latest=3))
    assert of_one / 2 < more - some < 2 * of_one
