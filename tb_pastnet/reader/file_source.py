"""A log directory instead of TensorBoard: what the tab asks for, read from the event files.

The rules are those of TensorBoard's fast loader. The first value of a tag defines the plugin and
kind of its series, and values of another kind are left out. A step that doesn't grow replaces what
was stored from there on. Only the location of each value is kept in memory, about 40 bytes per
value.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.events import Event, Metadata, Value, read_events
from tb_pastnet.format.folder import find_runs
from tb_pastnet.format.frames import Rest, read_again
from tb_pastnet.format.tags import PLUGIN
from tb_pastnet.reader.isolation import attempt
from tb_pastnet.reader.local_log import LocalLog
from tb_pastnet.reader.series_source import (
    ALL,
    Listing,
    Reading,
    Readings,
    RequestContext,
    SeriesSource,
    SeriesVersion,
    StoredMessage,
    count_standing,
)

_BUFFER = 1 << 20
_APART = 1 << 14
_DATA_CLASS_TENSOR = 2
_TENSORS = ("tensor", "histo", None)  # the fields that TensorBoard turns into a tensor


class StoredValue(NamedTuple):
    """The location of a value: the file of the run, its frame's offset, its event's times.

    The frame is recognised by the length and the checksum of its payload. The bytes of the value
    begin at a position there, -1 if it isn't bytes.
    """

    file: int
    offset: int
    step: int
    wall_time: float
    length: int
    checksum: int
    begin: int
    size: int


_COLUMNS = "lqqdqQqq"  # of a series: the types of arrays


class FileSeries:
    """The locations of one tag's values in one run; the first value has the metadata."""

    def __init__(self, metadata: Metadata) -> None:
        self.content = metadata.content
        self._ours = metadata.plugin == PLUGIN and metadata.data_class == _DATA_CLASS_TENSOR
        self._columns: list[array[Any]] = [array(code) for code in _COLUMNS]
        self._steps, self._walls = self._columns[2:4]

    @property
    def ours(self) -> bool:
        """Whether it holds our tensors."""
        return self._ours and len(self._steps) > 0

    @property
    def version(self) -> SeriesVersion:
        """The same as listed by TensorBoard."""
        return SeriesVersion(self._steps[-1], repr(max(self._walls)), self.content)

    def add(self, file: int, event: Event, value: Value) -> None:
        """Adds the next value of the tag, from an event in a file."""
        if not self._ours:
            return
        count = count_standing(self._steps, event.step)
        if count < len(self._steps):
            for column in self._columns:
                del column[count:]
        if value.proto.WhichOneof("value") in _TENSORS:
            stored = _stored(file, event, value.data)
            for column, number in zip(self._columns, stored, strict=True):
                column.append(number)

    def __iter__(self) -> Iterator[StoredValue]:
        """The locations of its values, oldest first."""
        return map(StoredValue, *self._columns)


def _stored(file: int, event: Event, data: bytes | None) -> StoredValue:
    offset, payload, checksum = event.frame
    # Equal bytes at another place are as good.
    begin = -1 if data is None else payload.find(data)
    place = len(payload), checksum, begin, len(data or b"")
    return StoredValue(file, offset, event.step, event.wall_time, *place)


class Scan(NamedTuple):
    """The content of the event files of one run."""

    series: dict[str, FileSeries]  # our series, by tag
    begun: bool  # whether there is any event; without one TensorBoard doesn't list the run
    unopened: int  # how many files could not be read


def scan(files: Iterable[Path]) -> Scan:
    """Finds the series of a run in its event files, reading them once."""
    by_tag: dict[str, FileSeries] = {}
    begun, unopened = False, 0
    for number, path in enumerate(files):
        try:
            with path.open("rb", buffering=_BUFFER) as stream:
                for event in read_events(stream):
                    if isinstance(event, Rest):
                        break
                    begun = True
                    if math.isinf(event.wall_time):
                        continue  # as in `series_source.standing`
                    _add(by_tag, number, event)
        except OSError:
            unopened += 1
    ours = {tag: series for tag, series in by_tag.items() if series.ours}
    return Scan(ours, begun, unopened)


def _add(by_tag: dict[str, FileSeries], file: int, event: Event) -> None:
    for value in event.values:
        series = by_tag.get(value.tag)
        if series is None:
            series = by_tag[value.tag] = FileSeries(value.metadata)
        series.add(file, event, value)


def read(
    files: Sequence[Path], wanted: Sequence[tuple[StoredValue, str]]
) -> Iterator[tuple[StoredValue, str, bytes | None]]:
    """Values and their tags, with their bytes, or None for those that aren't bytes.

    They are ordered: each file is read from front to back.
    """
    for number, group in groupby(wanted, lambda each: each[0].file):
        values = list(group)
        try:
            with files[number].open("rb", buffering=_buffer(values)) as stream:
                yield from _read_file(stream, values)
        except (OSError, EOFError) as error:
            raise UnreadableLog(
                f"Could not read {str(files[number])!r}: expected the file that was found when "
                f"the log was opened, got {error}. Open the log again."
            ) from error


def _buffer(values: Sequence[tuple[StoredValue, str]]) -> int:
    """How many bytes are read at once: few if the values are far apart."""
    span = values[-1][0].offset - values[0][0].offset
    return _BUFFER if span < _APART * len(values) else _APART


def _read_file(
    stream: BinaryIO, values: Sequence[tuple[StoredValue, str]]
) -> Iterator[tuple[StoredValue, str, bytes | None]]:
    for stored, tag in values:
        payload = read_again(stream, stored.offset, stored.length, stored.checksum)
        if payload is None:
            raise EOFError(f"another one, without step {stored.step} at byte {stored.offset}")
        begin = stored.begin
        yield stored, tag, payload[begin : begin + stored.size] if begin >= 0 else None


class FileSource(SeriesSource):
    """The event files of a log directory, as they were when it was opened."""

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        # As long as it lives, a copy from a store does.
        self._log = logdir if isinstance(logdir, LocalLog) else LocalLog(logdir)
        self._files = find_runs(self._log.path)
        self.left_out = self._log.left_out
        """How many objects of a store are left out."""
        self._scans: dict[str, Scan] = {}
        self._listing: Listing = {}
        self._unread: dict[str, str] = {}
        self.unopened = 0
        """How many files, and directories, could not be read."""
        for run, files in self._files.items():
            problem = attempt(partial(self._scan, run, files))
            if problem is not None:
                self._unread[run] = problem.log(run)

    def _scan(self, run: str, files: Sequence[Path]) -> None:
        scanned = scan(files)
        self.unopened += scanned.unopened
        versions = {tag: series.version for tag, series in scanned.series.items()}
        if scanned.begun:
            self._scans[run] = scanned
        if versions:
            self._listing[run] = versions

    @property
    def unread(self) -> Mapping[str, str]:
        """See `SeriesSource.unread`."""
        return self._unread

    def runs(self, context: RequestContext) -> list[str]:
        """All runs of the directory, ours or not."""
        return [*self._scans, *self._unread]

    def series(
        self, context: RequestContext, runs: Collection[str] | None, tags: Collection[str] | None
    ) -> Listing:
        """Our series. See `SeriesSource.series`."""
        chosen = {
            run: {tag: version for tag, version in versions.items() if tags is None or tag in tags}
            for run, versions in self._listing.items()
            if runs is None or run in runs
        }
        return {run: versions for run, versions in chosen.items() if versions}

    def read(
        self,
        context: RequestContext,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> Reading:
        """All values, whatever `most`; `UnreadableLog` if a file was changed in the meantime."""
        readings: Readings = {}
        for run in set(runs) & self._scans.keys():
            series = self._scans[run].series
            chosen = set(tags) & series.keys()
            readings |= {(run, tag): [] for tag in chosen}
            # The events of a series are in the order of the files.
            wanted = sorted((value, tag) for tag in chosen for value in series[tag])
            for value, tag, data in read(self._files[run], wanted):
                readings[run, tag].append(StoredMessage(value.step, value.wall_time, data))
        return readings, []
