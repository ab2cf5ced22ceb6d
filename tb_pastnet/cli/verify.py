"""`verify`: whether what should happen in a training did."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from tb_pastnet.cli.check import inspect
from tb_pastnet.cli.text import NO_RUNS, fit, printable, width, write_json
from tb_pastnet.core.counted import counted
from tb_pastnet.core.expected import (
    FAILS,
    FROZEN,
    HOLDS,
    NO_ANSWER,
    STATISTICS,
    Expectation,
    Outcome,
    sparsity,
    trains,
)
from tb_pastnet.reader.log import Log, Run, run_alone, run_outcomes
from tb_pastnet.reader.series_source import LOCAL

_CODES = {HOLDS: 0, FAILS: 1, NO_ANSWER: 2}
_NOTHING_ASKED = (
    "Could not verify: expected what should have happened, got nothing: the run declares no "
    "expect=. Write --frozen PATTERN or --trains PATTERN."
)


def verify(options: argparse.Namespace, out: TextIO) -> int:
    """Verifies the runs of a log directory.

    Returns 0 if everything that was asked holds in all of them, 1 if something doesn't, and 2 if
    nothing proves the one or the other.
    """
    asked = expectations(options)
    faults: defaultdict[str, int] = defaultdict(int)
    for file in inspect(options.logdir, options.progress):
        faults[file.run] += len(file.faults) + (not file.is_opened)
    log = Log(options.logdir, options.progress)
    tb_runs = {name: run.tb_runs for name, run in log.store.catalog(LOCAL).runs.items()}

    def entry(run: Run) -> dict[str, Any]:
        damage = sum(faults[name] for name in tb_runs[run.name])
        return _entry(run, asked, damage, options)

    entries = [run_alone(run, entry) for run in log.runs.chosen(options.run)]
    result = _joined([each["result"] for each in entries] + [NO_ANSWER] * bool(log.unopened))
    if options.json:
        told = {"result": result, "runs": entries, "warnings": list(log.warnings)}
        write_json(told, out)
    else:
        out.writelines(f"{line}\n" for line in _lines(entries, log.warnings))
    return _CODES[result]


def expectations(options: argparse.Namespace) -> list[Expectation]:
    """What the arguments ask for; raises InvalidArgument for a sparsity that isn't one."""
    return [
        *(Expectation(FROZEN, pattern) for pattern in options.frozen),
        *map(trains, options.trains),
        *map(sparsity, options.sparsity),
        *[Expectation(STATISTICS, "")] * (options.statistics is not None),
    ]


def _entry(
    run: Run, asked: Sequence[Expectation], damage: int, options: argparse.Namespace
) -> dict[str, Any]:
    """A run as JSON values."""
    outcomes = run_outcomes(run, asked, at_end=options.at_end)
    if damage:
        outcomes = [_unread(each, damage) for each in outcomes]
    return {
        "name": run.name,
        "result": _joined([each.result for each in outcomes]),
        "verified": run.verified.as_json(),
        "expectations": [_as_json(each) for each in outcomes],
        **({} if outcomes else {"problem": _NOTHING_ASKED}),
    }


def _joined(results: Sequence[str]) -> str:
    """The result of several: one that fails is enough, and without any there is no answer."""
    if FAILS in results:
        return FAILS
    return HOLDS if set(results) == {HOLDS} else NO_ANSWER


def _unread(outcome: Outcome, damage: int) -> Outcome:
    text = f"{outcome.expectation.text}: {counted(damage, 'part')} of its files can't be read"
    return Outcome(outcome.expectation, NO_ANSWER, f"{text}; see pastnet check")


def _as_json(outcome: Outcome) -> dict[str, Any]:
    expected = outcome.expectation
    return {
        "kind": expected.kind,
        "pattern": expected.pattern,
        "result": outcome.result,
        "text": outcome.text,
        "weights": list(outcome.weights),
        "first_step": outcome.first_step,
    }


def _lines(runs: Sequence[dict[str, Any]], warnings: Sequence[str]) -> Iterator[str]:
    columns = width()
    if not runs:
        yield NO_RUNS
    for run in runs:
        yield f"run {fit(run['name'], columns - 4)}: {run['result']}"
        yield f"  {run['verified']['text']}"
        for each in run["expectations"]:
            yield f"  {each['result']}: {printable(each['text'])}"
        if "problem" in run:
            yield f"  {run['problem']}"
    yield from (f"warning: {printable(warning)}" for warning in warnings)
