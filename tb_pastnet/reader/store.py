"""What the routes ask for: the catalog and the records of variables, cached up to a ceiling."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

from tensorboard.data import provider as tb_provider

from tb_pastnet.core.names import TAG_FUNCTION
from tb_pastnet.reader import deleted_runs as vanished
from tb_pastnet.reader import notes
from tb_pastnet.reader.cache import Cache
from tb_pastnet.reader.catalog import Catalog, Librarian
from tb_pastnet.reader.function_series import FunctionSeries, make_function, most_events
from tb_pastnet.reader.join_blocks import MOST_CELLS
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.mask_store import MasksInForce, MaskStore
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.series import EVERYTHING, Needs, Series, make_series
from tb_pastnet.reader.source import ALL, Caller, Readings, Source
from tb_pastnet.reader.state_series import AUDITED_ROWS, Movement, events, make_movement
from tb_pastnet.reader.tensorboard_source import ProvidedSource
from tb_pastnet.reader.threads import Each, Value, a_few_at_once, in_threads, in_turn

CEILING = 320 << 20
"""Bytes of decoded records and of answers that are kept for later requests."""

CELLS_A_CALL = 4 << 20
"""Records times channels that one provider call is asked for: 64 MiB if nothing compresses."""

FRESH_FOR = 1.0
"""Seconds for which what is listed counts as new. TensorBoard itself looks every 5 seconds."""

UNKEPT = 1 << 62
"""The size of what shall not be kept: larger than every ceiling."""

_EVENT_RECORDS = 16
_SMALL = 2 / 5
_LARGE = 2 << 20
_WIDE = 256


class Store:
    """Reads and keeps what a source has of us. Safe to use from many threads.

    Args:
        data: TensorBoard's data provider, of either loader, or another source.
        ceiling: bytes to keep.
        fresh_for: seconds for which one listing serves all requests.
    """

    def __init__(
        self,
        data: tb_provider.DataProvider | Source,
        ceiling: int = CEILING,
        fresh_for: float = FRESH_FOR,
    ) -> None:
        self._source = data if isinstance(data, Source) else ProvidedSource(data)
        self._librarian = Librarian(self._source, fresh_for)
        small = int(ceiling * _SMALL)
        self._cache = Cache(ceiling - small)
        self._small = Cache(small)
        self._masks = MaskStore(self._source, self._small)
        self._latest: dict[str, Catalog] = {}

    def catalog(self, caller: Caller) -> Catalog:
        """All runs as of now. Two quick provider calls at once where nothing is new.

        What was kept of runs that are there no more is let go.
        """
        found = self._librarian.catalog(caller)
        before = self._latest.get(caller.experiment, found)
        self._latest[caller.experiment] = found
        if before is not found and (gone := _names(before) - _names(found)):
            self._cache.forget(gone)
            self._small.forget(gone)
        return found

    def held(self, caller: Caller, run: Run) -> Held:
        """What a run tells of its masks and of held weights that moved. See `MaskStore.held`."""
        return self._masks.held(caller, run)

    def masks_in_force(self, caller: Caller, run: Run, variable: str, step: int) -> MasksInForce:
        """The masks of a variable, bit by bit, at a step. See `MaskStore.in_force`."""
        return self._masks.in_force(caller, run, variable, step)

    def function(self, caller: Caller, run: Run) -> FunctionSeries:
        """How far the outputs of a run moved on its probe; no provider call without a probe.

        Args:
            caller: on whose behalf.
            run: from the catalog.
        """

        def make() -> tuple[FunctionSeries, int]:
            found = self._read_function(caller, run)
            return found, UNKEPT if notes.WITHHELD in found.notes else found.size

        version = tuple(
            (one.tb_run, one.begin, len(one.timeline.steps), one.stamps.get(TAG_FUNCTION))
            for one in run.lineages
        )
        return self._cache.get(("function series", caller.experiment, run.name), version, make)

    def _read_function(self, caller: Caller, run: Run) -> FunctionSeries:
        told = [one.tb_run for one in run.lineages if TAG_FUNCTION in one.stamps]
        records = sum(len(one.timeline.steps) for one in run.lineages)
        most = most_events(records, len(run.layers) + 1)
        readings, _ = vanished.read(self._source, caller, told, [TAG_FUNCTION], most or ALL)
        return make_function(
            run.lineages,
            readings,
            # What is listed and comes back empty was withheld, too.
            withheld=[one for one in told if not readings.get((one, TAG_FUNCTION))],
            sampled=most is not None,
        )

    def series(self, caller: Caller, run: Run, variable: str) -> Series:
        """The records of one variable.

        Args:
            caller: on whose behalf.
            run: from the catalog.
            variable: an id that the run has.
        """

        def make() -> tuple[Series, int]:
            found = self._read_one(caller, run, variable, EVERYTHING)
            return found, UNKEPT if notes.WITHHELD in found.notes else found.size

        return self._cache.get(_key("series", caller, run, variable), run.version, make)

    def movement(self, caller: Caller, run: Run, variable: str) -> Movement:
        """State and relative delta of one variable; a fifth of the size of its records.

        Args:
            caller: on whose behalf.
            run: from the catalog.
            variable: an id that the run has.
        """

        def make() -> tuple[Movement, int]:
            commanded = self.held(caller, run).commanded(variable)
            # Marks look at the largest change, too.
            needs = Needs(AUDITED_ROWS) if commanded is None else EVERYTHING
            records = self._read_one(caller, run, variable, needs)
            made = make_movement(records, run.variables[variable], commanded, each=in_threads)
            made = replace(made, events=tuple(events(records)))
            # Of a wide layer the answer is kept, which is packed: many of those have room.
            kept = notes.WITHHELD not in made.notes and made.size <= _LARGE
            return made, made.size if kept else UNKEPT

        return self._cache.get(_key("movement", caller, run, variable), run.version, make)

    def each(
        self,
        caller: Caller,
        run: Run,
        variables: Sequence[str],
        make: Callable[[str, Series], Value],
        needs: Needs = EVERYTHING,
    ) -> Iterator[Value]:
        """Makes something of the records of many variables, of which few are held at a time.

        They are read in few calls, and a few calls at once.

        Args:
            caller: on whose behalf.
            run: from the catalog.
            variables: ids that the run has.
            make: takes a variable and its records. Called in other threads.
            needs: what it looks at.

        Yields:
            What was made of each, in the order given.
        """

        def read(some: Sequence[str]) -> list[Value]:
            return [make(*found) for found in self._read(caller, run, some, needs)]

        for made in in_threads(read, _calls(run, variables)):
            yield from made

    def kept(
        self, key: Hashable, version: Hashable, make: Callable[[], tuple[Value, int]]
    ) -> Value:
        """An answer of the cache, made where it isn't there. See `Cache.get`."""
        return self._cache.get(key, version, make)

    def kept_small(
        self, key: Hashable, version: Hashable, make: Callable[[], tuple[Value, int]]
    ) -> Value:
        """What is small, and made of much: half of the ceiling is kept free for it.

        See `Cache.get`.
        """
        return self._small.get(key, version, make)

    def holds_small(self, key: Hashable, version: Hashable) -> bool:
        """Whether it is there. See `Cache.holds`."""
        return self._small.holds(key, version)

    def read(
        self, caller: Caller, tb_runs: Sequence[str], tags: Sequence[str]
    ) -> tuple[Readings, list[tuple[str, str]]]:
        """Events as TensorBoard hands them out, and what it doesn't. See `vanished.read`."""
        return vanished.read(self._source, caller, tb_runs, tags)

    def _read_one(self, caller: Caller, run: Run, variable: str, needs: Needs) -> Series:
        """The records of one variable; of a wide one by all threads."""
        wide = run.variables[variable].channels >= _WIDE
        each: Each = a_few_at_once if wide else in_turn
        return next(self._read(caller, run, [variable], needs, each))[1]

    def _read(
        self,
        caller: Caller,
        run: Run,
        variables: Sequence[str],
        needs: Needs,
        each: Each = in_turn,
    ) -> Iterator[tuple[str, Series]]:
        places = [place for one in variables for place in run.places[one]]
        tags = [place.tag for place in places]
        most = max((_most_events(run, one) for one in variables), default=ALL)
        reading = self._source.read(caller, run.tb_runs, tags, most)
        listed = {
            one.tb_run for one in places if one.lineage is None or one.tag in one.lineage.stamps
        }
        if vanished.gone(self._source, caller, listed, reading):
            raise vanished.Vanished(run.name)
        readings, withheld = reading
        for one in variables:
            yield (
                one,
                make_series(
                    run.places[one],
                    readings,
                    run.variables[one].channels,
                    withheld=withheld,
                    sampled=most < ALL,
                    needs=needs,
                    each=each,
                ),
            )


def _names(catalog: Catalog) -> set[str]:
    """All that keys may name a run by."""
    return {name for run in catalog.runs.values() for name in (run.name, *run.tb_runs)}


def _key(kind: str, caller: Caller, run: Run, variable: str) -> Hashable:
    return kind, caller.experiment, run.name, variable


def _cells(run: Run, variable: str) -> int:
    records = sum(len(one.timeline.steps) for one in run.lineages) or len(run.axis.steps)
    return max(records, 1) * run.variables[variable].channels


def _calls(run: Run, variables: Sequence[str]) -> Iterator[list[str]]:
    some: list[str] = []
    cells = 0
    for variable in variables:
        more = _cells(run, variable)
        if some and cells + more > CELLS_A_CALL:
            yield some
            some, cells = [], 0
        some.append(variable)
        cells += more
    if some:
        yield some


def _most_events(run: Run, variable: str) -> int:
    """How many events of a very wide variable one call can carry."""
    if _cells(run, variable) <= 2 * MOST_CELLS:
        return ALL
    cells_an_event = _EVENT_RECORDS * run.variables[variable].channels
    return max(2 * MOST_CELLS // cells_an_event, 1)
