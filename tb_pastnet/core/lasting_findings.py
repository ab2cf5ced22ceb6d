"""Findings about what lasts up to the newest record: states of channels, or no movement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tb_pastnet.core.channel_states import Lasting
from tb_pastnet.core.counted import counted, named, stretches
from tb_pastnet.core.finding_kinds import Finding, LayerFacts, RunFacts
from tb_pastnet.core.finding_words import about_layers, listed, pairs, where
from tb_pastnet.core.standing import UNKNOWN, in_words, may_move


class _Standing(NamedTuple):
    """Since when channels of a layer are in a state."""

    run: RunFacts
    layer: LayerFacts
    own: Lasting


def lasting_findings(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """A finding for each state, or cause of staying unchanged; `several`: a log has other runs."""
    groups: dict[tuple[str, str | None], list[_Standing]] = {}
    for run in runs:
        for layer in run.layers:
            for kind, own in layer.lasting.items():
                key = _kind_and_cause(kind, run, layer)
                groups.setdefault(key, []).append(_Standing(run, layer, own))
    for (kind, cause), group in groups.items():
        members = [(run, layer) for run, layer, _ in group]
        of = sum({(run.name, layer.id): layer.channels for run, layer in members}.values())
        channels = sum(own.channels for _, _, own in group)
        since = max(own.since for _, _, own in group)
        first = min(group, key=lambda standing: standing.own.first)
        if kind in _STATES:
            text = _state_text(kind, group, of, several)
        else:
            text = _unchanged_text(kind, cause, group, of, several)
        numbers = {"of": of, "since": since, "records": min(own.records for _, _, own in group)}
        step, shown = first.own.first, first.run.name
        finding = about_layers(kind, members, channels, step, numbers, text, shown, cause)
        # Others of the layer move: a row that doesn't is to be seen.
        if kind == "rows" and finding.layer is not None:
            finding = replace(finding, channel=first.own.channel)
        yield finding


def _kind_and_cause(kind: str, run: RunFacts, layer: LayerFacts) -> tuple[str, str | None]:
    # What an optimizer may still reach isn't stalled.
    if kind == "stalled" and not (run.closed or layer.proven):
        kind = "unchanged"
    if kind == "stalled":
        return kind, layer.cause or UNKNOWN
    known = kind == "unchanged" and layer.cause not in ("", UNKNOWN)
    return kind, layer.cause if known else None


_STATES = {
    "frozen": "frozen",
    "pruned": "pruned",
    "nonfinite": "NaN or infinite",
    "unfrozen": "unfrozen",
    "refrozen": "frozen again",
    "reactivated": "no longer pruned",
}
"""States in words."""


def _state_text(kind: str, group: Sequence[_Standing], of: int, several: bool) -> str:
    since, state = max(own.since for *_, own in group), _STATES[kind]
    if min(own.first for *_, own in group) == since:
        who = _who(group, of, "channel", _where_of(group, several))
        return f"{who}: {state} since step {since:,}"
    channels = sum(own.channels for *_, own in group)
    share = f"{'all ' if channels == of else f'{channels:,} of '}{counted(of, 'channel')}"
    runs = dict.fromkeys(run.name for run, *_ in group)
    names = named(runs, "run") if several else _where_of(group, several)
    times = [
        (f"at step {step:,}{f' in {named(own)}' if len(runs) > 1 else ''} ({begun})", own)
        for (step, begun), own in _begins(group, several)
    ]
    return f"{names}: channels first {state} {listed(times)}; {share} since step {since:,}"


def _begins(group: Sequence[_Standing], several: bool) -> list[tuple[tuple[int, str], list[str]]]:
    """The first step of each run and what began then, with the runs of which both are the same."""
    of_runs: dict[str, list[_Standing]] = {}
    for standing in group:
        of_runs.setdefault(standing.run.name, []).append(standing)
    begins: dict[tuple[int, str], list[str]] = {}
    for name, own in of_runs.items():
        step = min(standing.own.first for standing in own)
        begins.setdefault((step, _what_begins(own, step, several)), []).append(name)
    return sorted(begins.items(), key=lambda entry: entry[0][0])


def _what_begins(group: Sequence[_Standing], step: int, several: bool) -> str:
    """What of a run was the first to be in a state, at a step."""
    begun = [standing for standing in group if standing.own.first == step]
    if len(begun) > 1:
        at_once = len(begun) == len(group) and not several
        return "all of them at once" if at_once else named([each.layer.id for each in begun])
    _, layer, own = begun[0]
    count = own.first_channels
    if count == layer.channels and (several or len(group) > 1):
        return layer.id
    channels = f"channel {own.channel:,}" if count == 1 else counted(count, "channel")
    return f"{channels} of {layer.id}" if several or len(group) > 1 else channels


def _who(group: Sequence[_Standing], of: int, noun: str, names: str) -> str:
    """All of some layers, their experts by number, or so many of their channels."""
    channels = sum(own.channels for _, _, own in group)
    if channels == of:
        return names
    chosen = dict.fromkeys(own.experts for _, _, own in group)
    experts = next(iter(chosen))
    if experts and len(chosen) == 1:
        return f"{'expert' if len(experts) == 1 else 'experts'} {stretches(experts)} of {names}"
    return f"{channels:,} of {counted(of, noun)} of {names}"


def _unchanged_text(
    kind: str, cause: str | None, group: Sequence[_Standing], of: int, several: bool
) -> str:
    names = _where_of(group, several)
    noun = "row" if kind == "rows" else "channel"
    who = _who(group, of, noun, names)
    # No more is known: between records, a weight may change and come back.
    fewest, most = (pick(own.records for _, _, own in group) for pick in (min, max))
    if all(own.since == layer.first_step for _, layer, own in group):
        records = counted(most, "record") if fewest == most else f"{fewest:,} to {most:,} records"
        when = f"at all {records}"
    else:
        since, first = max(own.since for *_, own in group), min(own.first for *_, own in group)
        some = f", some from step {first:,} on" if first < since else ""
        when = f"at the last {counted(fewest, 'record')}, from step {since:,} on{some}"
    stalled = "stalled, " if kind == "stalled" else ""
    state = "idle" if cause is not None and may_move(cause) else "unchanged"
    why = {None: "", UNKNOWN: ". Cause unknown"}.get(cause, f". Cause: {in_words(cause or '')}")
    return f"{who}: {stalled}{state} {when}{why}"


def _where_of(group: Sequence[_Standing], several: bool) -> str:
    return where(pairs([(run, layer) for run, layer, _ in group]), several)
