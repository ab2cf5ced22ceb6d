"""Variables that share series are read as if each had its own, however lineages put them together."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.together import MOST, Together, put_together, stored_channels
from tb_pastnet.reader.store import RunReader, Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

NAMES = "a", "b", "c", "d"


class Lineage(NamedTuple):
    layers: dict[str, int]
    together: Together
    steps: range


@st.composite
def lineages(draw: st.DrawFn) -> list[Lineage]:
    """Trainings that go on, mostly of the same network."""
    found, first = [], 0
    widths = draw(st.lists(st.integers(1, 9), min_size=len(NAMES), max_size=len(NAMES)))
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 2)) == 0:
            widths[draw(st.integers(0, len(NAMES) - 1))] = draw(st.integers(1, 9))
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
        layers = {name: widths[NAMES.index(name)] for name in sorted(names)}
        numbers = draw(st.permutations(range(2 * len(layers))))
        cuts = sorted(draw(st.sets(st.integers(0, len(numbers)))))
        pieces = [
            numbers[one:other] for one, other in zip([0, *cuts], [*cuts, len(numbers)], strict=True)
        ]
        together = tuple(tuple(piece) for piece in pieces if len(piece) > 1)
        last = first + draw(st.integers(1, 40))
        found.append(Lineage(layers, together, range(first, last)))
        first = draw(st.integers(max(last - 9, 0), last))
    return found


def write(provider: MemoryProvider, run: str, own: list[Lineage], *, apart: bool) -> RunReader:
    for number, (layers, together, steps) in enumerate(own, 1):
        rng = np.random.default_rng(number)
        writer = MemoryWriter(
            files.Path(),
            run,
            ordinal=number,
            lineage=number,
            layers=layers,
            together=() if apart else together,
            first_step=steps[0],
        )
        writer.provider = provider
        writer.describe(steps[0])
        values = {
            one.id: rng.integers(-900, 900, (len(STATISTICS), len(steps), one.channels), np.int16)
            for one in files.network(layers)[1]
        }
        writer.records(steps, values)
    store = Store(provider)
    return store.reader(CALLER, store.catalog(CALLER).runs[run])


@given(lineages())
def test_each_variable_is_read_as_if_it_had_a_series_of_its_own(own: list[Lineage]) -> None:
    provider = MemoryProvider()
    together = write(provider, "a", own, apart=False)
    apart = write(MemoryProvider(), "a", own, apart=True)
    assert list(together.run.variables) == list(apart.run.variables)
    for name in apart.run.variables:
        assert_same(together.series(name), apart.series(name))
        assert_same(together.state_series(name), apart.state_series(name))
    assert together.accounts() == apart.accounts()
    some = list(apart.run.variables)[::2]
    read = [
        dict(zip(some, one.each(some, lambda _, series: series), strict=True))
        for one in (together, apart)
    ]
    for name in some:
        assert_same(read[0][name], read[1][name])


def assert_same(found: Any, expected: Any) -> None:
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, field.name)
        elif field.name == "marks":
            assert_same(one, other)
        else:
            assert one == other, field.name


def test_a_lost_block_of_several_is_lost_for_each_and_for_no_other() -> None:
    provider = MemoryProvider()
    writer = memory_run(
        provider, "a", range(1, 41), layers={"x": 3, "y": 4}, together=((0, 2), (1, 3))
    )
    blocks = provider.tree[writer.tb_run]["together/x/kernel"]
    blocks[1] = (*blocks[1][:2], blocks[1][2][:-1], b"")
    store = Store(provider)
    reader = store.reader(CALLER, store.catalog(CALLER).runs["a"])
    shown = {name: account.shown for name, account in reader.accounts().items()}
    assert shown == {"x/kernel": 24, "x/bias": 40, "y/kernel": 24, "y/bias": 40}
    notes = {name: reader.series(name).notes.total() for name in reader.run.variables}
    assert notes == {"x/kernel": 1, "x/bias": 0, "y/kernel": 1, "y/bias": 0}


@given(st.lists(st.tuples(st.integers(1, 2 * MOST), st.booleans()), max_size=50))
def test_small_variables_are_together_and_the_drawn_ones_apart(
    variables: list[tuple[int, bool]],
) -> None:
    channels, is_main = [own for own, _ in variables], [main for _, main in variables]
    together = put_together(channels, is_main)
    numbers = [number for own in together for number in own]
    assert len(numbers) == len(set(numbers))
    for own in together:
        assert list(own) == sorted(own)
        assert len(own) > 1
        assert sum(channels[number] for number in own) <= MOST
        assert len({is_main[number] for number in own}) == 1
    found = stored_channels([(str(n), own) for n, own in enumerate(channels)], together)
    for main in (True, False):
        small = [n for n, own in enumerate(channels) if own <= MOST and is_main[n] == main]
        total = sum(channels[n] for n in small)
        # Two neighbours have more than one could: else they would be one.
        assert len({found[n].tag for n in small}) <= 1 + 2 * total / MOST
    for number, (place, own) in enumerate(zip(found, channels, strict=True)):
        assert 0 <= place.first <= place.width - own
        assert (number in numbers) == (place.tag.startswith("together/"))
