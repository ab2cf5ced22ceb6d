"""Data read for requests, and cached for later ones up to a limit."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
from tensorboard.data import provider as tb_provider

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.checks import check_threshold
from tb_pastnet.format.budget import CELLS
from tb_pastnet.format.layout import ROWS, Rows
from tb_pastnet.format.tags import TAG_FOLLOWS, TAG_FUNCTION, TAG_SKETCHES
from tb_pastnet.reader import function_series
from tb_pastnet.reader.arrays import Flags
from tb_pastnet.reader.bundles import Bundle
from tb_pastnet.reader.cache import Cache, ReadValue
from tb_pastnet.reader.catalog import Catalog, Experiment
from tb_pastnet.reader.cells import CellBudget, share_of, surplus
from tb_pastnet.reader.follow_series import FollowSeries, join_follows
from tb_pastnet.reader.function_series import FunctionSeries, make_function
from tb_pastnet.reader.isolation import reading
from tb_pastnet.reader.joined_blocks import MOST_CELLS
from tb_pastnet.reader.layer_events import recorded_events
from tb_pastnet.reader.mask_changes import ALL_THROUGH
from tb_pastnet.reader.mask_history import MaskHistory, read_mask_history
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series import WIDE, RecordSeries
from tb_pastnet.reader.series_source import (
    ALL,
    Reading,
    RequestContext,
    RunDeleted,
    SeriesSource,
    grouped,
    most_events,
)
from tb_pastnet.reader.sketch_series import SketchSeries, make_sketches
from tb_pastnet.reader.standing import StandingNow, read_standing
from tb_pastnet.reader.state_series import (
    AUDITED_ROWS,
    NO_MARKS,
    Marks,
    StateSeries,
    WideStates,
    make_state_series,
    make_wide_states,
)
from tb_pastnet.reader.tensorboard_source import TensorBoardSource
from tb_pastnet.reader.threads import Progress, Value, in_threads, unseen
from tb_pastnet.reader.violation_list import MOST, Violation, join_violations, mark
from tb_pastnet.reader.wide_series import WideSeries, make_wide_series

CEILING = 1 << 30
"""Bytes of decoded records and of answers that are kept for later requests: the tallies of 20 runs
of 50,000 channels and 1,000 records fit."""

CELLS_A_CALL = 4 << 20
"""Records times channels in one provider call: 64 MiB if nothing compresses."""

FRESH_FOR = 1.0
"""Seconds for which a listing counts as new. TensorBoard itself looks every 5 seconds."""

MOST_ELEMENTS = 1 << 28
"""Elements of a mask that is unpacked: 256 MiB. A hostile log claims any number in a few bytes."""

MARKS = "marks"
"""The kind of the marks of a variable, in the cache."""

_SMALL = 2 / 5
_LARGE = 2 << 20


@dataclass(frozen=True)
class Weighed:
    """Whether a run as a whole is within its budget of channel-records."""

    is_whole: bool
    size: int = 64  # bytes that it holds, about
    notes: Notes = field(default_factory=Notes)  # none


class Store:
    """Reads and caches our data from a source, up to a number of bytes. Thread-safe.

    There are two caches: `large` for recent results, `small` for small results of much work, which
    nothing large evicts. One listing serves all requests for `fresh_for` seconds. `progress` shows
    how far the records of a run are read.
    """

    def __init__(
        self,
        data: tb_provider.DataProvider | SeriesSource,
        ceiling: int = CEILING,
        fresh_for: float = FRESH_FOR,
        progress: Progress = unseen,
    ) -> None:
        self.progress = progress
        self.source = data if isinstance(data, SeriesSource) else TensorBoardSource(data)
        small = int(ceiling * _SMALL)
        self.large = Cache(ceiling - small)
        self.small = Cache(small)
        self._fresh_for = fresh_for
        self._listing = threading.Lock()
        self._experiments = defaultdict[str, Experiment](lambda: Experiment(self.source))

    def catalog(self, context: RequestContext) -> Catalog:
        """The current catalog of all runs. Two quick provider calls at once if nothing is new.

        Cached data of deleted runs are dropped.
        """
        with self._listing:
            experiment = self._experiments[context.experiment]
            if time.monotonic() - experiment.listed_at >= self._fresh_for:
                names = experiment.catalog.names
                experiment.update(context)
                if gone := names - experiment.catalog.names:
                    self.large.forget(gone)
                    self.small.forget(gone)
            return experiment.catalog

    def reader(self, context: RequestContext, run: CatalogRun) -> RunReader:
        """Reads a run of the catalog."""
        return RunReader(self, context, run)


class RunReader:
    """Reads one run for a request. Slow results are cached in the store."""

    def __init__(self, store: Store, context: RequestContext, run: CatalogRun) -> None:
        self.store = store
        self.context = context
        self.run = run

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.run.name

    def emptied(self, problem: str) -> RunReader:
        """Reads nothing: the run could not be read."""
        return RunReader(self.store, self.context, self.run.emptied(problem))

    @reading
    def kept(
        self,
        key: tuple[Hashable, ...],
        make: Callable[[], ReadValue],
        *,
        version: Hashable = None,
        large: bool = False,
        most: float = math.inf,
    ) -> ReadValue:
        """A result for the run, made again when the run has changed. See `Cache.get`.

        `version`, if not the run's, changes with the data of the result. Others may evict a `large`
        one; only one of at most `most` bytes is kept.
        """
        cache = self.store.large if large else self.store.small
        version = self.run.version if version is None else version
        return cache.get(self._key(*key), version, make, most)

    def _key(self, kind: Hashable, *rest: Hashable) -> tuple[Hashable, ...]:
        return kind, self.context.experiment, self.run.name, *rest

    @cached_property
    @reading
    def masks(self) -> MaskHistory:
        """The run's masks and violations."""
        return read_mask_history(self.store.source, self.store.small, self.context, self.run)

    @cached_property
    @reading
    def standing(self) -> StandingNow:
        """Why variables are idle. Not kept: what is made of it is."""
        return read_standing(self.store.source, self.context, self.run)

    @property
    def state_rows(self) -> Rows:
        """The statistics that states and marks are made from."""
        return AUDITED_ROWS if self.masks.audited else ROWS

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, by first step, then in the order of layers and channels."""
        return tuple(self.list_violations(Notes(), most=None)[1])

    @reading
    def list_violations(self, lost: Notes, most: int | None = MOST) -> tuple[int, list[Violation]]:
        """The violations of the run, found by the audit or else by the records."""
        return join_violations(self.run, self.masks.violations, self._marks(lost).items(), most)

    def _marks(self, lost: Notes) -> Mapping[str, Marks]:
        """The marks of all variables; none, without reading records, if the writer audited."""
        names = dict.fromkeys(name for layer in self.run.layers for name in layer.variables)
        if self.masks.audited:
            return dict.fromkeys(names, NO_MARKS)

        def marks(name: str, records: RecordSeries) -> Marks:
            return self.states_in(records, name).marks

        return self.kept_each(MARKS, list(names), marks, lost)

    @reading
    def mask_in_force(self, variable: str, mask: str, step: int) -> Flags | None:
        """A variable's mask for the record of a step, None if unknown. Not kept: masks are large.

        bool, of the variable's shape; True lets the weight through.
        """
        shape = self.run.variables[variable].shape
        elements = math.prod(shape)
        changes, is_known = self.masks.in_force(variable, [mask], elements, np.array([step]))
        if elements > MOST_ELEMENTS or not is_known[0]:
            return None
        change, lineage = changes[:, 0].tolist()
        if change == ALL_THROUGH:
            return np.ones(shape, bool)
        stored = self.masks.stored(lineage, variable, mask, elements, change)
        run, tag = stored.series
        readings, _ = self.store.source.read_listed(self.context, [run], [tag])
        bits = stored.decode(readings.get(stored.series, ()), MOST_ELEMENTS)
        return None if bits is None else bits.flags.reshape(shape)

    def function(self) -> FunctionSeries:
        """How far the outputs moved on the probe; no provider call without a probe."""
        version = tuple(
            (head.tb_run, head.start, len(head.timeline.steps), head.versions.get(TAG_FUNCTION))
            for head in self.run.lineages
        )
        return self.kept(("function series",), self._read_function, version=version, large=True)

    def _read_function(self) -> FunctionSeries:
        probed = [head.tb_run for head in self.run.lineages if TAG_FUNCTION in head.versions]
        records = sum(len(head.timeline.steps) for head in self.run.lineages)
        most = most_events(records, len(self.run.layers) + 1, function_series.MOST_CELLS)
        readings, _ = self.store.source.read_listed(self.context, probed, [TAG_FUNCTION], most)
        return make_function(
            self.run.lineages,
            readings,
            # A listed series that comes back empty was withheld, too.
            withheld=[name for name in probed if not readings.get((name, TAG_FUNCTION))],
            sampled=most < ALL,
        )

    def sketches(self) -> SketchSeries:
        """The sketches of its layers; no provider call without any."""
        version = tuple(
            (head.tb_run, head.start, head.versions.get(TAG_SKETCHES)) for head in self.run.lineages
        )
        return self.kept(("sketches",), self._read_sketches, version=version, large=True)

    def _read_sketches(self) -> SketchSeries:
        some = [head.tb_run for head in self.run.lineages if TAG_SKETCHES in head.versions]
        readings, _ = self.store.source.read_listed(self.context, some, [TAG_SKETCHES])
        return make_sketches(self.run.lineages, readings)

    def follows(self) -> FollowSeries:
        """How weights follow others, of each pair; no provider call without any."""
        listed = [head for head in self.run.lineages if TAG_FOLLOWS in head.versions]
        version = tuple((head.tb_run, head.start, head.versions[TAG_FOLLOWS]) for head in listed)

        def read() -> FollowSeries:
            runs = [head.tb_run for head in listed]
            readings, _ = self.store.source.read_listed(self.context, runs, [TAG_FOLLOWS])
            return join_follows(self.run.lineages, readings)

        if not listed:
            return FollowSeries((), Counter())
        return self.kept(("follows",), read, version=version)

    @reading
    def accounts(self, rows: Rows = ROWS) -> dict[str, Account]:
        """What became of the records of each variable. Reads all of them.

        With `MASK_ROWS`, if it is known that every message can be decoded, it takes less time.
        """
        names = list(self.run.variables)

        def own(wide: WideSeries) -> dict[str, Account]:
            return dict.fromkeys(wide.variables, wide.records.account)

        accounts: dict[str, Account] = {}
        for group in self.each_wide(names, own, rows):
            accounts |= group
        return {name: accounts[name] for name in names}

    def series(self, variable: str) -> RecordSeries:
        """The records of one variable."""
        return self._series(variable, ROWS)

    def state_series(self, variable: str) -> StateSeries:
        """State and relative delta of one variable; a fifth of the size of its records."""

        def make() -> StateSeries:
            records = self._series(variable, self.state_rows)
            events = tuple(recorded_events(records))
            return replace(self.states_in(records, variable), events=events)

        # For a wide layer the packed answer is cached instead: many of those fit.
        return self.kept(("state series", variable), make, large=True, most=_LARGE)

    def _series(self, variable: str, rows: Rows) -> RecordSeries:
        """The records of one variable, of which some statistics may suffice."""
        bundle = self.run.bundles[variable]
        # Others of a bundle are asked for next.
        alone = len(bundle.names) == 1
        if alone and rows != ROWS:
            return self._read_one(bundle, rows).records

        def make() -> WideSeries:
            return self._read_one(bundle, ROWS)

        kept = self.kept(("series", bundle.names[0]), make, large=True)
        return kept.of(kept.variables.index(variable))

    def _read_one(self, bundle: Bundle, rows: Rows) -> WideSeries:
        return next(self._read([bundle], rows))

    def states_in(self, records: RecordSeries, variable: str) -> StateSeries:
        """State and relative delta in a variable's records, without events."""
        described, commanded = self.run.variables[variable], self.masks.commanded(variable)
        return make_state_series(records, described, commanded)

    def wide_states(self, series: WideSeries) -> WideStates:
        """State and relative delta in the records of variables side by side."""
        variables = [self.run.variables[name] for name in series.variables]
        commanded = [self.masks.commanded(name) for name in series.variables]
        return make_wide_states(series, variables, commanded)

    def states(self, variable: str, threshold: float) -> channel_states.States:
        """The states of a variable with the marks of the audit, uint8 (records, channels)."""
        check_threshold(threshold)
        return self.marked(self.state_series(variable), variable, threshold)

    def marked(self, series: StateSeries, variable: str, threshold: float) -> channel_states.States:
        """The same for a given series."""
        violations = self.masks.violations.get(variable, ())
        return mark(series.states(threshold), series.steps, violations)

    def each(
        self,
        variables: Sequence[str],
        make: Callable[[str, RecordSeries], Value],
        rows: Rows = ROWS,
    ) -> Iterator[Value]:
        """Makes something from the records of many variables, few of which are in memory at a time.

        They are read in few calls, and a few calls at once.
        """

        def own(wide: WideSeries) -> list[tuple[str, Value]]:
            return [(name, make(name, wide.of(n))) for n, name in enumerate(wide.variables)]

        values = dict(chain.from_iterable(self.each_wide(variables, own, rows)))
        yield from (values[name] for name in variables)

    def each_wide(
        self,
        variables: Sequence[str],
        make: Callable[[WideSeries], Value],
        rows: Rows = ROWS,
    ) -> Iterator[Value]:
        """Makes something from the records of many variables, of several of them at once."""

        def read(group: Sequence[Bundle]) -> list[Value]:
            return [make(wide) for wide in self._read(group, rows)]

        names = set(variables)
        each = dict.fromkeys(self.run.bundles[name] for name in variables)
        groups = list(grouped([own.only(names) for own in each], self._cells, CELLS_A_CALL))
        channels = sum(self.run.variables[name].channels for name in names)
        # With many small blocks threads would mostly wait for each other.
        run_each = in_threads if channels >= WIDE * len(each) else map
        text = f"Reading {self.run.name}"
        for results in self.store.progress(run_each(read, groups), text, len(groups)):
            yield from results

    @reading
    def kept_each(
        self,
        kind: str,
        variables: Sequence[str],
        make: Callable[[str, RecordSeries], ReadValue],
        lost: Notes,
        rows: Rows = ROWS,
    ) -> Mapping[str, ReadValue]:
        """The same, cached by variable: only missing ones are made. `lost` gets their notes."""
        keys = {self._key(kind, variable): variable for variable in variables}

        def make_all(missing: Sequence[tuple[Hashable, ...]]) -> Iterable[ReadValue]:
            return self.each([keys[key] for key in missing], make, rows)

        values = self.store.small.get_each(dict.fromkeys(keys, self.run.version), make_all)
        for value in values.values():
            lost.update(value.notes)
        return {variable: values[key] for key, variable in keys.items()}

    def _read(self, bundles: Sequence[Bundle], rows: Rows) -> Iterator[WideSeries]:
        """Reads bundles, or parts of them, in one call."""
        (readings, withheld), sampled = self._reading(bundles)
        pairs = ((bundle, self._budget(bundle)) for bundle in bundles)
        return make_wide_series(pairs, readings, withheld=withheld, sampled=sampled, rows=rows)

    def _reading(self, bundles: Sequence[Bundle]) -> tuple[Reading, bool]:
        """Reads the messages of bundles in one call; also returns whether only a part is read."""
        run = self.run
        parts = [part for bundle in bundles for part in bundle.parts]
        widths = {part.width for part in parts}
        most = max((most_events(self._records, width, MOST_CELLS) for width in widths), default=ALL)
        tags = list(dict.fromkeys(part.tag for part in parts))
        reading = self.store.source.read(self.context, run.tb_runs, tags, most)
        listed = {
            part.tb_run
            for part in parts
            if part.lineage is None or part.tag in part.lineage.versions
        }
        if self.store.source.deleted(self.context, listed, reading):
            raise RunDeleted(run.name)
        return reading, most < ALL

    def _budget(self, bundle: Bundle) -> CellBudget:
        return CellBudget(
            share_of(bundle.all_channels, self.run.channels),
            lambda: self.kept(("weighed",), self._weigh).is_whole,
        )

    def _weigh(self) -> Weighed:
        """Reads the records of all variables, without decoding them."""
        left, run = float(CELLS.free), self.run
        bundles = dict.fromkeys(run.bundles.values())
        for some in grouped(bundles, self._cells, CELLS_A_CALL):
            parts = [part for bundle in some for part in bundle.parts]
            tags = list(dict.fromkeys(part.tag for part in parts))
            readings, _ = self.store.source.read(self.context, run.tb_runs, tags)
            left += sum(
                surplus(readings.get((part.tb_run, part.tag), ()), part.share) for part in parts
            )
        return Weighed(left >= 0)

    @property
    def _records(self) -> int:
        timed = sum(len(head.timeline.steps) for head in self.run.lineages)
        return max(timed or len(self.run.axis.steps), 1)

    def _cells(self, bundle: Bundle) -> int:
        return self._records * bundle.all_channels
