"""The findings of some runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tb_pastnet.core.findings import Finding, LayerFacts, RunFacts, Violated, findings
from tb_pastnet.reader.figures import RunSummary, summary_of
from tb_pastnet.reader.frozen_statistics import statistics_of
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.store import RunReader


def findings_of(readers: Sequence[RunReader]) -> list[Finding]:
    """Reads all layers of some runs, and finds what is worth knowing. See `core.findings`."""
    return findings([_facts(reader) for reader in readers])


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values: where to see it is a separate object."""
    body = {"kind": finding.kind, "severity": finding.severity, **asdict(finding)}
    link = {name: body.pop(name) for name in ("view", "layer", "channel")}
    return body | {"link": {**link, "run": body.pop("shown_run"), "step": finding.first_step}}


def _facts(reader: RunReader) -> RunFacts:
    summary, run = summary_of(reader), reader.run
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
        )
        for number, layer in enumerate(run.layers)
    ]
    facts = last, layers, violated, run.account, run.problem, run.closed
    return RunFacts(run.name, *facts, statistics_of(reader, summary))


def _ends(summary: RunSummary, number: int) -> tuple[int | None, int | None]:
    """The steps of a layer's first and last records; None without any."""
    steps = summary.steps[summary.rows[number] >= 0]
    return (int(steps[0]), int(steps[-1])) if len(steps) else (None, None)
