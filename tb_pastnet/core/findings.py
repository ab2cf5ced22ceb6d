"""Findings about some runs: each a sentence, its numbers, and where to see it.

There is one finding for each kind and cause, however many runs and layers it is about: a log has a
handful. All steps are those of records. A finding about a layer is about its newest record; its
step is that of the first record at which it held for any channel. If more of them hold it since
later, the sentence says when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tb_pastnet.core.counted import counted, named
from tb_pastnet.core.expected import Outcome
from tb_pastnet.core.finding_kinds import (
    KINDS,
    Finding,
    LayerFacts,
    RunFacts,
    Violated,
)
from tb_pastnet.core.finding_words import about_layers, about_runs, pairs, where
from tb_pastnet.core.following import CAUSES as FOLLOW_CAUSES
from tb_pastnet.core.following import FollowRecords, follow_causes
from tb_pastnet.core.lasting_findings import lasting_findings
from tb_pastnet.core.travel import TRAVELS, Verdict, percent
from tb_pastnet.core.violation import CAUSES, between


def findings(runs: Sequence[RunFacts]) -> list[Finding]:
    """Finds what is worth knowing: in the order of `KINDS`, then by step."""
    several = len(runs) > 1
    listed = [
        *_violations(runs, several),
        *_contradictions(runs, several),
        *_statistics(runs, several),
        *_unread(runs, several),
        *_lost(runs, several),
        *_lost_of_layers(runs, several),
        *_never_stepped(runs, several),
        *_silent(runs, several),
        *lasting_findings(runs, several),
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
        place = where([(run.name, each.layer) for run, each in group], several)
        text = (
            f"{counted(channels, 'channel')} of {place} changed while frozen or pruned, {when}. "
            f"Likely cause: {CAUSES.get(cause, cause)}"
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
        (run, first), *rest = group
        text = f"{run.name}: Expected {first.text}" if several else f"Expected {first.text}"
        if rest:
            failing = named(dict.fromkeys(run.name for run, _ in rest), "run")
            text += f". {counted(len(rest), 'more expectation')} failed"
            text += f", in {failing}" if several else ""
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
        f"{where([(run.name, moved.layer) for run, moved in group], several)}: statistics moved "
        f"while the weights were frozen, {when}. Call frozen layers in inference mode: "
        "training=False, or eval() in PyTorch"
    )
    run, first = min(group, key=lambda entry: entry[1].first_step)
    channels = sum(moved.channels for _, moved in group)
    yield Finding(
        "statistics", None, names, layers, channels, since, {"last_step": until}, text,
        "layer", run.name, first.layer, variable=first.variable,
    )  # fmt: skip


def _unread(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    problems = {run.name: run.problem for run in runs if run.problem}
    if problems:
        names, (text, *others) = tuple(problems), dict.fromkeys(problems.values())
        text = f"{named(names, 'run')}: {text}" if several else text
        text += f", and {counted(len(others), 'other problem')}" if others else ""
        yield about_runs("unreadable", names, {}, text)


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
            whose = f" of {named(names, 'run')}" if several else ""
            text = f"{lost:,} of {counted(offered, 'record')}{whose} {why}"
            yield about_runs(kind, names, {"records": lost, "due": offered}, text)


def _lost_of_layers(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """Layers that lack more records than their runs."""
    members = [
        (run, layer)
        for run in runs
        for layer in run.layers
        if layer.damaged.unreadable > run.account.unreadable
    ]
    if members:
        lost = sum(layer.damaged.unreadable for _, layer in members)
        due = sum(layer.damaged.offered for _, layer in members)
        place = where(pairs(members), several)
        text = f"{lost:,} of {counted(due, 'record')} of {place} can't be read"
        numbers = {"records": lost, "due": due}
        yield about_layers("unreadable", members, None, None, numbers, text, members[0][0].name)


def _never_stepped(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    stepless = [run for run in runs if run.stepless_calls]
    if stepless:
        names = tuple(run.name for run in stepless)
        calls = sum(run.stepless_calls for run in stepless)
        who = f"{named(names, 'run')}: " if several else ""
        text = f"{who}{counted(calls, 'call')} of record, 0 optimizer steps"
        yield about_runs("never_stepped", names, {"calls": calls}, text, stepless[0].last_step)


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
    names = where(pairs(silent), several)
    text = f"{names}: {until}{first}; {whose} at {newest:,}"
    step = ends[0] if ends else None
    shown = next(run.name for run, layer in silent if layer.last_step == step)
    yield about_layers("silent", silent, None, step, {"newest": newest}, text, shown)


def _settled(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    """Layers of which a verdict says that they don't travel; none is stalled, too."""
    groups: dict[str, list[tuple[RunFacts, LayerFacts, Verdict]]] = {}
    for run in runs:
        for layer in run.layers:
            verdict = layer.verdict
            if verdict and verdict.kind != TRAVELS and "stalled" not in layer.lasting:
                groups.setdefault(verdict.kind, []).append((run, layer, verdict))
    for kind, group in groups.items():
        members, verdicts = [(run, layer) for run, layer, _ in group], [own for *_, own in group]
        share, since = (max(getattr(own, name) for own in verdicts) for name in ("share", "since"))
        fewest, most = (pick(own.steps for own in verdicts) for pick in (min, max))
        steps = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        text = (
            f"{where(pairs(members), several)}: {kind} since step {since:,}, "
            f"{'at most ' if len(group) > 1 else ''}{percent(share)} of the norm in the last "
            f"{steps} steps"
        )
        first, numbers = min(own.since for own in verdicts), {"steps": most}
        yield about_layers("settled", members, None, first, numbers, text, group[0][0].name, kind)


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
        followed = [pair for *_, pair in group]
        names = {run.name for run, _ in members}
        weights, of = len(group), sum(len(run.followed) for run in runs if run.name in names)
        records = min(len(pair.steps) for pair in followed)
        first = min(int(pair.steps[0]) for pair in followed)
        text = (
            f"{weights:,} of {counted(of, 'weight')} in follows=, of "
            f"{where(pairs(members), several)}, {FOLLOW_CAUSES[cause]} "
            f"({counted(records, 'record')})"
        )
        numbers = {"weights": weights, "of": of, "records": records}
        shown = members[0][0].name
        yield about_layers("follows", members, None, first, numbers, text, shown, cause)


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
            f"{where(pairs(members), several)}: masks changed {some}{counted(most, 'time')}, "
            f"{between(first, last)}"
        )
        numbers = {"times": most, "last_step": last}
        yield about_layers("masks", members, None, first, numbers, text, members[0][0].name)


def _rate_jumps(runs: Sequence[RunFacts], several: bool) -> Iterator[Finding]:
    jumps = [(run.name, jump) for run in runs for jump in run.changes.rates]
    if jumps:
        _, first = min(jumps, key=lambda entry: entry[1].step)
        whose = f" of {named(first.layers)}" if first.layers else ""
        text = f"the learning rate{whose} jumped from {first.before:.3g} to {first.after:.3g}"
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
    if len(steps) > 1:
        text += f", and {counted(len(steps) - 1, 'more time')} up to step {last:,}"
    text = f"{named(names, 'run')}: {text}" if several else f"{text[0].upper()}{text[1:]}"
    numbers = {"times": len(steps), "last_step": last}
    return about_runs(kind, names, numbers, text, min(step for _, step in steps))
