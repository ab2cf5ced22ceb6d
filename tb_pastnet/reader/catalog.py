"""The catalog of runs: TensorBoard's runs grouped, described and dated."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

from tb_pastnet.format.tags import (
    DESCRIPTIONS,
    TAG_COMPARED,
    TAG_FOLLOWS,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_SKETCHES,
    TAG_STANDING,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    parse_run,
)
from tb_pastnet.reader import notes, summary_runs
from tb_pastnet.reader.isolation import Problem, attempt, each_alone
from tb_pastnet.reader.lineage_heads import LineageHead, make_lineage, within_names
from tb_pastnet.reader.runs import SINK, SUMMARY, CatalogRun, by_writer, join_lineages, unread_run
from tb_pastnet.reader.series_source import (
    Listing,
    NotListed,
    RequestContext,
    SeriesSource,
    SeriesVersion,
)
from tb_pastnet.reader.threads import together

_HEAD = (*DESCRIPTIONS, TAG_TIMELINE, TAG_OVERHEAD, TAG_COMPARED)
_NAMED_SERIES = (
    *_HEAD,
    TAG_MASKS,
    TAG_VIOLATIONS,
    TAG_FUNCTION,
    TAG_SKETCHES,
    TAG_FOLLOWS,
    TAG_STANDING,
)
_RUNS_A_CALL = 64

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Catalog:
    """All runs."""

    # by name, in the order of their names
    runs: Mapping[str, CatalogRun] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # about no single run
    other_runs: int = 0  # how many of TensorBoard's runs hold none of our data

    @property
    def names(self) -> set[str]:
        """All names that the cache's keys may have for a run."""
        return {name for run in self.runs.values() for name in (run.name, *run.tb_runs)}


@dataclass(frozen=True)
class _Directory:
    """The directories of a run's writers, or the one of a user's own writer."""

    name: str
    source: str  # `SINK`, or `SUMMARY` for a user's own writer
    listing: Listing  # of its directories
    problem: str = ""  # why it could not be read

    def emptied(self, problem: str) -> _Directory:
        """The same, listed without reading it."""
        return replace(self, problem=problem)


def _unread(directory: _Directory) -> CatalogRun:
    tb_runs, version = tuple(directory.listing), repr(directory)
    return unread_run(directory.name, directory.source, tb_runs, version, directory.problem)


class _Built(NamedTuple):
    """What is made of a listing; the next time, only what changed is made again."""

    catalog: Catalog = Catalog()
    heads: Mapping[str, LineageHead] = {}
    runs: Mapping[str, CatalogRun] = {}
    summaries: Mapping[str, CatalogRun] = {}
    problems: Mapping[tuple[str, str], _Directory] = {}  # by name and source


class Experiment:
    """Keeps the catalog of one experiment up to date: only new data are read. Not thread-safe."""

    def __init__(self, source: SeriesSource) -> None:
        self.listed_at = -math.inf
        self.catalog = Catalog()
        self._source = source
        self._glance: Listing = {}
        self._listing: Listing = {}
        self._built = _Built()

    def update(self, context: RequestContext) -> None:
        """Makes the catalog current, or keeps the last known one with a warning, or `NotListed`."""
        try:
            self._update(context)
        except NotListed:
            if math.isinf(self.listed_at):
                raise
            logger.debug("TensorBoard failed to list; the last known catalog stays", exc_info=True)
            warnings = (*_warnings(self._listing), notes.NOT_LISTED)
            self.catalog = replace(self.catalog, warnings=warnings)
        self.listed_at = time.monotonic()

    def _update(self, context: RequestContext) -> None:
        # TensorBoard's data server may be slow to answer a first call (its sockets wait for more to
        # send): two calls wait together.
        glance, tb_runs = together(
            lambda: self._source.glance(context, _NAMED_SERIES), lambda: self._source.runs(context)
        )
        problems = dict(self._source.unread)
        self._list(context, glance, tb_runs, problems)
        directories = self._directories(problems)
        self._built = each_alone(directories, lambda each: self._build(context, each))
        ours = self._built.catalog.names
        foreign = sum(tb_run not in ours for tb_run in tb_runs)
        self.catalog = replace(self._built.catalog, other_runs=foreign)

    def _directories(self, problems: Mapping[str, str]) -> list[_Directory]:
        """The directories by run, with what is known not to be readable."""
        listings: dict[tuple[str, str], Listing] = {}
        reasons: dict[tuple[str, str], str] = {}
        for tb_run, versions in [*((run, {}) for run in problems), *self._listing.items()]:
            name = attempt(partial(parse_run, tb_run))
            if isinstance(name, Problem):
                key = tb_run, SUMMARY
                reasons[key] = name.log(tb_run)
            else:
                key = (tb_run, SUMMARY) if name is None else (name.run, SINK)
            listings.setdefault(key, {})[tb_run] = versions
            if tb_run in problems:
                reasons[key] = problems[tb_run]
        for key, known in self._built.problems.items():
            if known.listing == listings.get(key):
                reasons.setdefault(key, known.problem)
        return [
            _Directory(*key, listing, reasons.get(key, "")) for key, listing in listings.items()
        ]

    def _build(self, context: RequestContext, directories: Sequence[_Directory]) -> _Built:
        """The catalog of some directories."""
        readable = [each for each in directories if not each.problem]
        listing = {run: own for each in readable for run, own in each.listing.items()}
        heads = self._read_heads(context, listing)
        runs = self._join_lineages(heads)
        summaries = self._date_summaries(context, listing)
        named = dict(runs)
        unread = [each for each in directories if each.problem]
        unread.sort(key=lambda each: each.source == SUMMARY)
        for run in (*map(_unread, unread), *summaries.values()):
            name = run.name
            while name in named:
                name += f" ({run.source})"
            named[name] = run if name == run.name else replace(run, name=name)
        return _Built(
            Catalog(dict(sorted(named.items())), _warnings(listing)),
            # What TensorBoard withheld is requested again the next time.
            {run: head for run, head in heads.items() if notes.WITHHELD not in head.notes},
            runs,
            summaries,
            # Memory may be there the next time.
            {
                (each.name, each.source): each
                for each in directories
                if each.problem and each.problem != notes.NO_MEMORY
            },
        )

    def _list(
        self,
        context: RequestContext,
        glance: Listing | None,
        tb_runs: Sequence[str],
        problems: dict[str, str],
    ) -> None:
        """Lists all our series, in full only for runs with new data; `problems` gets what raises.

        A writer ends each group of records with its timeline, and writes everything else to series
        with known names: if these haven't changed, the others haven't either. This doesn't work for
        runs without a timeline, such as those of a user's own writer.
        """
        still = {}
        if glance is not None and self._glance:
            # One whose name raises is listed in full, and raises there.
            still = {
                run: self._listing[run]
                for run in tb_runs
                if attempt(partial(self._stands, run, glance)) is True
            }
            stale = [run for run in tb_runs if run not in still]
            listing, failed = self._source.listing(context, stale) if stale else ({}, [])
        else:
            listing, failed = self._source.listing(context)
        listing.update(still)
        for tb_run in failed:
            versions = attempt(partial(self._list_piecewise, context, tb_run))
            if isinstance(versions, Problem):
                problems[tb_run] = versions.log(tb_run)
            else:
                listing[tb_run] = versions
        # The glance came first: later writes show the next time.
        self._glance, self._listing = glance or {}, listing

    def _stands(self, run: str, glance: Listing) -> bool:
        """Whether nothing was written to a run between two glances."""
        timed = TAG_TIMELINE in glance.get(run, {}) and parse_run(run) is not None
        if not timed or self._glance.get(run) != glance[run]:
            return False
        # If listing failed while TensorBoard was loading, some may be missing.
        return glance[run].keys() <= self._listing.get(run, {}).keys()

    def _list_piecewise(self, context: RequestContext, run: str) -> dict[str, SeriesVersion]:
        """Lists a run in which TensorBoard fails on one series, without that series."""
        name = parse_run(run)
        versions = self._source.probe(context, run, _NAMED_SERIES)
        if name is None or versions.keys().isdisjoint(DESCRIPTIONS):
            return versions
        reading = self._source.read(context, [run], DESCRIPTIONS)
        stored = make_lineage(run, name, versions, reading).stored.values()
        tags = list(dict.fromkeys(own.tag for own in stored))
        return {**versions, **self._source.probe(context, run, tags)}

    def _join_lineages(self, lineages: Mapping[str, LineageHead]) -> dict[str, CatalogRun]:
        groups: dict[str, list[LineageHead]] = {}
        for head in lineages.values():
            groups.setdefault(head.name.run, []).append(head)
        runs: dict[str, CatalogRun] = {}
        for directory, heads in groups.items():
            writers = by_writer(heads)
            for number, of_writer in enumerate(writers, 1):
                name = directory
                while number > 1 and (name in groups or name in runs):
                    name += f" ({number})"
                runs[name] = self._joined(name, of_writer, shared=len(writers) > 1)
        return runs

    def _joined(self, name: str, lineages: Sequence[LineageHead], *, shared: bool) -> CatalogRun:
        """A run, from before if nothing of it changed."""
        run = self._built.runs.get(name)
        if run is not None and run.shared == shared and run.lineages == (*lineages,):
            return run
        return join_lineages(name, lineages, shared=shared)

    def _read_heads(self, context: RequestContext, listing: Listing) -> dict[str, LineageHead]:
        """The heads of all lineages, except those deleted in the meantime."""
        heads = {
            run: head
            for run, head in self._built.heads.items()
            if head.versions == listing.get(run)
        }
        stale = {
            run: name
            for run in listing
            if run not in heads and (name := parse_run(run)) is not None
        }
        for start in range(0, len(stale), _RUNS_A_CALL):
            asked = list(stale)[start : start + _RUNS_A_CALL]
            reading = self._source.read(context, asked, _HEAD)
            deleted = self._source.deleted(context, asked, reading)
            for run in set(asked).difference(deleted):
                heads[run] = make_lineage(run, stale[run], listing[run], reading)
            heads = _within_names(heads)
        return heads

    def _date_summaries(self, context: RequestContext, listing: Listing) -> dict[str, CatalogRun]:
        """Describes and dates the runs of users' own writers."""
        runs: dict[str, CatalogRun] = {}
        for tb_run, versions in sorted(listing.items()):
            if parse_run(tb_run) is not None:
                continue
            described = summary_runs.describe(tb_run, versions)
            if described is None:
                continue
            dated = self._built.summaries.get(tb_run)
            if dated is not None and dated.version == described.version:
                runs[tb_run] = dated
                continue
            tag = summary_runs.thinnest(described)
            reading = self._source.read(context, [tb_run], [tag])
            if not self._source.deleted(context, [tb_run], reading):
                runs[tb_run] = summary_runs.date(described, reading)
        return runs


def _within_names(heads: Mapping[str, LineageHead]) -> dict[str, LineageHead]:
    """The same heads; in each directory without descriptions from where these are too many."""
    ordered = sorted(heads.values(), key=lambda head: head.name)
    groups = (list(group) for _, group in groupby(ordered, lambda head: head.name.run))
    return {head.tb_run: head for group in groups for head in within_names(group)}


def _warnings(listing: Listing) -> tuple[str, ...]:
    inside = foreign = 0
    for run, versions in listing.items():
        if parse_run(run) is None:
            head = [tag for tag in _HEAD if tag in versions and not versions[tag].content]
            inside += bool(head)
            foreign += 0 if head else summary_runs.foreign(versions)
    warnings = [notes.INSIDE] if inside else []
    if foreign:
        warnings.append(f"{notes.FOREIGN}: {foreign} series")
    return tuple(warnings)
