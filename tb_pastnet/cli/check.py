"""`check`: readable, damaged and superseded data, by file and offset."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tb_pastnet.cli.text import (
    NO_RUNS,
    account_text,
    file_size,
    fit,
    printable,
    shortened,
    size_of,
    width,
    write_json,
)
from tb_pastnet.core.counted import counted
from tb_pastnet.core.lineage import first_steps_after
from tb_pastnet.core.statistics import MASK_ROWS
from tb_pastnet.errors import DamagedRecord, ForeignRecord, UnknownVersion, UnreadableRecord
from tb_pastnet.format.block import Heads, open_block
from tb_pastnet.format.budget import CELLS
from tb_pastnet.format.codecs import CODECS, codec_of
from tb_pastnet.format.envelope import Kind, unseal
from tb_pastnet.format.events import Event, Value, read_events
from tb_pastnet.format.folder import find_runs
from tb_pastnet.format.frames import Rest, Why
from tb_pastnet.format.layout import ROWS
from tb_pastnet.format.tags import PLUGIN, RunName, parse_run
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader import notes
from tb_pastnet.reader.isolation import Problem, attempt
from tb_pastnet.reader.log import Log, Run, run_alone
from tb_pastnet.reader.runs import SINK
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.threads import Progress, unseen

_BUFFER = 1 << 20
_PART = 1 << 20
"""Bytes between two looks at how far it is."""


@dataclass(frozen=True)
class Fault:
    """A damaged or unreadable part of a file."""

    # of its frame, or of the beginning of the unreadable rest; None for the whole file
    offset: int | None
    # `torn`, `rest`, `unopened`, `unchecked` (of the file); `foreign`, `version`, `damaged` (one of
    # our messages that can't be used); `frame` (one that can, in a frame that was altered)
    kind: str
    tag: str  # of the message, "" where there is none
    step: int | None  # of its event, None if there is none
    text: str


@dataclass
class _Work:
    """The work that is left for the messages of one run."""

    left: int = CELLS.free
    heads: Heads = field(default_factory=dict)

    def affords(self, work: int, stored: int) -> bool:
        """Whether a message is still within the budget of its run."""
        self.left += CELLS.per_byte * stored - work
        return self.left >= 0


@dataclass
class Inspected:
    """One file."""

    path: str  # below the log directory
    run: str  # TensorBoard's name of its run
    lineage: RunName | None  # that name, parsed, if it is one of our lineages
    size: int = 0  # bytes
    messages: int = 0  # our messages, readable or not
    readable: int = 0  # those that can be used
    is_opened: bool = True  # whether all of these were opened: not, if that is too much work
    faults: list[Fault] = field(default_factory=list)  # its faults, in the order of offsets
    # offset and steps of each readable part of the timeline
    recorded: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)


def check(options: argparse.Namespace, out: TextIO) -> int:
    """Checks a log directory: 0 if everything is intact, else 1."""
    inspected = list(inspect(options.logdir, options.progress))
    log = Log(options.logdir, options.progress)
    cuts: dict[str, int | None] = {}
    doubtful = {file.run for file in inspected if file.faults or not file.is_opened}
    runs = [
        run_alone(run, lambda run: _run_entry(log, run, cuts, doubtful))
        for run in log.runs.values()
    ]
    files = [_entry(file, cuts.get(file.run)) for file in inspected]
    is_whole = not (log.unopened or any(file["faults"] for file in files)) and not any(
        "problem" in run
        or run["account"]["unreadable"]
        or run["variables"]
        or notes.IN_PART in run["notes"]
        for run in runs
    )
    warnings = list(log.warnings)
    if options.json:
        result = {"whole": is_whole, "files": files, "runs": runs, "warnings": warnings}
        write_json(result, out)
    else:
        out.writelines(f"{line}\n" for line in _lines(files, runs, warnings))
    return 0 if is_whole else 1


def inspect(logdir: str | os.PathLike[str], progress: Progress = unseen) -> Iterator[Inspected]:
    """Inspects all files with our data, and those that can't be read."""
    files = [(run, path) for run, paths in find_runs(logdir).items() for path in paths]
    parts = sum(1 + file_size(path) // _PART for _, path in files)
    for file in progress(_parts(logdir, files), "Checking files", parts):
        if file and (file.messages or file.faults):
            yield file


def _parts(
    logdir: str | os.PathLike[str], files: Sequence[tuple[str, Path]]
) -> Iterator[Inspected | None]:
    """Each file when it is inspected; None for each part of it before that."""
    ours: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    work: defaultdict[str, _Work] = defaultdict(_Work)
    for run, path in files:
        name = os.fsencode(os.path.relpath(path, logdir)).decode("utf-8", "backslashreplace")
        file = Inspected(name, run, parse_run(run))
        name = file.lineage.run if file.lineage else run
        parts = _inspect(path, file, ours[run], work[name])
        while (part := attempt(partial(next, parts, file))) is None:
            yield part
        if isinstance(part, Problem):
            text = f"{part.log(run)}; the rest of the file was not checked"
            file.faults.append(Fault(None, "unchecked", "", None, text))
        yield file


def _inspect(path: Path, file: Inspected, ours: dict[str, bool], work: _Work) -> Iterator[None]:
    """Fills `file` from its bytes, and pauses after each part of them."""
    due = _PART
    try:
        with path.open("rb", buffering=_BUFFER) as stream:
            for event in read_events(stream):
                if isinstance(event, Rest):
                    kind = "torn" if event.why is Why.TORN else "rest"
                    file.faults.append(Fault(event.offset, kind, "", None, event.why.value))
                    break
                _look(file, event, ours, work)
                if event.offset >= due:
                    due = event.offset + _PART
                    yield
            file.size = stream.seek(0, os.SEEK_END)
    except OSError as error:
        text = f"it can't be opened: {error.strerror or error}"
        file.faults.append(Fault(None, "unopened", "", None, text))


def _look(file: Inspected, event: Event, ours: dict[str, bool], work: _Work) -> None:
    seen = file.messages
    for value in event.values:
        # The metadata of a tag's first value hold for all; in our own directories all are ours.
        if ours.setdefault(value.tag, value.metadata.plugin == PLUGIN) or file.lineage:
            _take(file, event, value, work)
    if file.lineage and not event.intact and file.messages == seen:
        text = "it was altered and can't be recognised"
        file.faults.append(Fault(event.offset, "damaged", "", None, text))


def _take(file: Inspected, event: Event, value: Value, work: _Work) -> None:
    file.messages += 1
    try:
        decoded = _decoded(file, value, event.step, work)
    except UnreadableRecord as error:
        kind, text = _UNREADABLE[type(error)]
        file.faults.append(Fault(event.offset, kind, value.tag, event.step, text))
        return
    file.readable += 1
    if isinstance(decoded, Timeline):
        file.recorded.append((event.offset, tuple(decoded.steps.tolist())))
    if not event.intact:
        text = "the frame around it was altered; the message itself is intact"
        file.faults.append(Fault(event.offset, "frame", value.tag, event.step, text))


_UNREADABLE: dict[type[UnreadableRecord], tuple[str, str]] = {
    ForeignRecord: ("foreign", "tb_pastnet did not write it"),
    UnknownVersion: ("version", "a newer tb_pastnet wrote it; update this one"),
    DamagedRecord: ("damaged", "its bytes were changed after they were written, or cut off"),
}


def _decoded(file: Inspected, value: Value, step: int, work: _Work) -> Any:
    data, tag = value.data, value.tag
    if data is None:
        raise ForeignRecord("it doesn't hold bytes")
    lineage = file.lineage.lineage if file.lineage else 0
    codec = codec_of(tag) if file.lineage else CODECS[Kind.CHANNELS]
    if codec is None or not work.affords(codec.work(data), len(data)):
        # A later version may add tags and kinds; the seal is the same. Beyond the budget, the seal
        # has to do.
        file.is_opened = file.is_opened and codec is None
        kind: Any = data[5] if len(data) > 5 else 0
        return unseal(data, kind, tag=tag, step=step, lineage=lineage)
    if codec is CODECS[Kind.CHANNELS]:
        # What is left to decode can't fail.
        return open_block(data, tag=tag, step=step, lineage=lineage, heads=work.heads)
    return codec.decode(data, tag=tag, step=step, lineage=lineage)


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


def _run_entry(
    log: Log, run: Run, cuts: dict[str, int | None], doubtful: set[str]
) -> dict[str, Any]:
    """A run as JSON values, with the variables that have unreadable records.

    `cuts` gets the step from which each of its lineages is superseded, by the name of its
    directory. Directories are `doubtful` if not each of their messages is known to be intact.
    """
    reader = log.store.reader(LOCAL, log.store.catalog(LOCAL).runs[run.name])
    heads = () if run.problem else reader.run.lineages
    firsts = first_steps_after([head.start for head in heads])
    cuts |= {head.tb_run: cut for head, cut in zip(heads, firsts, strict=True)}
    run.overview(latest=1)  # what other commands can't read raises here
    rows = MASK_ROWS if doubtful.isdisjoint(reader.run.tb_runs) else ROWS
    accounts = {} if run.problem else reader.accounts(rows)
    return {
        "name": run.name,
        "closed": run.closed,
        "source": run.source,
        "account": asdict(run.account),
        "variables": {
            name: asdict(account) for name, account in accounts.items() if account.unreadable
        },
        "notes": dict(run.notes),
        **({"problem": run.problem} if run.problem else {}),
    }


def _lines(
    files: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]], warnings: Sequence[str]
) -> Iterator[str]:
    columns = width()
    if not files and not runs:
        yield NO_RUNS
    for file in files:
        yield fit(file["file"], columns)
        yield from (f"  {line}" for line in _of_file(file, columns))
    for run in runs:
        yield ""
        yield f"run {fit(run['name'], columns - 4)}"
        if "problem" in run:
            yield f"  {run['problem']}"
            continue
        ended = "" if run["closed"] or run["source"] != SINK else "; did not end normally"
        yield f"  {account_text(run['account'])}{ended}"
        for name, account in run["variables"].items():
            yield f"  {fit(name, columns // 2)}: {account_text(account)}"
        yield from (f"  {printable(text)} ({count:,})" for text, count in run["notes"].items())
    yield from (f"warning: {printable(warning)}" for warning in warnings)


def _of_file(file: dict[str, Any], columns: int) -> Iterator[str]:
    state = counted(len(file["faults"]), "fault") if file["faults"] else "whole"
    messages = f"{file['readable']:,} of {counted(file['messages'], 'message')} readable"
    yield f"{size_of(file['bytes'])}, {messages}; {state}"
    if superseded := file["superseded"]:
        records = counted(superseded["records"], "record")
        step, offset = superseded["first_step"], superseded["offset"]
        yield f"{records} superseded from step {step} on, offset {offset:,}"
    yield from shortened(file["faults"], lambda fault: _fault(fault, columns))


def _fault(fault: dict[str, Any], columns: int) -> str:
    place = "" if fault["offset"] is None else f"offset {fault['offset']:,}"
    if fault["step"] is not None:
        place += f", {fit(fault['tag'], columns // 2)}, step {fault['step']}"
    return f"{place}: {fault['text']}" if place else str(fault["text"])
