"""Which runs there are: TensorBoard's runs grouped, described and dated."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tb_pastnet.format.tags import (
    TAG_DESCRIPTION,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    RunName,
    channels_tag,
    parse_run,
)
from tb_pastnet.reader import notes, summary_runs
from tb_pastnet.reader.lineage_heads import LineageHead, make_lineage
from tb_pastnet.reader.runs import CatalogRun, join_lineages
from tb_pastnet.reader.series_source import Listing, RequestContext, SeriesSource, SeriesVersion
from tb_pastnet.reader.threads import together

_HEAD = (TAG_DESCRIPTION, TAG_TIMELINE, TAG_OVERHEAD)
_NAMED_SERIES = (*_HEAD, TAG_MASKS, TAG_VIOLATIONS, TAG_FUNCTION)
_RUNS_A_CALL = 64


@dataclass(frozen=True, eq=False)
class Catalog:
    """All runs."""

    # by name, in the order of their names
    runs: Mapping[str, CatalogRun] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what concerns no single run
    other_runs: int = 0  # how many of TensorBoard's runs hold none of our data

    @property
    def names(self) -> set[str]:
        """All that keys of the cache may name a run by."""
        return {name for run in self.runs.values() for name in (run.name, *run.tb_runs)}


@dataclass
class _Previous:
    """What was found of an experiment the last time."""

    listed_at: float = -math.inf
    catalog: Catalog = field(default_factory=Catalog)
    glance: Listing = field(default_factory=dict)
    listing: Listing = field(default_factory=dict)
    lineages: dict[str, LineageHead] = field(default_factory=dict)
    joined: dict[str, CatalogRun] = field(default_factory=dict)
    summaries: dict[str, CatalogRun] = field(default_factory=dict)


class CatalogReader:
    """Keeps the catalog up to date and reads only what is new. Safe to use from many threads.

    A catalog is handed out again for `fresh_for` seconds: one listing serves all requests of a
    page.
    """

    def __init__(self, source: SeriesSource, fresh_for: float) -> None:
        self._source = source
        self._fresh_for = fresh_for
        self._lock = threading.Lock()
        self._previous: dict[str, _Previous] = defaultdict(_Previous)

    def catalog(self, context: RequestContext) -> Catalog:
        """Lists all runs of an experiment as of now."""
        with self._lock:
            previous = self._previous[context.experiment]
            if time.monotonic() - previous.listed_at >= self._fresh_for:
                previous.catalog = self._make(context, previous)
                previous.listed_at = time.monotonic()
            return previous.catalog

    def _make(self, context: RequestContext, previous: _Previous) -> Catalog:
        # TensorBoard's data server may be slow to answer a first call (its sockets wait for more to
        # send): two calls wait together.
        glance, tb_runs = together(
            lambda: self._source.glance(context, _NAMED_SERIES), lambda: self._source.runs(context)
        )
        listing = self._listing(context, previous, glance, tb_runs)
        runs = dict(self._joined(context, previous, listing))
        for run in self._own_writers(context, previous, listing):
            name = run.name
            while name in runs:
                name += " (summary)"
            runs[name] = run if name == run.name else replace(run, name=name)
        catalog = Catalog(dict(sorted(runs.items())), _warnings(listing))
        foreign = sum(tb_run not in catalog.names for tb_run in tb_runs)
        return replace(catalog, other_runs=foreign)

    def _listing(
        self,
        context: RequestContext,
        previous: _Previous,
        glance: Listing | None,
        tb_runs: Sequence[str],
    ) -> Listing:
        """All our series. Only runs in which something was written are listed in full.

        A writer ends each group of records with its timeline, and tells everything else in series
        of known names: where these stand still, so do the others. Runs without a timeline, such as
        a user's own writer's, can't be told so.
        """
        still = {}
        if glance is not None and previous.glance:
            still = {
                run: previous.listing[run] for run in tb_runs if _stands(run, previous, glance)
            }
            stale = [run for run in tb_runs if run not in still]
            listing, failed = self._source.listing(context, stale) if stale else ({}, [])
        else:
            listing, failed = self._source.listing(context)
        listing.update(still)
        for tb_run in failed:
            listing[tb_run] = self._list_piecewise(context, tb_run)
        # The glance was made before: what was written since then shows the next time.
        previous.glance, previous.listing = glance or {}, listing
        return listing

    def _list_piecewise(self, context: RequestContext, run: str) -> dict[str, SeriesVersion]:
        """Lists a run in which TensorBoard stumbles over one series, around that series."""
        name = parse_run(run)
        versions = self._source.probe(context, run, _NAMED_SERIES)
        if name is None or TAG_DESCRIPTION not in versions:
            return versions
        reading = self._source.read(context, [run], [TAG_DESCRIPTION])
        described = make_lineage(run, name, versions, reading).description
        variables = described.variables if described else ()
        tags = [channels_tag(variable.id) for variable in variables]
        return {**versions, **self._source.probe(context, run, tags)}

    def _joined(
        self, context: RequestContext, previous: _Previous, listing: Listing
    ) -> dict[str, CatalogRun]:
        names = {run: name for run in listing if (name := parse_run(run)) is not None}
        heads = self._lineages(context, previous, listing, names)
        groups: dict[str, list[LineageHead]] = {}
        for run in sorted(names):
            groups.setdefault(names[run].run, []).append(heads[run])
        previous.joined = {
            name: previous.joined[name]
            if name in previous.joined and _same(previous.joined[name].lineages, lineages)
            else join_lineages(name, lineages)
            for name, lineages in groups.items()
        }
        return previous.joined

    def _lineages(
        self,
        context: RequestContext,
        previous: _Previous,
        listing: Listing,
        names: dict[str, RunName],
    ) -> dict[str, LineageHead]:
        """The heads of all lineages; takes those out of `names` that were deleted meanwhile."""
        heads = {
            run: head
            for run, head in previous.lineages.items()
            if head.versions == listing.get(run)
        }
        stale = [run for run in names if run not in heads]
        for start in range(0, len(stale), _RUNS_A_CALL):
            asked = stale[start : start + _RUNS_A_CALL]
            reading = self._source.read(context, asked, _HEAD)
            for run in self._source.deleted(context, asked, reading):
                del names[run]
            for run in names.keys() & asked:
                heads[run] = make_lineage(run, names[run], listing[run], reading)
        # What TensorBoard withheld is asked for again the next time.
        previous.lineages = {
            run: head for run, head in heads.items() if notes.WITHHELD not in head.notes
        }
        return heads

    def _own_writers(
        self, context: RequestContext, previous: _Previous, listing: Listing
    ) -> Iterable[CatalogRun]:
        """The runs of users' own writers."""
        runs: dict[str, CatalogRun] = {}
        for tb_run, versions in sorted(listing.items()):
            if parse_run(tb_run) is not None:
                continue
            described = summary_runs.describe(tb_run, versions)
            if described is None:
                continue
            dated = previous.summaries.get(tb_run)
            if dated is not None and dated.version == described.version:
                runs[tb_run] = dated
                continue
            tag = summary_runs.thinnest(described)
            reading = self._source.read(context, [tb_run], [tag])
            if not self._source.deleted(context, [tb_run], reading):
                runs[tb_run] = summary_runs.date(described, reading)
        previous.summaries = runs
        return runs.values()


def _stands(run: str, previous: _Previous, glance: Listing) -> bool:
    """Whether nothing was written to a run between two glances."""
    timed = TAG_TIMELINE in glance.get(run, {}) and parse_run(run) is not None
    return timed and run in previous.listing and previous.glance.get(run) == glance[run]


def _same(joined: Sequence[LineageHead], heads: Sequence[LineageHead]) -> bool:
    return {id(head) for head in joined} == {id(head) for head in heads}


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
