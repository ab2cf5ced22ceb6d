"""Only runs in which something was written are listed in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.format.tags import TAG_TIMELINE
from tb_pastnet.reader import notes
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run


class Watched(MemoryProvider):
    """Remembers of which runs all series were listed; None is all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[list[str] | None] = []

    def list_tensors(self, *args: Any, run_tag_filter: Any, **more: Any) -> Any:
        if run_tag_filter.tags is None:
            runs = run_tag_filter.runs
            self.listed.append(None if runs is None else sorted(runs))
        return super().list_tensors(*args, run_tag_filter=run_tag_filter, **more)


@pytest.fixture
def provider() -> Watched:
    return Watched()


def test_a_run_that_stands_still_is_listed_once_and_one_that_grew_again(provider: Watched) -> None:
    first, _ = (memory_run(provider, run, range(1, 17)) for run in "ab")
    here = Store(provider, fresh_for=0)
    versions = [here.catalog(CALLER).runs["a"].version for _ in range(3)]
    assert versions[0] == versions[1] == versions[2]
    assert provider.listed == [None]
    first.records(range(17, 33))
    runs = here.catalog(CALLER).runs
    assert provider.listed == [None, [first.tb_run]]
    assert runs["a"].version != versions[0]
    assert (len(runs["a"].axis.steps), len(runs["b"].axis.steps)) == (32, 16)


def test_masks_that_changed_without_a_record_are_seen(provider: Watched) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    before = here.catalog(CALLER).runs["a"].version
    kept = np.zeros(36, bool)
    writer.masks(16, {("kept", "conv1/kernel"): kept})
    assert here.catalog(CALLER).runs["a"].version != before


def test_what_is_written_while_all_is_listed_shows_the_next_time(provider: Watched) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    here.catalog(CALLER)
    listed = provider.list_tensors

    def write_behind(*args: Any, run_tag_filter: Any, **more: Any) -> Any:
        found = listed(*args, run_tag_filter=run_tag_filter, **more)
        if run_tag_filter.tags is None:
            provider.list_tensors = listed  # type: ignore[method-assign]
            writer.records(range(33, 49))
        return found

    writer.records(range(17, 33))
    provider.list_tensors = write_behind  # type: ignore[method-assign]
    here.catalog(CALLER)
    assert here.catalog(CALLER).runs["a"].axis.steps[-1] == 48


def test_runs_come_and_go(provider: Watched) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    here.catalog(CALLER)
    memory_run(provider, "b", range(1, 17))
    assert list(here.catalog(CALLER).runs) == ["a", "b"]
    del provider.tree[writer.tb_run]
    assert list(here.catalog(CALLER).runs) == ["b"]


def test_runs_without_a_timeline_are_listed_each_time(provider: Watched) -> None:
    writer = memory_run(provider, "a", range(1, 17))
    del provider.tree[writer.tb_run][TAG_TIMELINE]
    content = encode_series(Series((3, 3, 1, 4), "-1", 4))
    provider.add("mine", "channels/w", 1, b"not ours", content)
    here = Store(provider, fresh_for=0)
    for _ in range(3):
        here.catalog(CALLER)
    everything = sorted(["mine", writer.tb_run])
    assert provider.listed == [None, everything, everything]
    writer.records(range(17, 33), {"conv1/kernel": files.codes(range(17, 33), 4)})
    assert here.catalog(CALLER).runs["a"].axis.steps.tolist() == list(range(17, 33))


def test_what_stands_under_our_name_and_isnt_ours_is_counted(provider: Watched) -> None:
    memory_run(provider, "a", range(1, 3))
    assert Store(provider).catalog(CALLER).warnings == ()
    for tag in ("one", "other"):
        provider.add("theirs", tag, 1, b"not ours", b"not ours")
    foreign = f"{notes.FOREIGN}: 2 series"
    assert Store(provider).catalog(CALLER).warnings == (foreign,)
    provider.add("inside", TAG_TIMELINE, 1, b"")  # as if the log directory were a run's own
    assert Store(provider).catalog(CALLER).warnings == (notes.INSIDE, foreign)
