"""Findings of logs of every size: few, complete, what does most harm first, and no advice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.account import Account
from tb_pastnet.core.channel_states import Lasting
from tb_pastnet.core.finding_kinds import SHOWN, LayerFacts, RunFacts, Violated
from tb_pastnet.core.findings import findings

LAST = 10_000
HARM = ("violations", "nonfinite", "unreadable", "dropped", "silent", "stalled")
CHANGES = ("unfrozen", "refrozen", "reactivated")
ORDER = (*HARM, *CHANGES, "frozen", "pruned", "unchanged", "rows")
ADVICE = re.compile(
    r"settle|stop|should|could|can be (frozen|pruned)|safe|\b(freeze|prune)\b", re.I
)
SIZES = [
    (layers, runs, channels)
    for layers in (1, 32, 300)
    for runs in (1, 20)
    for channels in (1, 65, 4097)
]


class Event(NamedTuple):
    """What happened to some channels of a layer of a run, all of them at one step."""

    kind: str
    run: int
    layer: int
    channels: int
    step: int
    cause: str | None = None


def facts(events: Sequence[Event], layers: int, runs: int, channels: int) -> list[RunFacts]:
    """Runs in which nothing happened but these events."""
    own: dict[tuple[int, int], dict[str, Lasting]] = {}
    ends: dict[tuple[int, int], int] = {}
    counts: dict[int, dict[str, int]] = {}
    violated: dict[int, list[Violated]] = {}
    for kind, run, layer, count, step, cause in events:
        if kind == "silent":
            ends[run, layer] = step
        elif kind in ("dropped", "unreadable"):
            counts.setdefault(run, {})[kind] = 1
        elif kind == "violations":
            names = f"l{layer}", f"l{layer}/kernel"
            each = [Violated(*names, channel, step, LAST, str(cause)) for channel in range(count)]
            violated.setdefault(run, []).extend(each)
        else:
            own.setdefault((run, layer), {})[kind] = Lasting(count, step, 20, step, count, 0)
    return [
        RunFacts(
            f"r{run}",
            LAST,
            [
                LayerFacts(
                    f"l{layer}",
                    channels,
                    0,
                    ends.get((run, layer), LAST),
                    own.get((run, layer), {}),
                )
                for layer in range(layers)
            ],
            violated.get(run, ()),
            Account(1000, **counts.get(run, {})),
            closed=True,
        )
        for run in range(runs)
    ]


def check(events: Sequence[Event], layers: int, runs: int, channels: int) -> list[str]:
    """The kinds that are told, after the sentences are compared with the events."""
    found = findings(facts(events, layers, runs, channels))
    assert len(found) <= SHOWN
    ranks = [ORDER.index(one.kind) for one in found]
    assert ranks == sorted(ranks)
    assert [one.severity == "harm" for one in found] == [one.kind in HARM for one in found]
    covered = 0
    for event in events:
        whole = event.kind in ("dropped", "unreadable")
        (_,) = (
            one
            for one in found
            if (one.kind, one.cause) == (event.kind, event.cause)
            and f"r{event.run}" in one.runs
            and (whole or f"l{event.layer}" in one.layers)
        )
    for one in found:
        own = [each for each in events if (each.kind, each.cause) == (one.kind, one.cause)]
        covered += len(own)
        assert {f"r{each.run}" for each in own} == {*one.runs}
        if one.channels is not None:
            assert one.channels == sum(each.channels for each in own)
            assert one.first_step == min(each.step for each in own)
        assert not ADVICE.search(one.text), one.text
    assert covered == len(events)
    return [one.text for one in found]


@pytest.mark.parametrize("size", SIZES)
@given(st.data())
def test_every_event_is_in_one_sentence(size: tuple[int, int, int], data: st.DataObject) -> None:
    layers, runs, channels = size
    places = st.tuples(st.sampled_from(ORDER), st.integers(0, runs - 1), st.integers(0, layers - 1))
    causes = {"stalled": st.just("unknown"), "violations": st.sampled_from(("gradient", "ema"))}
    events = [
        Event(
            kind,
            run,
            layer,
            data.draw(st.integers(1, channels)),
            data.draw(st.integers(0, LAST - 1)),
            data.draw(causes.get(kind, st.none())),
        )
        for kind, run, layer in data.draw(st.lists(places, max_size=12, unique=True))
    ]
    check(events, *size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", HARM)
def test_one_event_is_told_first_among_thousands_of_changes(
    kind: str, size: tuple[int, int, int]
) -> None:
    layers, runs, channels = size
    usual = [
        Event(usual, run, layer, channels, 1 + (31 * layer + run) % 997)
        for usual in ("frozen", "unchanged")
        for run in range(runs)
        for layer in range(layers)
    ]
    cause = {"stalled": "unknown", "violations": "gradient"}.get(kind)
    planted = Event(kind, runs - 1, layers - 1, 1, 4321, cause)
    first = check([*usual, planted], *size)[0]
    assert kind in ("dropped", "unreadable") or f"l{layers - 1}" in first
    assert runs == 1 or f"r{runs - 1}" in first
