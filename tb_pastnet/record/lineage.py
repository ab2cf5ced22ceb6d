"""One lineage of a log: its files, the description at the head of each, and its sink."""

from __future__ import annotations

import os
import secrets
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from tb_pastnet.core.expected import words_of
from tb_pastnet.core.lineage import run_number
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.description import Description, decode_description, encode_description
from tb_pastnet.format.files import (
    base_name,
    is_remote,
    join,
    list_directory,
    located,
    open_to_read,
    remove_directory,
)
from tb_pastnet.format.fitting import group_names
from tb_pastnet.format.limits import MAX_GROUPS
from tb_pastnet.format.tags import DESCRIPTIONS, TAG_DESCRIPTION, RunName, lineage_directory
from tb_pastnet.record.batch import Batch, spans_of
from tb_pastnet.record.failures import LOGGER, Failures
from tb_pastnet.record.lineage_writer import LineageWriter
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.messages import Message, read_messages
from tb_pastnet.record.options import Options
from tb_pastnet.record.run_lock import RunLock
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.segments import (
    Segments,
    create_lineage,
    lineages,
    make_directory,
    segments_in,
    unwritable,
)
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.source import Probing, Source
from tb_pastnet.record.weight import ORIGIN

TRIAL = "{trial}"
"""Placeholder for the number of a training in the name of a log directory."""

_WRITING: dict[RunName, tuple[weakref.ref[Sink], str]] = {}
"""The lineages of this process, and their origins: their files may not contain them yet."""


class Recorded(NamedTuple):
    """What all lineages of a Recorder are made from."""

    source: Source
    schedule: Schedule
    tracker: MaskTracker
    failures: Failures
    probe: Probing | None
    options: Options


class Lineage:
    """Writes the files of a lineage, with a sink that is made once its beginning is known.

    Attributes:
        lock: of the run, which the next lineage also has.
        groups: the source's groups of weights with their own learning rate.
    """

    def __init__(self, run: RunName, lock: RunLock, recorded: Recorded) -> None:
        self.run = run
        self.lock = lock
        self._recorded = recorded
        self._segments = self._new_segments()
        self._earlier: EarlierRuns | None = None
        self.groups: Mapping[str, Collection[str]] = {}

    @classmethod
    def first(cls, logdir: str, recorded: Recorded) -> Lineage:
        """The lineage of a new Recorder; raises UnwritableLog."""
        try:
            logdir = located(logdir)
        except OSError as error:
            raise unwritable(logdir, error) from error
        if not is_remote(logdir):
            # The program may change its directory later.
            logdir = os.path.abspath(logdir)  # noqa: PTH100 - a Path would follow no `..`
        earlier, start = EarlierRuns(logdir), recorded.schedule.last
        if earlier.has_former_origins:
            # Now: the weights are those of the beginning.
            earlier.former = recorded.source.network.former_origin()
        number = 0
        if start is not None:
            number = earlier.number(recorded.tracker.origin, resumes=start > 0)
        home, lock = earlier.free(number)
        lineage = cls(_create(home), lock, recorded)
        lineage._earlier = earlier if start is None else None
        try:
            lineage._segments.open()
        except Exception as error:
            raise unwritable(home, error) from error
        return lineage

    def next(self) -> Lineage:
        """The next lineage, when training starts again."""
        run = RunName(self.run.run, self.run.ordinal + 1, secrets.randbits(32) or 1)
        return Lineage(run, self.lock, self._recorded)

    @property
    def exit_seconds(self) -> float:
        """How long the program waits at its end for unwritten records."""
        return self._segments.exit_seconds

    def _settle(self, origin: str, *, resumes: bool) -> None:
        """Moves to the run that it belongs to, if only now that turns out to be another one."""
        earlier, self._earlier = self._earlier, None
        if earlier is None:
            return
        number = earlier.number(origin, resumes=resumes)
        if earlier.home(number) == self.run.run:
            return
        home, lock = earlier.free(number)
        self.lock.release()
        self.lock = lock
        if home == self.run.run:
            return
        self._segments.close()
        with suppress(FileNotFoundError):  # in a store it has no object yet
            remove_directory(_directory(self.run))
        self.run = _create(home)
        self._segments = self._new_segments()

    def _new_segments(self) -> Segments:
        return segments_in(_directory(self.run), time.time(), self._recorded.options.exit_timeout)

    def begin(self, sink: Sink, *, resumed: bool) -> None:
        """Lets a sink write it; `resumed` has the origin of the lineage before it, if any."""
        source, schedule, tracker, failures, probe = self._recorded[:5]
        self.groups = source.rate_groups()
        if len(self.groups) > MAX_GROUPS:
            failures.add(
                f"Could not record all learning rates: expected at most {MAX_GROUPS} groups of "
                f"weights, got {len(self.groups)}"
            )
        self._settle(tracker.origin, resumes=resumed)
        run, packages, template = self.run, source.packages, self._template()

        # On the writing thread, because it reads files. Neither the lineage nor the network is
        # held: a sink that isn't closed ends with the Recorder.
        @cache
        def description(first_step: int) -> Description:
            return replace(
                template,
                origin=(inherited_origin(run) if resumed else None) or template.origin,
                first_step=first_step,
                created=time.time(),
                versions=_versions(packages),
            )

        def describe(first_step: int, step: int) -> list[Message]:
            text = description(first_step)
            return [
                Message(tag, step, encode_description(text, tag=tag, step=step))
                for tag in DESCRIPTIONS
            ]

        sketched = set(map(id, source.network.sketched))
        numbers = [n for n, each in enumerate(source.network.weights) if id(each) in sketched]
        spans = spans_of(source.network.weights)
        batch = Batch(spans, run.lineage, probe, numbers, template.together)
        totals = schedule.timer.totals
        parts = self._segments, batch, describe, totals, sink.deferred
        sink.begin(LineageWriter(*parts, tracker.accounts[-1]))
        # One that resumes has the origin of those before it.
        _WRITING[run] = weakref.ref(sink), "" if resumed else template.origin

    def _template(self) -> Description:
        """The description without what only the writer thread knows."""
        source, schedule, tracker = self._recorded[:3]
        network = source.network
        groups = list(self.groups.values())[:MAX_GROUPS]
        group_of = {name: number for number, names in enumerate(groups) for name in names}
        return Description(
            lineage=self.run.lineage,
            ordinal=self.run.ordinal,
            origin=tracker.origin,
            every=schedule.every,
            past=str(schedule.past),
            first_step=0,
            created=0.0,
            versions={},
            layers=network.layers,
            variables=tuple(
                replace(weight.text, group=group_of.get(weight.name)) for weight in network.weights
            ),
            skipped=network.skipped,
            audited=tracker.audited,
            probe_every=schedule.probe_every,
            groups=group_names(self.groups),
            config=self._recorded.options.config or {},
            together=network.together,
            expect=words_of(self._recorded.options.expect),
        )

    def close(self) -> None:
        """Closes the files of a lineage that has no sink."""
        self._segments.close()


class EarlierRuns:
    """The runs in a log directory when a Recorder is made; raises UnwritableLog.

    Attributes:
        former: what the origin of the new training would have been called before; "": unknown.
    """

    def __init__(self, logdir: str) -> None:
        self._logdir = logdir
        self.former = ""
        # Then each new training is a new run.
        self._numbered = TRIAL in logdir
        # Of each run; None of one that has recorded nothing.
        self._origins: list[str | None] = []
        try:
            while earlier := _lineages(self.home(len(self._origins))):
                origins = filter(None, map(_known_origin, reversed(earlier)))
                self._origins.append(next(origins, None))
        except Exception as error:
            raise unwritable(logdir, error) from error

    def home(self, number: int) -> str:
        """The directory of a run, by its number, from 0."""
        if self._numbered:
            return self._logdir.replace(TRIAL, str(number + 1))
        own = f"{base_name(self._logdir)}_{number + 1}"
        return join(self._logdir, own) if number else self._logdir

    @property
    def has_former_origins(self) -> bool:
        """Whether a run has an origin of the kind that logs had before."""
        return any(known and not known.startswith(ORIGIN) for known in self._origins)

    def number(self, origin: str, *, resumes: bool) -> int:
        """The number of the run that a training continues, or of a new one."""
        if origin not in self._origins and self.former in self._origins:
            origin = self.former
        # So is one with the beginning of an earlier one, as of a loaded model, whatever its step.
        is_new = self._numbered and (not resumes or origin in self._origins)
        wanted = "" if is_new else origin
        number = run_number(wanted, self._origins, resumes=resumes and not is_new)
        if number == len(self._origins) and number and not self._numbered:
            text = "Recording into %s: %s holds the log of a model with different initial weights."
            LOGGER.warning(text, self.home(number), self._logdir)
        return number

    def free(self, number: int) -> tuple[str, RunLock]:
        """The directory of a run, and its lock; a new run if another process writes this one."""
        while True:
            home = self.home(number)
            if not is_remote(home):
                with suppress(OSError):  # reported where files are made
                    make_directory(home)
            lock = RunLock(home)
            if lock.take():
                return home, lock
            number = max(number + 1, len(self._origins))
            if not self._numbered:
                text = "Recording into %s: another process is recording into %s."
                LOGGER.warning(text, self.home(number), home)


def _lineages(home: str) -> list[RunName]:
    """The lineages of a run, in order, including those of which a store has no object yet."""
    if not is_remote(home):
        return lineages(home)
    return sorted({*lineages(home), *(run for run in _origins_here() if run.run == home)})


def _origins_here() -> dict[RunName, str]:
    """The origins of the lineages that this process is writing; "": unknown."""
    origins = {}
    for run, (reference, origin) in list(_WRITING.items()):
        sink = reference()
        if sink is not None and sink.alive:
            origins[run] = origin
        else:
            _WRITING.pop(run, None)
    return origins


def _create(home: str) -> RunName:
    return create_lineage(home, [run for run in _origins_here() if run.run == home])


def inherited_origin(run: RunName) -> str | None:
    """The origin of the newest earlier lineage with a readable one; None without."""
    earlier = [lineage for lineage in _lineages(run.run) if lineage.ordinal < run.ordinal]
    return next(filter(None, map(_read_origin, reversed(earlier))), None)


def _known_origin(run: RunName) -> str | None:
    """None if it can't be read: that is no reason not to train."""
    with suppress(Exception):
        return _read_origin(run)
    return None


def _read_origin(run: RunName) -> str | None:
    if origin := _origins_here().get(run):
        return origin
    for name in sorted(list_directory(_directory(run))):
        with open_to_read(join(_directory(run), name)) as stream:
            for message in read_messages(stream):
                if message.tag != TAG_DESCRIPTION:
                    continue
                try:
                    return decode_description(
                        message.payload, tag=message.tag, step=message.step, lineage=run.lineage
                    ).origin
                except UnreadableRecord:
                    break
    return None


def _directory(run: RunName) -> str:
    return join(run.run, lineage_directory(run.ordinal, run.lineage))


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in ("tb-pastnet", *packages):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
