"""Every event file of a log directory, byte by byte: what in it is ours, and what can't be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tb_pastnet.errors import ForeignRecord, UnknownVersion, UnreadableRecord
from tb_pastnet.format.block import decode_block
from tb_pastnet.format.codecs import codec_of
from tb_pastnet.format.description import Description
from tb_pastnet.format.envelope import unseal
from tb_pastnet.format.events import Event, Value, read_events
from tb_pastnet.format.folder import find_runs
from tb_pastnet.format.frames import Rest, Why
from tb_pastnet.format.tags import (
    PLUGIN,
    RunName,
    parse_run,
)
from tb_pastnet.format.timeline import Timeline

_BUFFER = 1 << 20


@dataclass(frozen=True)
class Fault:
    """Something in a file that isn't whole."""

    # of the frame that it is in, or where the unreadable rest begins; None where it is the file as
    # a whole
    offset: int | None
    # `torn`, `rest`, `unopened` (of the file); `foreign`, `version`, `damaged` (a message of ours
    # that can't be used); `frame` (one that can, in a frame that was altered)
    kind: str
    tag: str  # of the message, "" where there is none
    step: int | None  # of its event, None where there is none
    text: str


@dataclass
class Inspected:
    """One file."""

    path: str  # below the log directory
    run: str  # TensorBoard's name of its run
    lineage: RunName | None  # what that name says where it is a lineage of ours
    size: int = 0  # bytes
    messages: int = 0  # of ours, readable ones and others
    readable: int = 0  # those that can be used
    faults: list[Fault] = field(default_factory=list)  # what isn't whole, in the order of offsets
    # offset and steps of each readable part of the timeline
    recorded: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    # that of the lineage as a readable description tells it, None without one
    first_step: int | None = None


def inspect(logdir: str | os.PathLike[str]) -> Iterator[Inspected]:
    """Inspects all files that hold anything of ours, and those that can't be read."""
    for run, paths in find_runs(logdir).items():
        ours: dict[str, bool] = {}
        for path in paths:
            name = os.fsencode(os.path.relpath(path, logdir)).decode("utf-8", "backslashreplace")
            file = Inspected(name, run, parse_run(run))
            _inspect(path, file, ours)
            if file.messages or file.faults:
                yield file


def _inspect(path: Path, file: Inspected, ours: dict[str, bool]) -> None:
    try:
        with path.open("rb", buffering=_BUFFER) as stream:
            for event in read_events(stream):
                if isinstance(event, Rest):
                    kind = "torn" if event.why is Why.TORN else "rest"
                    file.faults.append(Fault(event.offset, kind, "", None, event.why.value))
                    break
                _look(file, event, ours)
            file.size = stream.seek(0, os.SEEK_END)
    except OSError as error:
        text = f"it can't be opened: {error.strerror or error}"
        file.faults.append(Fault(None, "unopened", "", None, text))


def _look(file: Inspected, event: Event, ours: dict[str, bool]) -> None:
    seen = file.messages
    for value in event.values:
        # What the first value of a tag says holds for all; in our own directories all are ours.
        if ours.setdefault(value.tag, value.metadata.plugin == PLUGIN) or file.lineage:
            _take(file, event, value)
    if file.lineage and not event.intact and file.messages == seen:
        text = "it was altered beyond recognition"
        file.faults.append(Fault(event.offset, "damaged", "", None, text))


def _take(file: Inspected, event: Event, value: Value) -> None:
    file.messages += 1
    try:
        decoded = _decoded(file, value, event.step)
    except UnreadableRecord as error:
        file.faults.append(Fault(event.offset, *_kind(error, value.tag, event.step)))
        return
    file.readable += 1
    if isinstance(decoded, Timeline):
        file.recorded.append((event.offset, tuple(decoded.steps.tolist())))
    elif isinstance(decoded, Description):
        file.first_step = decoded.first_step
    if not event.intact:
        text = "the frame around it was altered; the message itself is whole"
        file.faults.append(Fault(event.offset, "frame", value.tag, event.step, text))


def _kind(error: UnreadableRecord, tag: str, step: int) -> tuple[str, str, int, str]:
    if isinstance(error, ForeignRecord):
        return "foreign", tag, step, "tb_pastnet did not write it"
    if isinstance(error, UnknownVersion):
        return "version", tag, step, "a newer tb_pastnet wrote it; update this one"
    return "damaged", tag, step, "its bytes were changed after they were written, or cut off"


def _decoded(file: Inspected, value: Value, step: int) -> Any:
    data, tag = value.data, value.tag
    if data is None:
        raise ForeignRecord("it holds something else than bytes")
    if file.lineage is None:
        return decode_block(data, tag=tag, step=step, lineage=0)
    codec = codec_of(tag)
    if codec is None:
        # A later version may add tags and kinds; the seal is the same.
        kind: Any = data[5] if len(data) > 5 else 0
        return unseal(data, kind, tag=tag, step=step, lineage=file.lineage.lineage)
    return codec.decode(data, tag=tag, step=step, lineage=file.lineage.lineage)
