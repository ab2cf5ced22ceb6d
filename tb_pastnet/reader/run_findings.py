"""The findings of some runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tb_pastnet.core.finding_kinds import Finding, LayerFacts, RunFacts, Violated
from tb_pastnet.core.findings import findings
from tb_pastnet.core.following import FollowRecords
from tb_pastnet.core.run_changes import (
    MaskSteps,
    RateJump,
    Resumption,
    RunChanges,
    joined_jumps,
    rate_jumps,
)
from tb_pastnet.reader.frozen_statistics import statistics_of
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.run_summary import RunSummary, summary_of
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.state_series import STATISTIC
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.verdicts import judged
from tb_pastnet.reader.verified import contradictions_in


def findings_of(readers: Sequence[RunReader]) -> list[Finding]:
    """Reads all layers of some runs, and finds what is worth knowing. See `core.findings`."""
    return findings([_facts(reader) for reader in readers])


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values: where to see it is a separate object."""
    body = {"kind": finding.kind, "severity": finding.severity, **asdict(finding)}
    link = {name: body.pop(name) for name in ("view", "layer", "channel")}
    variable = body.pop("variable")
    link |= {"variable": variable} if variable is not None else {}
    return body | {"link": {**link, "run": body.pop("shown_run"), "step": finding.first_step}}


def _facts(reader: RunReader) -> RunFacts:
    summary, run, sketches = summary_of(reader), reader.run, reader.sketches()
    _, violations = reader.list_violations(Notes())
    violated = [
        Violated(*(getattr(violation, name) for name in Violated._fields))
        for violation in violations
    ]
    last = int(summary.steps[-1]) if len(summary.steps) else None
    layers = [
        LayerFacts(
            layer.id,
            run.variables[layer.main].channels,
            *_ends(summary, number),
            summary.lasting[number],
            *summary.causes[number],
            judged(sketches, layer.main, summary.endings[number]),
            layer.variables,
            summary.damaged[number],
        )
        for number, layer in enumerate(run.layers)
    ]
    facts = last, layers, violated, run.account, run.problem, run.closed
    return RunFacts(
        run.name,
        *facts,
        statistics=statistics_of(reader, summary),
        contradicted=contradictions_in(run),
        followed=_followed(reader),
        changes=_changes(reader),
        stepless_calls=run.stepless_calls,
    )


def _changes(reader: RunReader) -> RunChanges:
    """What was changed while the run trained."""
    run = reader.run
    first = int(run.axis.steps[0]) if len(run.axis.steps) else 0
    masks = {}
    for layer in run.layers:
        events = [event for name in layer.variables for event in reader.masks.events(name)]
        steps = sorted({event.step for event in events if event.step > first})
        if steps:
            masks[layer.id] = MaskSteps(len(steps), steps[0], steps[-1])
    return RunChanges(_rate_jumps(run), masks, resumptions(run))


def _rate_jumps(run: CatalogRun) -> list[RateJump]:
    """The jumps of the learning rates of a run, with the layers whose rates they are."""
    shared, *groups = run.axis.separate_rates
    # Layers by the name of their group, in the order of `separate_rates`.
    members: dict[str, dict[str, None]] = {
        name: {} for head in run.lineages for name in head.rates_by_group
    }
    for head in run.lineages:
        names = list(head.rates_by_group)
        for each in head.described.values():
            if each.group is not None and each.group < len(names):
                members[names[each.group]][each.layer] = None
    jumps = list(rate_jumps(run.axis.steps, shared))
    for rates, layers in zip(groups, members.values(), strict=True):
        jumps += [jump._replace(layers=tuple(layers)) for jump in rate_jumps(run.axis.steps, rates)]
    return joined_jumps(jumps, len(groups))


def resumptions(run: CatalogRun) -> list[Resumption]:
    """Where the training of a run was resumed."""
    resumed, before = [], None
    for lineage in run.lineages:
        start, recorded = lineage.start, lineage.timeline.steps
        if before is not None and start is not None:
            resumed.append(Resumption(start, before))
        if len(recorded):
            before = int(recorded[-1])
    return resumed


def _followed(reader: RunReader) -> list[FollowRecords]:
    """The records of each weight that follows another one."""
    variables = reader.run.variables
    pairs = []
    for follows in reader.follows().pairs:
        pair = follows.pairs[0]
        target, source = variables.get(pair.target), variables.get(pair.source)
        if target is None:
            continue
        distance, covered, moved = follows.values.astype(np.float64)
        rounded = source is not None and source.dtype != target.dtype
        pairs.append(
            FollowRecords(
                target.layer,
                target.role == STATISTIC,
                rounded,
                follows.steps,
                follows.past_steps,
                distance,
                covered,
                moved,
                pair.unequal,
            )
        )
    return pairs


def _ends(summary: RunSummary, number: int) -> tuple[int | None, int | None]:
    """The steps of a layer's first and last records; None without any."""
    steps = summary.steps[summary.rows[number] >= 0]
    return (int(steps[0]), int(steps[-1])) if len(steps) else (None, None)
