"""Findings about some runs: each a sentence, its numbers, and where to see it.

There is one finding for each kind and cause, however many runs and layers it is about: a log has a
handful. All steps are those of records. A finding about a layer is about its newest record; its
step is that of the first record at which it held for any channel. If more of them hold it since
later, the sentence says when.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tb_pastnet.core.channel_states import Lasting
from tb_pastnet.core.counted import counted, named, stretches
from tb_pastnet.core.expected import Outcome
from tb_pastnet.core.finding_kinds import (
    KINDS,
    Finding,
    LayerFacts,
    RunFacts,
    Violated,
)
from tb_pastnet.core.following import CAUSES as FOLLOW_CAUSES
from tb_pastnet.core.following import FollowRecords, follow_causes
from tb_pastnet.core.standing import UNKNOWN, in_words, may_move
from tb_pastnet.core.travel import TRAVELS, Verdict, percent
from tb_pastnet.core.violation import CAUSES, between


class _Standing(NamedTuple):
    """Since when channels of a layer are in a state."""

    run: RunFacts
    layer: LayerFacts
    own: Lasting


def findings(runs: Sequence[RunFacts]) -> list[Finding]:
    """Finds what is worth knowing: in the order of `KINDS`, then by step."""
    several = len(runs) > 1
    listed = [
        *_violations(runs, several),
        *_contradictions(runs, several),
        *_statistics(runs, several),
        *_unread(runs, several),
        *_lost(runs, several),
        *_never_stepped(runs, several),
        *_silent(runs, several),
        *_states(runs, several),
        *_settled(runs, several),
        *_following(runs, several),
        *_mask_changes(runs, several),
        *_rate_jumps(runs, several),
        *_resumed(runs, several),
    ]
    places = {kind: place for place, kind in enumerate(KINDS)}

    def rank(finding: Finding) -> tuple[int, float]:
        first = finding.first_step
        return places[finding.kind], math.inf if first is None else first

    return sorted(listed, key=rank)


def _violations(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    causes: dict[str, list[tuple[RunFacts, Violated]]] = {}
    for run in runs:
        for violated in run.violated:
            causes.setdefault(violated.cause, []).append((run, violated))
    for cause, group in causes.items():
        first_run, first = min(group, key=lambda entry: entry[1].first_step)
        channels = len({(run.name, each.layer, each.channel) for run, each in group})
        layers = tuple(dict.fromkeys(each.layer for _, each in group))
        names = tuple(dict.fromkeys(run.name for run, _ in group))
        since, until = first.first_step, max(each.last_step for _, each in group)
        still = any(each.last_step == run.last_step for run, each in group)
        when = f"since step {since:,}" if still else between(since, until)
        text = (
            f"{counted(channels, 'channel')} of {_where(layers, names, several)} changed while "
            f"frozen or pruned, {when}. Likely cause: {CAUSES.get(cause, cause)}"
        )
        yield Finding(
            "violations", cause, names, layers, channels, since, {"last_step": until}, text,
            "layer", first_run.name, first.layer, first.channel,
        )  # fmt: skip


def _contradictions(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    kinds: dict[str, list[tuple[RunFacts, Outcome]]] = {}
    for run in runs:
        for outcome in run.contradicted:
            kinds.setdefault(outcome.expectation.kind, []).append((run, outcome))
    for kind, group in kinds.items():
        names = tuple(dict.fromkeys(run.name for run, _ in group))
        weights = {weight for _, outcome in group for weight in outcome.weights}
        layers = tuple(
            dict.fromkeys(
                layer.id
                for run, _ in group
                for layer in run.layers
                if not weights.isdisjoint(layer.variables)
            )
        )
        steps = [outcome.first_step for _, outcome in group if outcome.first_step is not None]
        text = f"Expected {group[0][1].text}"
        text += f", and {len(group) - 1:,} more" if len(group) > 1 else ""
        text = f"{named(names, 'run')}: {text}" if several else text
        only = layers[0] if len(layers) == 1 else None
        yield Finding(
            "contradictions", kind, names, layers, None, min(steps, default=None),
            {"weights": len(weights)}, text, "layer" if only else "network", names[0], only,
        )  # fmt: skip


def _statistics(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    group = [(run, moved) for run in runs for moved in run.statistics]
    if not group:
        return
    layers = tuple(dict.fromkeys(moved.layer for _, moved in group))
    names = tuple(dict.fromkeys(run.name for run, _ in group))
    since = min(moved.first_step for _, moved in group)
    until = max(moved.last_step for _, moved in group)
    still = any(moved.last_step == run.last_step for run, moved in group)
    when = f"since step {since:,}" if still else between(since, until)
    text = (
        f"{_where(layers, names, several)}: statistics moved while the weights were frozen, "
        f"{when}. Call frozen layers in inference mode: training=False, or eval() in PyTorch"
    )
    run, first = min(group, key=lambda entry: entry[1].first_step)
    channels = sum(moved.channels for _, moved in group)
    yield Finding(
        "statistics", None, names, layers, channels, since, {"last_step": until}, text,
        "layer", run.name, first.layer,
    )  # fmt: skip


def _unread(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    problems = {run.name: run.problem for run in runs if run.problem}
    if problems:
        names, (text, *others) = tuple(problems), dict.fromkeys(problems.values())
        text = f"{named(names, 'run')}: {text}" if several else text
        text += f", and {counted(len(others), 'other problem')}" if others else ""
        yield _about_runs("unreadable", names, {}, text)


def _lost(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    for kind, why in (
        ("unreadable", "can't be read"),
        ("dropped", "were dropped before they were written"),
    ):
        counts = {run.name: getattr(run.account, kind) for run in runs}
        names = tuple(name for name, count in counts.items() if count)
        if names:
            lost = sum(counts.values())
            offered = sum(run.account.offered for run in runs if run.name in names)
            where = f" of {named(names, 'run')}" if several else ""
            text = f"{lost:,} of {counted(offered, 'record')}{where} {why}"
            yield _about_runs(kind, names, {"records": lost, "due": offered}, text)


def _about_runs(
    kind: str,
    names: tuple[str, ...],
    numbers: Mapping[str, int],
    text: str,
    step: int | None = None,
) -> Finding:
    return Finding(kind, None, names, (), None, step, numbers, text, shown_run=names[0])


def _never_stepped(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    stepless = [run for run in runs if run.stepless_calls]
    if stepless:
        names = tuple(run.name for run in stepless)
        calls = sum(run.stepless_calls for run in stepless)
        who = f"{named(names, 'run')}: " if several else ""
        text = f"{who}{counted(calls, 'call')} of record, 0 optimizer steps"
        yield _about_runs("never_stepped", names, {"calls": calls}, text, stepless[0].last_step)


def _silent(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    silent = [
        (run, layer)
        for run in runs
        if run.last_step is not None
        for layer in run.layers
        if layer.last_step != run.last_step
    ]
    if not silent:
        return
    ends = sorted({layer.last_step for _, layer in silent if layer.last_step is not None})
    until = f"no record after step {ends[0]:,}" if ends else "no record"
    if ends and any(layer.last_step is None for _, layer in silent):
        until = f"no record, or {until.replace('no record', 'none')}"
    first = " (first)" if len(ends) > 1 else ""
    newest = max(run.last_step or 0 for run, _ in silent)
    whose = "the run is" if len({run.name for run, _ in silent}) == 1 else "the runs are"
    names = _where(*_ids(silent), several)
    text = f"{names}: {until}{first}; {whose} at {newest:,}"
    step = ends[0] if ends else None
    shown = next(run.name for run, layer in silent if layer.last_step == step)
    yield _about_layers("silent", silent, None, step, {"newest": newest}, text, shown)


def _states(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """What lasts up to the newest record: frozen, pruned, nonfinite and unchanged channels."""
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
        yield _about_layers(kind, members, channels, step, numbers, text, shown, cause)


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
    first, names = min(group, key=lambda standing: standing.own.first), _where_of(group, several)
    since = max(own.since for _, _, own in group)
    channels, state = sum(own.channels for _, _, own in group), _STATES[kind]
    if first.own.first == since:
        who = _who(group, of, "channel", names)
        return f"{who}: {state} since step {since:,}"
    begun = [standing for standing in group if standing.own.first == first.own.first]
    which = "all of them at once" if len(begun) == len(group) else _where_of(begun, several)
    if len(group) == 1:
        some = first.own.first_channels
        which = f"channel {first.own.channel:,}" if some == 1 else counted(some, "channel")
    share = f"{'all ' if channels == of else f'{channels:,} of '}{counted(of, 'channel')}"
    return (
        f"{names}: first {state} at step {first.own.first:,} ({which}); "
        f"{share} since step {since:,}"
    )


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


def _settled(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """Layers of which a verdict says that they don't travel; none is stalled, too."""
    groups: dict[str, list[tuple[RunFacts, LayerFacts, Verdict]]] = {}
    for run in runs:
        for layer in run.layers:
            verdict = layer.verdict
            if verdict and verdict.kind != TRAVELS and "stalled" not in layer.lasting:
                groups.setdefault(verdict.kind, []).append((run, layer, verdict))
    for kind, group in groups.items():
        members = [(run, layer) for run, layer, _ in group]
        largest = max((verdict for *_, verdict in group), key=lambda verdict: verdict.share)
        since = min(verdict.since for *_, verdict in group)
        most = "at most " if len(group) > 1 else ""
        text = (
            f"{_where(*_ids(members), several)}: {kind} since step {since:,}, {most}"
            f"{percent(largest.share)} of the norm in the last {largest.steps:,} steps"
        )
        numbers = {"steps": largest.steps}
        yield _about_layers("settled", members, None, since, numbers, text, group[0][0].name, kind)


def _following(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """Weights that don't follow as they should, by cause."""
    groups: dict[str, list[tuple[RunFacts, LayerFacts, FollowRecords]]] = {}
    for run in runs:
        layers = {layer.id: layer for layer in run.layers}
        for pair, cause in zip(run.followed, follow_causes(run.followed), strict=True):
            if cause is not None and pair.layer in layers:
                groups.setdefault(cause, []).append((run, layers[pair.layer], pair))
    for cause, group in groups.items():
        members = [(run, layer) for run, layer, _ in group]
        pairs = [pair for *_, pair in group]
        names = {run.name for run, _ in members}
        weights, of = len(group), sum(len(run.followed) for run in runs if run.name in names)
        records = min(len(pair.steps) for pair in pairs)
        first = min(int(pair.steps[0]) for pair in pairs)
        text = (
            f"{weights:,} of {counted(of, 'weight')} in follows=, of "
            f"{_where(*_ids(members), several)}, {FOLLOW_CAUSES[cause]} "
            f"({counted(records, 'record')})"
        )
        numbers = {"weights": weights, "of": of, "records": records}
        shown = members[0][0].name
        yield _about_layers("follows", members, None, first, numbers, text, shown, cause)


def _mask_changes(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    each = [
        (run, layer, changed)
        for run in runs
        for layer in run.layers
        if (changed := run.changes.masks.get(layer.id)) is not None
    ]
    if each:
        members = [(run, layer) for run, layer, _ in each]
        first, last = min(own.first for *_, own in each), max(own.last for *_, own in each)
        fewest, most = (pick(own.times for *_, own in each) for pick in (min, max))
        some = "" if fewest == most else "up to "
        text = (
            f"{_where(*_ids(members), several)}: masks changed {some}{counted(most, 'time')}, "
            f"{between(first, last)}"
        )
        numbers = {"times": most, "last_step": last}
        yield _about_layers("masks", members, None, first, numbers, text, members[0][0].name)


def _rate_jumps(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    jumps = [(run.name, jump) for run in runs for jump in run.changes.rates]
    if jumps:
        _, first = min(jumps, key=lambda entry: entry[1].step)
        text = f"the learning rate jumped from {first.before:.3g} to {first.after:.3g}"
        steps = [(run, jump.step) for run, jump in jumps]
        yield _about_steps("learning_rate", steps, f"{text} at step {first.step:,}", several)


def _resumed(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    each = [(run.name, resumed) for run in runs for resumed in run.changes.resumed]
    if each:
        _, first = min(each, key=lambda entry: entry[1].step)
        back = f" after step {first.last_before:,}" if first.last_before >= first.step else ""
        steps = [(run, resumed.step) for run, resumed in each]
        yield _about_steps("resumed", steps, f"resumed at step {first.step:,}{back}", several)


def _about_steps(kind: str, steps: Sequence[tuple[str, int]], text: str, several: bool) -> Finding:
    """What happened to runs at some steps: `text` is about the first of them."""
    if len({run for run, _ in steps}) > 1:
        text += f" in {named([min(steps, key=lambda entry: entry[1])[0]])}"
    names, last = tuple(dict.fromkeys(run for run, _ in steps)), max(step for _, step in steps)
    most = max(Counter(run for run, _ in steps).values())
    if most > 1:
        text += f", and {counted(most - 1, 'more time')} up to step {last:,}"
    text = f"{named(names, 'run')}: {text}" if several else f"{text[0].upper()}{text[1:]}"
    numbers = {"times": most, "last_step": last}
    return _about_runs(kind, names, numbers, text, min(step for _, step in steps))


_Members = Sequence[tuple[RunFacts, LayerFacts]]


def _about_layers(
    kind: str,
    members: _Members,
    channels: int | None,
    step: int | None,
    numbers: Mapping[str, int],
    text: str,
    shown_run: str,
    cause: str | None = None,
) -> Finding:
    layers, runs = _ids(members)
    only = layers[0] if len(layers) == 1 else None
    return Finding(
        kind, cause, runs, layers, channels, step, numbers, text,
        "layer" if only else "network", shown_run, only,
    )  # fmt: skip


def _ids(members: _Members) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The layers and the runs, each once."""
    layers = tuple(dict.fromkeys(layer.id for _, layer in members))
    return layers, tuple(dict.fromkeys(run.name for run, _ in members))


def _where_of(group: Sequence[_Standing], several: bool) -> str:
    return _where(*_ids([(run, layer) for run, layer, _ in group]), several)


def _where(layers: Sequence[str], runs: Sequence[str], several: bool) -> str:
    """Layers for a sentence, with their runs if there are several to choose from."""
    return f"{named(layers)} in {named(runs, 'run')}" if several else named(layers)
