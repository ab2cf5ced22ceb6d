"""`report`: what a run did, for a terminal and for scripts."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from tb_pastnet.cli.text import (
    NO_RUNS,
    SHOWN,
    account_text,
    file_size,
    fit,
    overhead_text,
    printable,
    shortened,
    size_of,
    table,
    width,
    write_json,
)
from tb_pastnet.core.channel_states import NAMES
from tb_pastnet.core.counted import counted
from tb_pastnet.core.finding_kinds import SHOWN as MOST_FINDINGS
from tb_pastnet.core.finding_kinds import Finding
from tb_pastnet.core.violation import MOVING_STATISTICS
from tb_pastnet.format.folder import find_runs
from tb_pastnet.reader.index import finite, overhead_of
from tb_pastnet.reader.log import Log, Run, run_alone, runs_findings, states_at_end
from tb_pastnet.reader.records import Layer
from tb_pastnet.reader.run_findings import as_json as finding_json
from tb_pastnet.reader.runs import SINK
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.sketch_series import Travel

STATES = NAMES[1:]
"""All but "no data"."""


def report(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    """Reports the runs of a log directory; matches of `--fail-on` go to `error`.

    Returns 1 if there was a match, or `--fail-on` and no run, else 0.
    """
    log = Log(options.logdir, options.progress)
    files = find_runs(options.logdir)
    chosen = log.runs.chosen(options.run)
    entries: list[dict[str, Any]] = []

    def list_findings() -> list[dict[str, Any]]:
        return [finding_json(finding) for finding in runs_findings(chosen)]

    def of_run(run: Run) -> tuple[dict[str, Any], list[str]]:
        entry = _entry(run, _size(log, run, files), options.threshold)
        if not options.json:
            return entry, list(_of_run(entry, width() - 2))
        json.dumps(entry)  # what can't be printed raises here, for this run only
        return entry, []

    def reading() -> Iterator[tuple[str, list[str]]]:
        for run in chosen:
            entry, lines = run_alone(run, of_run)
            entries.append(entry)
            yield run.name, lines

    if options.json:
        deque(reading(), 0)
        failed = _failures(entries, options.fail_on, log.unopened)
        told = {"findings": list_findings(), "failed": failed, "warnings": list(log.warnings)}
        write_json({"runs": entries, **told}, out)
    else:
        # A long run takes seconds: each is printed as soon as it is read.
        out.writelines(f"{line}\n" for line in _lines(reading(), list_findings, log.warnings))
        if entries:
            logdir = shlex.quote(printable(options.logdir.given))
            out.write(f"\nSee: tensorboard --logdir {logdir}\n")
        failed = _failures(entries, options.fail_on, log.unopened)
    for failure in failed:
        error.write(f"failed: {printable(failure)}\n")
    return int(bool(failed))


def _size(log: Log, run: Run, files: Mapping[str, Sequence[Path]]) -> int:
    """Bytes of the event files of a run, those of its lineages' directories together."""
    tb_runs = log.store.catalog(LOCAL).runs[run.name].tb_runs
    return sum(file_size(path) for tb_run in tb_runs for path in files.get(tb_run, ()))


def _failures(
    entries: Sequence[dict[str, Any]], fail_on: Sequence[str], unopened: int
) -> list[str]:
    if not fail_on:
        return []
    if not entries:
        return ["there is no run"]
    failed = [
        f"the run {run['name']!r} could not be read, so it was not checked"
        for run in entries
        if "problem" in run
    ]
    if unopened and "unreadable" in fail_on:
        failed.append(f"files and directories that can't be opened: {unopened:,}")
    return failed + [
        f"{word} in the run {run['name']!r}: {counted(count, noun)}"
        for word in dict.fromkeys(fail_on)
        for run in entries
        for noun, count in [_counted(word, run)]
        if count
    ]


Count = Callable[[dict[str, Any]], int]

_COUNTS: Mapping[str, tuple[str, Count]] = {
    "violations": ("channel", lambda run: int(run["violated_channels"])),
    "contradictions": ("weight", lambda run: int(run["contradictions"])),
    # A log of an earlier version, or of few records, may have only the note.
    "statistics": (
        "statistic",
        lambda run: (
            run.get("moved_statistics", 0)
            or sum(n for text, n in run["notes"].items() if text.startswith(MOVING_STATISTICS))
        ),
    ),
    "stalled": ("channel", lambda run: int(run["stalled_channels"])),
    "unreadable": ("record", lambda run: int(run["unreadable"])),
    "dropped": ("record", lambda run: int(run["account"]["dropped"])),
    "nonfinite": ("channel", lambda run: sum(layer["nonfinite"] for layer in run["layers"])),
    # The end of a user's own writer is unknown.
    "unfinished": ("run", lambda run: int(run["source"] == SINK and not run["closed"])),
}


def _counted(word: str, run: dict[str, Any]) -> tuple[str, int]:
    """What a word of `--fail-on` counts, and how many: findings if it is a kind of them."""
    if word in _COUNTS:
        noun, count = _COUNTS[word]
        return noun, count(run)
    return "finding", int(run["findings_by_kind"].get(word, 0))


def _entry(run: Run, size: int, threshold: float) -> dict[str, Any]:
    """A run as JSON values."""
    overview, own_steps = states_at_end(run, threshold)
    layers = run.layers
    steps = run.steps
    lost = sum(account.unreadable for account in overview.accounts)
    violations = run.violations
    return {
        "name": run.name,
        "verified": run.verified.as_json(),
        "source": run.source,
        "past": run.past,
        "every": run.every,
        **({"config": run.config} if run.config else {}),
        "closed": run.closed,
        "lineages": len(run.lineages),
        "records": len(steps),
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
        "account": asdict(run.account),
        "overhead": overhead_of(run.overhead),
        "unreadable": run.account.unreadable + lost,
        "sparsity": _newest(overview.sparsity),
        "bytes": size,
        "bytes_per_record": round(size / len(steps), 1) if len(steps) else None,
        "threshold": threshold,
        "travel": _travelled(run.travel),
        "layers": [
            _layer(layers, overview, number) | ({"step": int(step)} if len(steps) else {})
            for number, step in enumerate(own_steps)
        ],
        **_of_findings(run.findings()),
        "violated_channels": len({(item.layer, item.channel) for item in violations}),
        "violations": [asdict(item) | {"largest": finite(item.largest)} for item in violations],
        "notes": dict(run.notes),
        **({"problem": run.problem} if run.problem else {}),
    }


def _of_findings(findings: Sequence[Finding]) -> dict[str, Any]:
    """What the findings of a run count."""
    channels_of: Counter[str] = Counter()
    contradictions = 0
    for finding in findings:
        channels_of[finding.kind] += finding.channels or 0
        if finding.kind == "contradictions":
            contradictions += finding.numbers["weights"]
    return {
        "stalled_channels": channels_of["stalled"],
        **({"moved_statistics": moved} if (moved := channels_of["statistics"]) else {}),
        "contradictions": contradictions,
        "findings_by_kind": Counter(finding.kind for finding in findings),
    }


def _layer(layers: Mapping[str, Layer], overview: Any, number: int) -> dict[str, Any]:
    """A layer at the last record at which it shows a state."""

    def count(name: str) -> int:
        return int(getattr(overview, name)[-1:, number].sum())

    states = {name: count(name) for name in STATES}
    channels = int(overview.channels[number])
    return {
        "layer": overview.layers[number],
        "channels": channels,
        **states,
        "no_data": channels - sum(states.values()),
        "violated": count("violated"),
        "mean_delta": _newest(overview.mean_delta[:, number]),
        "travel": _travelled(layers[overview.layers[number]].travel),
        "pruned_weights": _newest(overview.pruned_weights[:, number]),
        "prunable_weights": int(overview.prunable_weights[number]),
    }


def _travelled(travel: Travel) -> dict[str, Any] | None:
    """How far weights are from their first ones at the newest sketch; None if there is none."""
    if not len(travel.steps):
        return None
    step, distance, error = (values[-1].item() for values in travel)
    return {"step": step, "distance": finite(distance), "error": finite(error)}


def _newest(values: Any) -> float | None:
    return finite(values[-1]) if len(values) else None


def _lines(
    runs: Iterable[tuple[str, Sequence[str]]],
    list_findings: Callable[[], Sequence[dict[str, Any]]],
    warnings: Sequence[str],
) -> Iterator[str]:
    columns, first = width(), True
    for name, lines in runs:
        if not first:
            yield ""
        first = False
        yield f"run {fit(name, columns - 4)}"
        yield from (f"  {line}".rstrip() for line in lines)
    if first:
        yield NO_RUNS
    # All runs were read above.
    if findings := list_findings():
        yield ""
        yield "findings:"
        yield from _texts(findings, MOST_FINDINGS)
    yield from (f"warning: {printable(warning)}" for warning in warnings)


def _of_run(run: dict[str, Any], columns: int) -> Iterator[str]:
    if "problem" in run:
        yield run["problem"]
        return
    yield run["verified"]["text"]
    span = f", steps {run['first_step']} to {run['last_step']}" if run["records"] else ""
    ended = "ended normally" if run["closed"] else "did not end normally, or is still running"
    writers = f"{counted(run['lineages'], 'writer')}; {ended}"
    if run["source"] != SINK:
        writers = "written by tf.summary"
    yield f"{counted(run['records'], 'record')}{span}; {writers}"
    yield account_text(run["account"])
    if run["overhead"] is not None:
        yield overhead_text(run["overhead"])
    each = f", {size_of(run['bytes_per_record'])} per record" if run["bytes_per_record"] else ""
    yield f"{size_of(run['bytes'])} on disk{each}"
    if run["sparsity"] is not None:
        yield f"sparsity {run['sparsity']:.1%}"
    if run["layers"]:
        yield ""
        yield from _table(run["layers"], run["last_step"], columns)
    if run["violations"]:
        yield ""
        weights = len({violation["variable"] for violation in run["violations"]})
        channels = counted(run["violated_channels"], "channel")
        yield f"{channels}, in {counted(weights, 'weight')}, changed while frozen or pruned:"
        yield from _texts(run["violations"])
    for text, count in run["notes"].items():
        yield f"{printable(text)} ({count:,})"


def _texts(entries: Sequence[dict[str, Any]], most: int = SHOWN) -> Iterator[str]:
    lines = shortened(entries, lambda entry: printable(entry["text"]), most)
    yield from (f"  {line}" for line in lines)


def _table(layers: Sequence[dict[str, Any]], last: int | None, columns: int) -> list[str]:
    """The layers at the last record; columns without any entry are left out.

    If the last record shows no state of some layers, a column has the step of one that does.
    """
    is_older = any(layer.get("step", last) != last for layer in layers)
    counts = ("no_data", *STATES, "violated")
    names = ["channels", *(name for name in counts if any(layer[name] for layer in layers))]
    titles = [{"no_data": "no record"}.get(name, name) for name in names]
    head = ("at the last record", *titles, "sparsity", *(["at step"] if is_older else []))
    rows = [
        [*_row(layer, names), *([f"{layer['step']:,}"] if is_older else [])] for layer in layers
    ]
    return table(head, rows, columns)


def _row(layer: dict[str, Any], names: Sequence[str]) -> list[str]:
    weights = layer["pruned_weights"]
    share = "?" if weights is None else f"{weights / max(layer['prunable_weights'], 1):.1%}"
    counts = [layer[name] for name in names]
    return [layer["layer"], *(f"{count:,}" if count else "·" for count in counts), share]
