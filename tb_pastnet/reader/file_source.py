"""A log directory in place of TensorBoard: what the tab's store asks for, read from the files."""

from __future__ import annotations

import os
from collections.abc import Collection

from tb_pastnet.format.folder import find_runs
from tb_pastnet.reader.event_index import Scan, read, scan
from tb_pastnet.reader.source import ALL, Caller, Listing, Message, Readings, Source, Stamp


class FileSource(Source):
    """The event files of a log directory, as they were when it was opened.

    All that counts for TensorBoard's fast loader counts here, so that the store makes the same of
    both. Only where each value lies is kept in memory, some 40 bytes a value.

    Args:
        logdir: the directory.

    Raises:
        UnreadableLog: it is no directory.
    """

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        self._files = find_runs(logdir)
        scans = {run: scan(files) for run, files in self._files.items()}
        self._scans: dict[str, Scan] = {run: one for run, one in scans.items() if one.begun}
        self._listing: Listing = {
            run: {
                tag: Stamp(series.last_step, repr(series.last_wall_time), series.content)
                for tag, series in one.series.items()
            }
            for run, one in self._scans.items()
            if one.series
        }
        self.unopened = sum(one.unopened for one in scans.values())
        """How many files could not be read."""

    def runs(self, caller: Caller) -> list[str]:
        """All runs of the directory, ours or not."""
        return list(self._scans)

    def listing(
        self, caller: Caller, only: Collection[str] | None = None
    ) -> tuple[Listing, list[str]]:
        """All of our series. See `Source.listing`."""
        chosen = self._listing if only is None else self._listing.keys() & only
        return {run: dict(self._listing[run]) for run in chosen}, []

    def glance(self, caller: Caller, tags: Collection[str]) -> Listing | None:
        """Some tags of all runs. See `Source.glance`."""
        found = {run: self.probe(caller, run, tags) for run in self._listing}
        return {run: stamps for run, stamps in found.items() if stamps}

    def probe(self, caller: Caller, run: str, tags: Collection[str]) -> dict[str, Stamp]:
        """Some tags of one run. See `Source.probe`."""
        stamps = self._listing.get(run, {})
        return {tag: stamps[tag] for tag in tags if tag in stamps}

    def read(
        self,
        caller: Caller,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> tuple[Readings, list[tuple[str, str]]]:
        """All values of some tags in some runs; `most` is no limit here. See `Source.read`.

        Raises:
            UnreadableLog: a file is gone, or was changed since the log was opened.
        """
        readings: Readings = {}
        for run in set(runs) & self._scans.keys():
            series = self._scans[run].series
            for tag in set(tags) & series.keys():
                places = list(series[tag])
                values = read(self._files[run], tag, places)
                readings[run, tag] = [
                    Message(place.step, place.wall_time, data)
                    for place, data in zip(places, values, strict=True)
                ]
        return readings, []
