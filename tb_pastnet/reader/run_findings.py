"""What there is to know of some runs, from what the log holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tb_pastnet.core.facts import LayerFacts, RunFacts, Violated
from tb_pastnet.core.findings import Finding, findings
from tb_pastnet.reader.figures import Figures, figures_of
from tb_pastnet.reader.marked import marks_of
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.violation_list import MOST, listed


def findings_of(
    store: Store, caller: Caller, runs: Sequence[Run], threshold: float
) -> list[Finding]:
    """Reads all layers of some runs, and finds what there is to know. See `core.findings`.

    Args:
        store: the records.
        caller: on whose behalf.
        runs: from the catalog.
        threshold: relative delta under which a channel is quiet.
    """
    return findings([_facts(store, caller, run, threshold) for run in runs])


def told(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values: where to see it stands apart."""
    body = asdict(finding)
    link = {name: body.pop(name) for name in ("view", "layer", "channel")}
    return body | {"link": {**link, "run": body.pop("shown_run"), "step": finding.step}}


def _facts(store: Store, caller: Caller, run: Run, threshold: float) -> RunFacts:
    figures = figures_of(store, caller, run, threshold)
    held = store.held(caller, run)
    _, entries = listed(run, held.violations, marks_of(store, caller, run, Notes()), most=MOST)
    violated = [Violated(*(entry[name] for name in Violated._fields)) for entry in entries]
    last = int(figures.steps[-1]) if len(figures.steps) else None
    layers = [_layer(figures, at) for at in range(len(figures.rows))]
    return RunFacts(run.name, last, layers, violated, run.account)


def _layer(figures: Figures, at: int) -> LayerFacts:
    row, stalled = figures.rows[at], figures.digest.stalled[at]
    own = figures.digest.places[at] >= 0
    return LayerFacts(
        figures.layers[at].id,
        figures.channels[at],
        figures.steps[own],
        row.counts[own],
        row.nonfinite[own],
        row.mean_delta[own],
        stalled.channels,
        stalled.since,
    )
