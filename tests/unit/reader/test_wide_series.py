"""Records of several variables side by side are those of each variable by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core import channel_states
from tb_pastnet.core.channel_states import lasting, lasting_each
from tb_pastnet.core.quantize import NAN, ZERO
from tb_pastnet.reader import wide_series
from tb_pastnet.reader.state_series import AUDITED_ROWS, make_wide_states
from tb_pastnet.reader.store import RunReader, Store
from tb_pastnet.reader.wide_series import WideSeries
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run

LAYERS = {
    "one": 1,
    "seven": 7,
    "eight": 8,
    "also8": 8,
    "wide": 129,
    "late": 8,
    "torn": 8,
    "gone": 3,
}


@pytest.fixture
def reader() -> RunReader:
    """A run with two lineages; of some variables blocks are missing or damaged."""
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 41), layers=LAYERS)
    second = memory_run(provider, "a", range(30, 71), layers=LAYERS, ordinal=2, lineage=9)
    tags = provider.tree[second.tb_run]
    del tags["channels/late/kernel"][0]
    del tags["channels/gone/kernel"]
    blocks = tags["channels/torn/kernel"]
    step, wall_time, data, content = blocks[1]
    blocks[1] = step, wall_time, data[:-1], content
    store = Store(provider)
    return store.reader(CALLER, store.catalog(CALLER).runs["a"])


def read(reader: RunReader) -> list[WideSeries]:
    return list(reader.each_wide(list(reader.run.variables), lambda wide: wide))


def test_each_variable_is_in_one_of_them_as_it_is_alone(reader: RunReader) -> None:
    series = read(reader)
    names = [name for wide in series for name in wide.variables]
    assert sorted(names) == sorted(reader.run.variables)
    for wide in series:
        for number, name in enumerate(wide.variables):
            assert_same(wide.of(number), reader.series(name))


def assert_same(found: Any, expected: Any) -> None:
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, field.name)
        else:
            assert one == other, field.name


def test_variables_with_the_same_steps_are_together(reader: RunReader) -> None:
    together = {frozenset(wide.variables) for wide in read(reader)}
    kernels = {f"{name}/kernel" for name in ("one", "seven", "eight", "also8", "wide")}
    assert any(kernels <= group for group in together)
    assert {frozenset({f"{name}/kernel"}) for name in ("late", "torn", "gone")} <= together


@pytest.mark.parametrize("name", ["TOGETHER", "_SMALL"])
def test_limits_on_memory_change_nothing(
    reader: RunReader, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_series, name, 500)
    for wide in read(reader):
        for number, variable in enumerate(wide.variables):
            assert_same(wide.of(number), reader.series(variable))


@pytest.mark.parametrize("is_audited", [False, True])
def test_states_are_those_of_each_variable(reader: RunReader, is_audited: bool) -> None:
    for wide in read(reader):
        files.freeze(wide.records.codes, slice(9, 20), slice(0, 2))
        files.prune(wide.records.codes, slice(15, None), slice(2, 4))
        variables = [reader.run.variables[name] for name in wide.variables]
        commanded = [None if is_audited else np.array([number]) for number in range(len(variables))]
        states = make_wide_states(wide, variables, commanded)
        for number, name in enumerate(wide.variables):
            own = slice(*wide.edges[number : number + 2])
            edges = wide.edges[number : number + 2] - own.start
            single = replace(wide, variables=(name,), edges=edges, records=wide.of(number))
            alone = make_wide_states(single, [variables[number]], [commanded[number]])
            np.testing.assert_array_equal(states.before_quiet[:, own], alone.before_quiet)
            np.testing.assert_array_equal(states.delta[:, own], alone.delta)
            np.testing.assert_array_equal(states.pruned[number], alone.pruned[0])
            np.testing.assert_array_equal(states.partial[number], alone.partial[0])
            marks = states.marks[number], alone.marks[0]
            assert marks[0].channels.tolist() == marks[1].channels.tolist()
            assert bool(len(marks[0].channels)) <= (not is_audited)


def test_accounts_are_those_of_the_variables(reader: RunReader) -> None:
    alone = {name: reader.series(name).account for name in reader.run.variables}
    assert reader.accounts() == alone
    assert list(reader.accounts()) == list(reader.run.variables)
    # A cut block is damaged, whatever is needed of it.
    assert reader.accounts(AUDITED_ROWS) == alone


def test_since_when_something_holds_is_found_for_all_groups_as_for_one() -> None:
    rng = np.random.default_rng(5)
    steps = np.arange(30) * 10
    edges = np.array([0, 1, 8, 16, 25, 90])
    for share in (0.02, 0.5, 0.97):
        flags = rng.random((30, 90)) < share
        flags[20:, 16:20] = True
        each = lasting_each(flags, steps, edges)
        assert each == [lasting(flags[:, first:last], steps) for first, last in pairwise(edges)]
    assert lasting_each(flags[:0], steps[:0], edges) == [None] * 5


@pytest.mark.parametrize("records", [1, 2, 19, 20, 40])
def test_unchanged_channels_of_several_variables_are_those_of_each(records: int) -> None:
    rng = np.random.default_rng(records)
    edges, steps = np.array([0, 1, 8, 16, 25, 90]), np.arange(records) * 10
    codes = files.codes(range(records), 90)
    codes[0] = 5
    for channel in range(90):
        codes[2, int(rng.integers(-records, records)) :, channel] = ZERO
    codes[2, 0, ::3] = NAN
    state = rng.choice(
        np.array([channel_states.MOVING, channel_states.PRUNED], np.uint8),
        (records, 90),
        p=(0.99, 0.01),
    )
    rows = [False, True, False, True, True]
    codes[2, :, 8:16] = ZERO
    together = channel_states.unchanged(codes, state, steps, rows=rows, edges=edges)
    for own, (first, last) in zip(rows, pairwise(edges), strict=True):
        each = codes[:, :, first:last], state[:, first:last], steps
        alone = channel_states.unchanged(*each, rows=[own])
        nothing = np.zeros((records, last - first), bool)
        for kind in ("stalled", "unchanged", "rows"):
            found = together.get(kind, np.zeros(state.shape, bool))[:, first:last]
            np.testing.assert_array_equal(found, alone.get(kind, nothing))
