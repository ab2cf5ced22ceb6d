"""`check`: what is readable, damaged and superseded, by file and offset."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from tb_pastnet.cli.inspected import Fault, Inspected, inspect
from tb_pastnet.cli.text import account_text, counted, fit, printable, size_of, width
from tb_pastnet.core.account import Account
from tb_pastnet.core.lineage import first_steps_after
from tb_pastnet.format.tags import RunName
from tb_pastnet.reader.log import Log, Run
from tb_pastnet.reader.runs import SINK

SHOWN = 10
"""Faults of a file that are shown to people."""

SCHEMA = 1


def check(logdir: str, out: TextIO, *, as_json: bool = False) -> int:
    """Checks a log directory: 0 where all is whole, else 1. `UnreadableLog` if it is none."""
    files = list(inspect(logdir))
    log = Log(logdir)
    cuts = _cuts(files)
    file_entries = [_entry(file, cuts.get(file.run)) for file in files]
    runs = [_run(run) for run in log.runs.values()]
    is_whole = not any(file.faults for file in files) and not any(
        run["account"]["unreadable"] or run["variables"] for run in runs
    )
    if as_json:
        result = {"schema": SCHEMA, "whole": is_whole, "files": file_entries, "runs": runs,
                 "warnings": list(log.warnings)}  # fmt: skip
        json.dump(result, out, indent=1)
        out.write("\n")
    else:
        for line in _lines(files, file_entries, runs, log):
            out.write(line + "\n")
    return 0 if is_whole else 1


def _cuts(files: Iterable[Inspected]) -> dict[str, int | None]:
    """By the name of each lineage's directory the step from which on it is superseded."""
    starts: dict[RunName, int] = {}
    names: dict[RunName, str] = {}
    for file in files:
        if file.lineage is None:
            continue
        names[file.lineage] = file.run
        own = [step for _, steps in file.recorded for step in steps[:1]]
        if own and file.first_step is not None:
            own.append(file.first_step)
        if file.lineage in starts:
            own.append(starts[file.lineage])
        if own:
            starts[file.lineage] = min(own)
    cuts: dict[str, int | None] = {}
    for run in {name.run for name in names}:
        ordered = sorted(name for name in names if name.run == run)
        firsts = first_steps_after([starts.get(name) for name in ordered])
        cuts |= {names[name]: cut for name, cut in zip(ordered, firsts, strict=True)}
    return cuts


def _entry(file: Inspected, cut: int | None) -> dict[str, Any]:
    """A file as JSON values."""
    gone = [
        (step, offset)
        for offset, steps in file.recorded
        for step in steps
        if cut is not None and step >= cut
    ]
    superseded = None
    if gone:
        step, offset = min(gone)
        superseded = {"records": len(gone), "first_step": step, "offset": offset}
    return {
        "file": file.path,
        "run": file.run,
        "bytes": file.size,
        "messages": file.messages,
        "readable": file.readable,
        "records": sum(len(steps) for _, steps in file.recorded),
        "superseded": superseded,
        "faults": [asdict(fault) for fault in file.faults],
    }


def _run(run: Run) -> dict[str, Any]:
    """A run as JSON values; of its variables those that lack records which could not be read."""
    accounts = {variable.id: variable.account for variable in run.variables.values()}
    return {
        "name": run.name,
        "closed": run.closed,
        "source": run.source,
        "account": asdict(run.account),
        "variables": {
            name: asdict(account) for name, account in accounts.items() if account.unreadable
        },
        "notes": dict(run.notes),
    }


def _lines(
    files: Sequence[Inspected],
    entries: Sequence[dict[str, Any]],
    runs: Sequence[dict[str, Any]],
    log: Log,
) -> Iterator[str]:
    columns = width()
    if not files and not runs:
        yield "No run of tb_pastnet. Give the directory that training wrote to, or one above it."
    for file, entry in zip(files, entries, strict=True):
        yield fit(file.path, columns)
        yield from (f"  {line}" for line in _of_file(file, entry, columns))
    for run in runs:
        yield ""
        yield f"run {fit(run['name'], columns - 4)}"
        ended = "" if run["closed"] or run["source"] != SINK else "; did not end in order"
        yield f"  {account_text(Account(**run['account']))}{ended}"
        for name, account in run["variables"].items():
            yield f"  {fit(name, columns // 2)}: {account_text(Account(**account))}"
        yield from (f"  {printable(text)} ({count:,})" for text, count in run["notes"].items())
    yield from (f"warning: {printable(warning)}" for warning in log.warnings)


def _of_file(file: Inspected, entry: dict[str, Any], columns: int) -> Iterator[str]:
    state = "whole" if not file.faults else counted(len(file.faults), "fault")
    messages = f"{file.readable:,} of {counted(file.messages, 'message')} readable"
    yield f"{size_of(file.size)}, {messages}; {state}"
    superseded = entry["superseded"]
    if superseded:
        records = counted(superseded["records"], "record")
        step, offset = superseded["first_step"], superseded["offset"]
        yield f"{records} superseded from step {step} on, offset {offset:,}"
    yield from (_fault(fault, columns) for fault in file.faults[:SHOWN])
    if len(file.faults) > SHOWN:
        yield f"and {len(file.faults) - SHOWN:,} more; --json tells all"


def _fault(fault: Fault, columns: int) -> str:
    place = "" if fault.offset is None else f"offset {fault.offset:,}"
    if fault.step is not None:
        place += f", {fit(fault.tag, columns // 2)}, step {fault.step}"
    return f"{place}: {fault.text}" if place else fault.text
