"""What is said of trainings: the findings, as sentences, from the oracle's figures alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.oracle.plain import FROZEN, NONFINITE, PRUNED, Oracle, Recorded

KINDS = (
    "violations", "nonfinite", "unreadable", "dropped", "silent", "stalled",
    "unfrozen", "refrozen", "reactivated", "frozen", "pruned", "unchanged", "rows",
)  # fmt: skip
OTHERS = re.compile("masks changed|learning rate jumped|resumed at step")
"""Findings of other kinds."""
CAUSES = {"momentum": "momentum left in the optimizer's slots", "unknown": "unknown"}
STATES = {"frozen": FROZEN, "pruned": PRUNED, "nonfinite": NONFINITE}
THAWED = {"unfrozen": (FROZEN, False), "refrozen": (FROZEN, True), "reactivated": (PRUNED, False)}
"""By kind: the state that a channel was in, and whether it is in it again."""
WORDS = {
    "nonfinite": "NaN or infinite", "refrozen": "frozen again", "reactivated": "no longer pruned"
}  # fmt: skip


class Said(NamedTuple):
    """One finding."""

    kind: str
    cause: str | None
    runs: tuple[str, ...]
    layers: tuple[str, ...]
    first_step: int | None
    channels: int | None
    text: str


class Member(NamedTuple):
    """A layer of a run of which something holds, and for each of its channels since which record."""

    oracle: Oracle
    layer: str
    own: Recorded
    since: dict[int, int]  # by channel, at the newest record
    first: int  # the first record at which it held for any channel
    firsts: list[int]  # the channels for which it did

    @property
    def run(self) -> str:
        return self.oracle.training.run

    def step(self, record: int) -> int:
        return int(self.own.steps[record])


def named(names: Iterable[str], what: str = "layer") -> str:
    each = list(dict.fromkeys(names))
    if len(each) > 4:
        return f"{', '.join(each[:3])} and {len(each) - 3} more {what}s"
    return " and ".join(part for part in (", ".join(each[:-1]), each[-1]) if part)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def where(places: Iterable[tuple[str, str]], several: bool) -> str:
    """Runs and layers: together if each run has all of the layers, else apart."""
    places = list(dict.fromkeys(places))
    if not several:
        return named(layer for _, layer in places)
    by_layers: dict[str, list[tuple[str, str]]] = {}
    for run in dict.fromkeys(run for run, _ in places):
        own = [layer for one, layer in places if one == run]
        by_layers.setdefault(repr(sorted(own)), []).append((run, named(own)))
    if len(by_layers) == 1:
        ((*_, (_, layers)),) = [each[:1] for each in by_layers.values()]
        return f"{layers} in {named((run for (run, _) in next(iter(by_layers.values()))), 'run')}"
    return apart([([run for run, _ in own], own[0][1]) for own in by_layers.values()])


def apart(parts: Sequence[tuple[Sequence[str], str]], form: str = "{runs} ({what})") -> str:
    """What is said of some runs each: of the first three, if there are more than four."""
    texts = [form.format(runs=named(runs, "run"), what=what) for runs, what in parts]
    if len(texts) > 4:
        texts[3:] = [plural(sum(len(runs) for runs, _ in parts[3:]), "more run")]
    return named(texts)


def findings(oracles: Sequence[Oracle]) -> list[Said]:
    """Of some runs together, what does most harm first."""
    several = len(oracles) > 1
    found = [
        *_violations(oracles, several),
        *_dropped(oracles, several),
        *_silent(oracles, several),
    ]
    members: dict[str, list[Member]] = {}
    for oracle in oracles:
        for layer, own in oracle.layers.items():
            for kind, member in _standing(oracle, layer, own):
                members.setdefault(kind, []).append(member)
    found += [_sentence(kind, some, several) for kind, some in members.items()]
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.first_step or 0))


class Moved(NamedTuple):
    """A held channel that moved, in the order in which they are told."""

    step: int
    place: int  # of the variable
    channel: int
    layer: str


def _moved(oracle: Oracle) -> list[Moved]:
    return sorted(
        Moved(int(own.steps[at]), place, channel, own.tensor.layer)
        for place, own in enumerate(oracle.variables())
        for at, flags in enumerate(own.violated)
        for channel, moved in enumerate(flags)
        if moved
    )


def _violations(oracles: Sequence[Oracle], several: bool) -> list[Said]:
    found = []
    for cause, words in CAUSES.items():
        each = {
            oracle.training.run: (_moved(oracle), int(oracle.training.records[-1]))
            for oracle in oracles
            if oracle.training.audited == (cause == "momentum")
        }
        some = {run: moved for run, (moved, _) in each.items() if moved}
        if not some:
            continue
        layers = tuple(dict.fromkeys(one.layer for moved in some.values() for one in moved))
        steps = [one.step for moved in some.values() for one in moved]
        first, last = min(steps), max(steps)
        channels = len({(run, one.layer, one.channel) for run in some for one in some[run]})
        when = f"at step {first:,}" if first == last else f"from step {first:,} to {last:,}"
        if any(some[run][-1].step == each[run][1] for run in some):
            when = f"since step {first:,}"
        places = where([(run, one.layer) for run in some for one in some[run]], several)
        text = (
            f"{plural(channels, 'channel')} of {places} changed while frozen "
            f"or pruned, {when}. Likely cause: {words}"
        )
        found.append(Said("violations", cause, tuple(some), layers, first, channels, text))
    return found


def _dropped(oracles: Sequence[Oracle], several: bool) -> list[Said]:
    lossy = [oracle.training for oracle in oracles if oracle.training.dropped]
    if not lossy:
        return []
    count = sum(made.dropped for made in lossy)
    of = plural(sum(len(made.records) + made.dropped for made in lossy), "record")
    names = tuple(made.run for made in lossy)
    whose = f" of {named(names, 'run')}" if several else ""
    text = f"{count:,} of {of}{whose} were dropped before they were written"
    return [Said("dropped", None, names, (), None, None, text)]


def _silent(oracles: Sequence[Oracle], several: bool) -> list[Said]:
    some = [
        (int(own.steps[-1]), layer, oracle.training)
        for oracle in oracles
        for layer, own in oracle.layers.items()
        if int(own.steps[-1]) != oracle.training.records[-1]
    ]
    if not some:
        return []
    ends = {end for end, _, _ in some}
    layers = tuple(dict.fromkeys(layer for _, layer, _ in some))
    runs = tuple(dict.fromkeys(made.run for _, _, made in some))
    text = (
        f"{where([(made.run, layer) for _, layer, made in some], several)}: no record after step {min(ends):,}"
        f"{' (first)' * (len(ends) > 1)}; the run{'s are' if len(runs) > 1 else ' is'} at "
        f"{max(made.records[-1] for _, _, made in some):,}"
    )
    return [Said("silent", None, runs, layers, min(ends), None, text)]


def _standing(oracle: Oracle, layer: str, own: Recorded) -> list[tuple[str, Member]]:
    """What lasts up to the newest record of a layer."""
    found = []
    states = own.states(1e-4)
    each = {kind: (states == code).tolist() for kind, code in STATES.items()}
    for kind, (code, again) in THAWED.items():
        columns = [_thawed(column, code, again=again) for column in states.T.tolist()]
        each[kind] = [list(row) for row in zip(*columns, strict=True)]
    for kind, flags in each.items():
        now = [channel for channel, holds in enumerate(flags[-1]) if holds]
        if now:
            since = {channel: _begin([row[channel] for row in flags]) for channel in now}
            first = next(at for at, row in enumerate(flags) if any(row))
            firsts = [channel for channel, holds in enumerate(flags[first]) if holds]
            found.append((kind, Member(oracle, layer, own, since, first, firsts)))
    for kind, since in own.unchanged().items():
        if since:
            told = kind if oracle.training.closed else "unchanged"
            first = min(since.values())
            firsts = [channel for channel, at in since.items() if at == first]
            found.append((told, Member(oracle, layer, own, since, first, firsts)))
    return found


def _thawed(states: Sequence[int], held: int, *, again: bool) -> list[bool]:
    """At each record of a channel: whether it was freed, or is held again after that."""
    flags, was_held, was_freed = [], False, False
    for state in states:
        is_free = was_held and state not in (FROZEN, PRUNED, NONFINITE)
        was_held, was_freed = was_held or state == held, was_freed or is_free
        flags.append((state == held and was_freed) if again else is_free)
    return flags


def _begin(holds: Sequence[bool]) -> int:
    at = len(holds) - 1
    while at > 0 and holds[at - 1]:
        at -= 1
    return at


def _sentence(kind: str, some: Sequence[Member], several: bool) -> Said:
    layers = tuple(dict.fromkeys(one.layer for one in some))
    runs = tuple(dict.fromkeys(one.run for one in some))
    names = where([(one.run, one.layer) for one in some], several)
    count = sum(len(one.since) for one in some)
    sizes = {(one.run, one.layer): one.own.norm.shape[1] for one in some}
    all_of = plural(sum(sizes.values()), "channel")
    whole = count == sum(sizes.values())
    who = names if whole else f"{count:,} of {all_of} of {names}"
    first = min(some, key=lambda one: one.step(one.first))
    start = first.step(first.first)
    last = max(one.step(max(one.since.values())) for one in some)
    if kind in STATES or kind in THAWED:
        word = WORDS.get(kind, kind)
        text = f"{who}: {word} since step {last:,}"
        if start < last:
            those = f"all {all_of}" if whole else f"{count:,} of {all_of}"
            who = named(runs, "run") if several else names
            text = f"{who}: channels first {word} {_begins(some, several)}; {those} since step {last:,}"
    else:
        lengths = [len(one.own.steps) - max(one.since.values()) for one in some]
        if all(not any(one.since.values()) for one in some):
            span = f"{min(lengths):,} to {max(lengths):,} records"
            span = plural(lengths[0], "record") if len({*lengths}) == 1 else span
            how = f"unchanged at all {span}"
        else:
            how = f"unchanged at the last {plural(min(lengths), 'record')}, from step {last:,} on"
            if start < last:
                how += f", some from step {start:,} on"
        text = f"{who}: stalled, {how}. Cause unknown" if kind == "stalled" else f"{who}: {how}"
    return Said(kind, "unknown" if kind == "stalled" else None, runs, layers, start, count, text)


def _begins(some: Sequence[Member], several: bool) -> str:
    """When it held first, in each run, and for what."""
    begins: dict[tuple[int, str], list[str]] = {}
    for run in dict.fromkeys(one.run for one in some):
        own = [one for one in some if one.run == run]
        start = min(one.step(one.first) for one in own)
        begun = [one for one in own if one.step(one.first) == start]
        what = named(one.layer for one in begun)
        if len(begun) == 1:
            of, channels = f" of {what}" * (several or len(own) > 1), begun[0].firsts
            is_whole = len(channels) == begun[0].own.norm.shape[1]
            one_of = f"channel {channels[0]:,}" if len(channels) == 1 else ""
            what = what if is_whole and of else (one_of or plural(len(channels), "channel")) + of
        elif len(begun) == len(own) and not several:
            what = "all of them at once"
        begins.setdefault((start, what), []).append(run)
    ordered = sorted(begins, key=lambda begin: begin[0])
    is_many = len({one.run for one in some}) > 1
    return named_times([(start, what, begins[start, what]) for start, what in ordered], is_many)


def named_times(times: Sequence[tuple[int, str, list[str]]], is_many: bool) -> str:
    texts = [
        f"at step {start:,}{f' in {named(runs)}' if is_many else ''} ({what})"
        for start, what, runs in times
    ]
    if len(texts) > 4:
        texts[3:] = [plural(sum(len(runs) for *_, runs in times[3:]), "more run")]
    return named(texts)
