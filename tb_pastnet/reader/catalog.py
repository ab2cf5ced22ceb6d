"""Which runs there are: TensorBoard's runs grouped, described and dated."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tb_pastnet.core.names import (
    TAG_DESCRIPTION,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    channels_tag,
    parse_run,
)
from tb_pastnet.reader import notes
from tb_pastnet.reader import summary_runs as summaries
from tb_pastnet.reader.deleted_runs import gone
from tb_pastnet.reader.lineages import Lineage, make_lineage
from tb_pastnet.reader.runs import Run, join
from tb_pastnet.reader.source import Caller, Listing, Source, Stamp
from tb_pastnet.reader.threads import both

_HEAD = (TAG_DESCRIPTION, TAG_TIMELINE, TAG_OVERHEAD)
_TOLD = (TAG_MASKS, TAG_VIOLATIONS, TAG_FUNCTION)
_KNOWN = (*_HEAD, *_TOLD)
_RUNS_A_CALL = 64


@dataclass(frozen=True, eq=False)
class Catalog:
    """All runs.

    Attributes:
        runs: by name, in the order of their names.
        warnings: what concerns no single run.
        other_runs: how many of TensorBoard's runs hold none of our data.
    """

    runs: Mapping[str, Run]
    warnings: tuple[str, ...]
    other_runs: int = 0


class Librarian:
    """Keeps the catalog up to date and reads only what is new. Safe to use from many threads.

    Args:
        source: TensorBoard's data.
        fresh_for: seconds for which a catalog is handed out again, so that one listing serves
            all the requests of a page.
    """

    def __init__(self, source: Source, fresh_for: float) -> None:
        self._source = source
        self._fresh_for = fresh_for
        self._latest: dict[str, tuple[float, Catalog]] = {}
        self._lock = threading.Lock()
        self._listings: dict[str, tuple[Listing, Listing]] = {}
        self._lineages: dict[str, dict[str, Lineage]] = {}
        self._joins: dict[str, dict[str, Run]] = {}
        self._summaries: dict[str, dict[str, Run]] = {}

    def catalog(self, caller: Caller) -> Catalog:
        """Lists all runs as of now.

        Args:
            caller: on whose behalf; experiments don't mix.

        Raises:
            PublicError: TensorBoard refuses.
        """
        with self._lock:
            made, latest = self._latest.get(caller.experiment, (-math.inf, None))
            if latest is None or time.monotonic() - made >= self._fresh_for:
                latest = self._make(caller)
                self._latest[caller.experiment] = (time.monotonic(), latest)
            return latest

    def _make(self, caller: Caller) -> Catalog:
        # TensorBoard's data server may be slow to answer a first call (its sockets wait for more to
        # send): two calls wait together.
        glance, tb_runs = both(
            lambda: self._source.glance(caller, _KNOWN), lambda: self._source.runs(caller)
        )
        listing = self._listing(caller, glance, tb_runs)
        joined = self._joined(caller, listing)
        own = self._own_writers(caller, listing)
        runs = {run.name: run for run in joined}
        for run in own:
            name = _free_name(run.name, runs)
            runs[name] = run if name == run.name else replace(run, name=name)
        ours = {one for run in runs.values() for one in (run.name, *run.tb_runs)}
        others = sum(one not in ours for one in tb_runs)
        return Catalog(dict(sorted(runs.items())), _warnings(listing), others)

    def _listing(self, caller: Caller, glance: Listing | None, tb_runs: list[str]) -> Listing:
        """All our series. Only runs in which something was written are listed in full.

        A writer ends each group of records with its timeline, and tells everything else in series
        of known names: where these stand still, so do the others. Runs without a timeline, such as
        a user's own writer's, can't be told so.
        """
        before, listed = self._listings.get(caller.experiment, ({}, {}))
        still = {}
        if glance is not None and before:
            still = {run: listed[run] for run in tb_runs if _stands(run, before, glance, listed)}
            stale = [run for run in tb_runs if run not in still]
            listing, failed = self._source.listing(caller, stale) if stale else ({}, [])
        else:
            listing, failed = self._source.listing(caller)
        listing.update(still)
        for tb_run in failed:
            listing[tb_run] = self._list_piecewise(caller, tb_run)
        # The glance from before: what was written since then shows the next time.
        self._listings[caller.experiment] = glance or {}, listing
        return listing

    def _list_piecewise(self, caller: Caller, run: str) -> dict[str, Stamp]:
        """Lists a run in which TensorBoard stumbles over one series, around that series."""
        name = parse_run(run)
        found = self._source.probe(caller, run, _KNOWN)
        if name is None or TAG_DESCRIPTION not in found:
            return found
        readings, withheld = self._source.read(caller, [run], [TAG_DESCRIPTION])
        described = make_lineage(run, name, found, readings, withheld).description
        tags = [channels_tag(one.id) for one in (described.variables if described else ())]
        return {**found, **self._source.probe(caller, run, tags)}

    def _joined(self, caller: Caller, listing: Listing) -> Iterable[Run]:
        before = self._lineages.get(caller.experiment, {})
        now = {run: one for run, one in before.items() if one.stamps == listing.get(run)}
        names = {run: name for run in listing if (name := parse_run(run)) is not None}
        stale = [run for run in names if run not in now]
        for at in range(0, len(stale), _RUNS_A_CALL):
            some = stale[at : at + _RUNS_A_CALL]
            reading = self._source.read(caller, some, _HEAD)
            for run in gone(self._source, caller, some, reading):
                del names[run]
            for run in names.keys() & some:
                now[run] = make_lineage(run, names[run], listing[run], *reading)
        # What TensorBoard withheld is asked for again the next time.
        kept = {run: one for run, one in now.items() if notes.WITHHELD not in one.notes}
        self._lineages[caller.experiment] = kept
        groups: dict[str, list[Lineage]] = {}
        for run in sorted(names):
            groups.setdefault(names[run].run, []).append(now[run])
        known = self._joins.get(caller.experiment, {})
        runs = {
            name: known[name]
            if name in known and _same(known[name].lineages, lineages)
            else join(name, lineages)
            for name, lineages in groups.items()
        }
        self._joins[caller.experiment] = runs
        return list(runs.values())

    def _own_writers(self, caller: Caller, listing: Listing) -> Iterable[Run]:
        before = self._summaries.get(caller.experiment, {})
        now: dict[str, Run] = {}
        for tb_run, stamps in sorted(listing.items()):
            if parse_run(tb_run) is not None:
                continue
            version = summaries.version_of(tb_run, stamps)
            if tb_run in before and before[tb_run].version == version:
                now[tb_run] = before[tb_run]
                continue
            described = summaries.describe(tb_run, stamps)
            if described is not None:
                tag = described.thinnest
                reading = self._source.read(caller, [tb_run], [tag])
                if not gone(self._source, caller, [tb_run], reading):
                    now[tb_run] = summaries.date(described, *reading)
        self._summaries[caller.experiment] = now
        return list(now.values())


def _stands(run: str, before: Listing, now: Listing, listed: Listing) -> bool:
    """Whether nothing was written to a run between two glances."""
    told = TAG_TIMELINE in now.get(run, {}) and parse_run(run) is not None
    return told and run in listed and before.get(run) == now[run]


def _same(known: Sequence[Lineage], now: Sequence[Lineage]) -> bool:
    return {id(one) for one in known} == {id(one) for one in now}


def _free_name(name: str, taken: Mapping[str, Run]) -> str:
    while name in taken:
        name += " (summary)"
    return name


def _warnings(listing: Listing) -> tuple[str, ...]:
    inside = foreign = 0
    for run, stamps in listing.items():
        if parse_run(run) is None:
            head = [tag for tag in _HEAD if tag in stamps and not stamps[tag].content]
            inside += bool(head)
            foreign += 0 if head else summaries.foreign(stamps)
    found = [notes.INSIDE] if inside else []
    if foreign:
        found.append(f"{notes.FOREIGN}: {foreign} series")
    return tuple(found)
