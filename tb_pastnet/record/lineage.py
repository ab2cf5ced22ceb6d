"""One lineage of a log: its files, what each of them says of itself first, and its sink."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.description import Description, decode_description, encode_description
from tb_pastnet.format.tags import TAG_DESCRIPTION, RunName, lineage_directory
from tb_pastnet.record.batch import Batch, spans_of
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.messages import Message, read_messages
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.record import Probing
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.segments import (
    Segments,
    create_lineage,
    join,
    lineages,
    list_directory,
    open_to_read,
    unwritable,
)
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.source import Source


class Lineage:
    """Writes the files of a lineage, by a sink that is made once it is known how it begins."""

    def __init__(self, run: RunName, source: Source, probe: Probing | None) -> None:
        self._run = run
        self._source = source
        self._probe = probe
        self._segments = Segments(_directory(run), time.time())

    @classmethod
    def first(cls, logdir: str, source: Source, probe: Probing | None) -> Lineage:
        """That of a Recorder that is made; raises UnwritableLog."""
        lineage = cls(create_lineage(logdir), source, probe)
        try:
            lineage._segments.open()
        except Exception as error:
            raise unwritable(logdir, error) from error
        return lineage

    def next(self) -> Lineage:
        """The one that begins where training begins anew."""
        run = RunName(self._run.run, self._run.ordinal + 1, secrets.randbits(32) or 1)
        return Lineage(run, self._source, self._probe)

    def sink(
        self,
        schedule: Schedule,
        tracker: MaskTracker,
        failures: Failures,
        totals: OverheadTotals,
        *,
        resumed: bool,
    ) -> Sink:
        """Makes the sink; `resumed` has the origin of the lineage before it, if there is one."""
        source, network = self._source, self._source.network
        own_origin, audited = tracker.origin, tracker.audited

        @cache
        def description(first_step: int) -> Description:
            # By the thread that writes, as it reads files.
            return Description(
                lineage=self._run.lineage,
                ordinal=self._run.ordinal,
                origin=(inherited_origin(self._run) if resumed else None) or own_origin,
                every=schedule.every,
                past=str(schedule.past),
                first_step=first_step,
                created=time.time(),
                versions=_versions(source.packages),
                layers=network.layers,
                variables=tuple(weight.text for weight in network.weights),
                skipped=network.skipped,
                audited=audited,
            )

        def describe(first_step: int, step: int) -> Message:
            sealed = encode_description(description(first_step), tag=TAG_DESCRIPTION, step=step)
            return Message(TAG_DESCRIPTION, step, sealed)

        batch = Batch(spans_of(network.weights), self._run.lineage, probe=self._probe)
        return Sink(self._segments, batch, describe, failures, totals)

    def close(self) -> None:
        """Closes the files of a lineage that has no sink."""
        self._segments.close()


def inherited_origin(run: RunName) -> str | None:
    """The origin of the newest lineage before another one that has a readable one; None without."""
    earlier = [lineage for lineage in lineages(run.run) if lineage.ordinal < run.ordinal]
    return next(filter(None, map(_read_origin, reversed(earlier))), None)


def _read_origin(run: RunName) -> str | None:
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
