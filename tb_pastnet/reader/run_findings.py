"""The findings of some runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tb_pastnet.core.findings import Finding, LayerFacts, RunFacts, Violated, findings
from tb_pastnet.reader.figures import Figures, figures_of
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.store import RunReader


def findings_of(readers: Sequence[RunReader], threshold: float) -> list[Finding]:
    """Reads all layers of some runs, and finds what is worth knowing. See `core.findings`."""
    return findings([_facts(reader, threshold) for reader in readers])


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values: where to see it is a separate object."""
    body = asdict(finding)
    link = {name: body.pop(name) for name in ("view", "layer", "channel")}
    return body | {"link": {**link, "run": body.pop("shown_run"), "step": finding.step}}


def _facts(reader: RunReader, threshold: float) -> RunFacts:
    figures, run = figures_of(reader, threshold), reader.run
    _, violations = reader.list_violations(Notes())
    violated = [
        Violated(*(getattr(violation, name) for name in Violated._fields))
        for violation in violations
    ]
    last = int(figures.steps[-1]) if len(figures.steps) else None
    layers = [_layer(figures, number) for number in range(len(run.layers))]
    return RunFacts(run.name, last, layers, violated, run.account, run.problem)


def _layer(figures: Figures, number: int) -> LayerFacts:
    own = figures.summary.rows[number] >= 0
    states = figures.states.at((number, own))
    return LayerFacts(
        figures.run.layers[number].id,
        figures.channels[number],
        figures.steps[own],
        states.counts,
        states.mean_delta,
        figures.summary.lasting[number],
    )
