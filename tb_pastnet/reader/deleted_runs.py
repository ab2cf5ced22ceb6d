"""Runs that are deleted between the listing that an answer begins with and its last read.

What is listed and then gives nothing would else be told as a run whose records are all unreadable.
"""

from __future__ import annotations

from collections.abc import Collection

from tb_pastnet.core.names import parse_run
from tb_pastnet.reader.source import ALL, Caller, Readings, Source

Reading = tuple[Readings, list[tuple[str, str]]]


class Vanished(Exception):
    """A run that was listed, and of which TensorBoard has nothing any more."""


def gone(source: Source, caller: Caller, runs: Collection[str], reading: Reading) -> list[str]:
    """Which runs were deleted while they were read; asks TensorBoard only where one gave nothing.

    Args:
        source: what was read from.
        caller: on whose behalf.
        runs: names of runs in which the series that were asked for are listed.
        reading: what `Source.read` gave.
    """
    readings, failed = reading
    heard = {run for run, _ in (*readings, *failed)}
    silent = [run for run in runs if run not in heard]
    known = set(source.runs(caller)) if silent else set()
    return [run for run in silent if run not in known]


def read(
    source: Source,
    caller: Caller,
    runs: Collection[str],
    tags: Collection[str],
    most: int = ALL,
) -> Reading:
    """Reads as `Source.read` does.

    Args:
        source: what is read from.
        caller: on whose behalf.
        runs: names of runs in which one of the tags at least is listed.
        tags: names of tags.
        most: events a series.

    Raises:
        Vanished: one of the runs is there no more.
    """
    reading = source.read(caller, runs, tags, most)
    if lost := gone(source, caller, runs, reading):
        name = parse_run(lost[0])
        raise Vanished(name.run if name else lost[0])
    return reading
