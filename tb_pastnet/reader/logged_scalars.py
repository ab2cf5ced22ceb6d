"""Scalars that a run's training logged, such as its loss, placed on the run's own axis.

A series belongs to a run if it is in the run's directory, or below it but not in that of
another run; the second training in a directory, `R/R_2`, shares the scalars of `R`. Of each series
the points between the run's first and last sign of life count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tb_pastnet.reader.arrays import Floats
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.series_source import RequestContext, ScalarPoint, SeriesName, SeriesSource

_ROOT = "."
_AGREES = 0.02
_SECOND = re.compile(r"(?:(?P<parent>.*)/)?(?P<name>[^/]+)_\d+", re.DOTALL)

BY_STEP, BY_TIME = "step", "time"
"""How points are placed: by their own steps, or by the times of the records around them."""


class LoggedScalar(NamedTuple):
    """The names of all scalars of a run, and the points of one."""

    names: Sequence[str]
    name: str | None  # of the chosen one, None if there is none
    placed: str  # `BY_STEP` or `BY_TIME`
    points: Sequence[ScalarPoint]
    at: Floats  # (points,), where on the run's axis


def scalars_of(
    source: SeriesSource,
    context: RequestContext,
    runs: Sequence[CatalogRun],
    ours: Collection[str],
    name: str | None,
) -> list[LoggedScalar]:
    """Reads one scalar of each run: that of a name, or the one that looks most like its loss.

    A run that can't be read has none.
    """
    homes = {run.name: _homes(run.name, ours) for run in runs}
    tags = source.scalar_tags(context)
    named = {run.name: {} if run.problem else _named(homes[run.name], ours, tags) for run in runs}
    chosen = {run: _choice(names, name) for run, names in named.items()}
    wanted = {named[run][own] for run, own in chosen.items() if own is not None}
    points = source.scalars(context, wanted)
    return [
        _placed(run, tuple(named[run.name]), own, points.get(named[run.name][own], []))
        if (own := chosen[run.name]) is not None
        else LoggedScalar(tuple(named[run.name]), None, BY_STEP, [], np.zeros(0))
        for run in runs
    ]


def as_sections(run: str, scalars: LoggedScalar) -> Sections:
    """The answer about a run."""
    header = {
        "run": run,
        "names": list(scalars.names),
        "name": scalars.name,
        "placed": scalars.placed,
    }
    points = scalars.points
    arrays = {
        "at": scalars.at,
        "steps": np.array([point.step for point in points], np.float64),
        "values": np.array([point.value for point in points], np.float64),
    }
    return header, arrays, Notes()


def _homes(run: str, ours: Collection[str]) -> list[str]:
    """The directories whose scalars are a run's: its own, and that which a second run is in."""
    match = _SECOND.fullmatch(run)
    if match is None:
        return [run]
    parent, name = match["parent"], match["name"]
    above = _ROOT if parent is None else parent
    is_second = above in ours and (above == _ROOT or above.rpartition("/")[2] == name)
    return [run, above] if is_second else [run]


def _named(
    homes: Sequence[str], ours: Collection[str], tags: Mapping[str, Sequence[str]]
) -> dict[str, SeriesName]:
    """The scalars in and below some directories, by name: "loss", or "validation: loss"."""
    named: dict[str, SeriesName] = {}
    for home in homes:
        for tb_run in sorted(tags, key=lambda each: (each != home, each)):
            below = _below(tb_run, home)
            if below is None or (below and _in_another(tb_run, home, ours)):
                continue
            for tag in tags[tb_run]:
                named.setdefault(f"{below}: {tag}" if below else tag, (tb_run, tag))
    return named


def _below(tb_run: str, home: str) -> str | None:
    """The path of a directory below another; None if it isn't there."""
    if tb_run == home:
        return ""
    if home == _ROOT:
        return tb_run
    return tb_run[len(home) + 1 :] if tb_run.startswith(f"{home}/") else None


def _in_another(tb_run: str, home: str, ours: Collection[str]) -> bool:
    """Whether a directory below a run's own is that of another run, or below it."""
    parts = tb_run.split("/")
    paths = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return any(path in ours and path != home and _below(path, home) for path in paths)


_LIKELY = (r"(train/)?loss", r"(.*[/_: ])?train.*loss.*", r"(?!.*val)(.*[^a-z])?loss", r".*loss.*")

_LONGEST = 256
"""Longer names aren't looked at: matching takes the square of their length."""


def _choice(names: Iterable[str], name: str | None) -> str | None:
    """The chosen scalar, or the one that looks most like the loss of the training."""
    listed = list(names)
    if name is not None:
        return name if name in listed else None
    short = [own for own in listed if len(own) <= _LONGEST]
    for pattern in _LIKELY:
        for own in short:
            if re.fullmatch(pattern, own, re.IGNORECASE):
                return own
    return listed[0] if listed else None


def _placed(
    run: CatalogRun, names: Sequence[str], name: str, points: Sequence[ScalarPoint]
) -> LoggedScalar:
    first, last = _alive(run)
    own = list(_standing([point for point in points if first <= point.wall_time <= last]))
    steps = np.array([point.step for point in own], np.float64)
    if not len(run.axis.steps) or not own:
        return LoggedScalar(names, name, BY_STEP, own, steps)
    end = float(run.axis.steps[-1])
    if abs(steps[-1] - end) <= max(_AGREES * abs(end), 1):
        return LoggedScalar(names, name, BY_STEP, own, steps)
    times = run.axis.wall_times
    known = np.isfinite(times)
    if not known.any():
        return LoggedScalar(names, name, BY_STEP, own, steps)
    # A clock may have been set back.
    clock = np.maximum.accumulate(times[known])
    when = np.array([point.wall_time for point in own])
    return LoggedScalar(names, name, BY_TIME, own, np.interp(when, clock, run.axis.steps[known]))


def _alive(run: CatalogRun) -> tuple[float, float]:
    """When a run was first and last heard of, in seconds since 1970."""
    times = run.axis.wall_times[np.isfinite(run.axis.wall_times)].tolist()
    begun = [head.description.created for head in run.lineages if head.description]
    heard = [
        float(version.max_wall_time) for head in run.lineages for version in head.versions.values()
    ]
    if not times:
        return -np.inf, np.inf
    return min(times + begun), max(times + heard)


def _standing(points: Sequence[ScalarPoint]) -> Iterator[ScalarPoint]:
    """The points that count: a step that doesn't grow replaces what was stored from there on."""
    stored: list[ScalarPoint] = []
    for point in sorted(points, key=lambda each: each.wall_time):
        while stored and stored[-1].step >= point.step:
            stored.pop()
        stored.append(point)
    yield from stored
