"""What is read of a probe, when, and how often."""

from __future__ import annotations

import csv

import pytest

from tb_pastnet.format.function_change import MEASURES
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader import function_series as function
from tb_pastnet.reader import notes
from tb_pastnet.reader.function_series import Function, FunctionSeries
from tb_pastnet.reader.series_source import ALL
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.tables import csv_pieces
from tests import probed
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run


@pytest.fixture
def provider() -> MemoryProvider:
    return MemoryProvider()


def with_probe(provider: MemoryProvider) -> MemoryWriter:
    writer = memory_run(provider, "a", range(1, 17))
    probed.written(writer, range(1, 17))
    return writer


def look(here: Store) -> FunctionSeries:
    return here.reader(CALLER, here.catalog(CALLER).runs["a"]).function()


def asked(provider: MemoryProvider) -> list[tuple[list[str], int]]:
    return [(runs, most) for runs, tags, most in provider.reads if tags == [TAG_FUNCTION]]


def test_the_index_reads_no_probe_and_knows_of_it(provider: MemoryProvider) -> None:
    with_probe(provider)
    memory_run(provider, "b", range(1, 17), lineage=5)
    runs = Store(provider, fresh_for=0).catalog(CALLER).runs
    assert (runs["a"].probed, runs["b"].probed) == (True, False)
    assert not [tags for _, tags, _ in provider.reads if TAG_FUNCTION in tags]


def test_a_run_without_a_probe_costs_no_call(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(1, 17))
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    count = len(provider.reads)
    assert (len(here.reader(CALLER, run).function().steps), len(provider.reads)) == (0, count)


def test_all_lineages_are_read_in_one_call_and_again_where_there_is_more(
    provider: MemoryProvider,
) -> None:
    one = with_probe(provider)
    two = memory_run(provider, "a", range(17, 20), ordinal=2, lineage=5, first_step=17)
    probed.written(two, range(17, 20))
    memory_run(provider, "a", range(20, 22), ordinal=3, lineage=6, first_step=20)
    here = Store(provider, fresh_for=0)
    assert look(here) is look(here)
    both = sorted([one.tb_run, two.tb_run])
    assert asked(provider) == [(both, ALL)]
    two.violations(18, [])
    assert len(look(here).steps) == 19
    assert asked(provider) == [(both, ALL)]
    probed.write(two, probed.change([20], 3))
    look(here)
    assert asked(provider) == [(both, ALL)] * 2


@pytest.mark.promise("supersession")
def test_a_restart_that_supersedes_the_probe_is_noticed(provider: MemoryProvider) -> None:
    with_probe(provider)
    here = Store(provider, fresh_for=0)
    assert len(look(here).steps) == 16
    memory_run(provider, "a", range(9, 12), ordinal=2, lineage=5, first_step=9)
    assert look(here).steps.tolist() == list(range(1, 9))


def test_without_room_everything_is_still_answered(provider: MemoryProvider) -> None:
    with_probe(provider)
    here = Store(provider, ceiling=0, fresh_for=0)
    assert [len(look(here).steps) for _ in range(2)] == [16, 16]


def test_what_was_withheld_is_noted_and_asked_for_again(provider: MemoryProvider) -> None:
    writer = with_probe(provider)
    other = memory_run(provider, "a", range(17, 20), ordinal=2, lineage=5, first_step=17)
    probed.written(other, range(17, 20))
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    provider.broken = {f"{writer.tb_run}/{TAG_FUNCTION}"}
    found = here.reader(CALLER, run).function()
    assert (found.notes, found.steps.tolist()) == ({notes.WITHHELD: 1}, [17, 18, 19])
    provider.broken = set()
    found = here.reader(CALLER, run).function()
    assert (found.notes, len(found.steps)) == ({}, 19)


def test_a_probe_that_is_listed_and_comes_back_empty_was_withheld(
    provider: MemoryProvider,
) -> None:
    writer = with_probe(provider)
    here = Store(provider, fresh_for=0)
    run = here.catalog(CALLER).runs["a"]
    del provider.tree[writer.tb_run][TAG_FUNCTION]
    assert here.reader(CALLER, run).function().notes == {notes.WITHHELD: 1}


def test_of_a_very_large_probe_a_part_is_read(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = memory_run(provider, "a", range(1, 161))
    probed.written(writer, range(1, 161))
    # 160 records of two layers and an output; two messages of 16 hold 96 cells.
    monkeypatch.setattr(function, "MOST_CELLS", 60)
    found = look(Store(provider, fresh_for=0))
    assert asked(provider) == [([writer.tb_run], 2)]
    assert 0 < len(found.steps) * len(found.places) <= 60
    assert found.notes[notes.FUNCTION_TOO_MANY] > 0


def test_lines_of_csv_hold_what_float32_holds(provider: MemoryProvider) -> None:
    probed.written(memory_run(provider, "a", range(1, 17)), range(1, 17))
    columns = Function(look(Store(provider, fresh_for=0))).columns()
    head, *lines = csv.reader("".join(csv_pieces([columns], ".7g")).splitlines())
    assert head == ["step", "past_step", "kind", "place", *MEASURES]
    assert len(lines) == 16 * 3
    assert lines[5] == ["2", "1", "output", "classes", "0.75", "0.9166667", "0.5625", "0.007575758"]
    assert lines[0] == ["1", "0", "layer", "conv1", "0.3333333", "0.962963", "", ""]
