"""The routes. They are documented in `http_api.md`, with a sample answer for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial, wraps
from operator import methodcaller
from typing import Any

from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.figures import BLOCK, StepSpan, figures_of
from tb_pastnet.reader.function_series import Function, function_view
from tb_pastnet.reader.index import index_of
from tb_pastnet.reader.isolation import Problem, attempt, each_alone
from tb_pastnet.reader.lanes import lane
from tb_pastnet.reader.layer_view import (
    COUNTS_EXACT,
    channel_view,
    first_after,
    layer_view,
    record_columns,
)
from tb_pastnet.reader.logged_scalars import as_sections, scalars_of
from tb_pastnet.reader.notes import UNREAD, Notes, listed
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.overlap_views import MaskComparison, overlap_layers_view, overlap_view
from tb_pastnet.reader.overview import overview_columns, overview_csv
from tb_pastnet.reader.run_findings import as_json, findings_of
from tb_pastnet.reader.run_summary import summary_of
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.state_series import make_state_series
from tb_pastnet.reader.store import RunReader, Store
from tb_pastnet.reader.tables import Columns, csv_pieces
from tb_pastnet.serve.http.answers import (
    Answer,
    NotModified,
    binary_answer,
    csv_answer,
    json_answer,
)
from tb_pastnet.serve.http.parameters import MOST_LISTED, Query
from tb_pastnet.serve.http.web import UNREADABLE, Failure, bad_request, not_found, shown

MOST_LINES = 1 << 20
"""Lines of a CSV export; a larger one is refused."""

_LINES = 1 << 14


def kept(
    store: Store,
    key: tuple[Hashable, ...],
    version: Hashable,
    make: Callable[[], Answer],
    *,
    large: bool = False,
) -> Answer | NotModified:
    """An answer from the cache. One that TensorBoard withheld a part of is made again each time.

    The ETag of an earlier answer is kept for longer, so a client that still has the answer gets a
    304 for free. The version changes with the data of the answer; others may evict a large one.
    """

    def named() -> Answer:
        answer = make()
        store.small.get(name, version, partial(replace, answer, body=b""))
        return answer

    def fresh() -> Answer:
        return (store.large if large else store.small).get(key, version, named)

    name = ("name", *key)
    given_before = store.small.find(name, version)
    return fresh() if given_before is None else NotModified(given_before.tag, fresh)


Route = Callable[[Query], Answer | NotModified]


def _about_runs(
    *parameters: Callable[[Query], Any], large: bool = False
) -> Callable[[Callable[..., Answer]], Route]:
    """Decorates a function that makes an answer of the parameters, a run or runs the first of them.

    The answer is kept for the same parameters until a run changes. If it is about several runs,
    those that can't be read are empty; about one, the answer is an error.
    """

    def decorated(make: Callable[..., Answer]) -> Route:
        @wraps(make)
        def route(query: Query) -> Answer | NotModified:
            about, *asked = (parameter(query) for parameter in parameters)
            readers = [about] if isinstance(about, RunReader) else about
            runs = [reader.run for reader in readers]
            names, version = tuple(run.name for run in runs), tuple(run.version for run in runs)
            key = (make.__name__, query.context.experiment, names, *asked)

            def answer() -> Answer:
                if len(readers) == 1:
                    return _of_one(readers[0], lambda: make(about, *asked))
                return each_alone(readers, lambda each: make(each, *asked))

            return kept(query.store, key, version, answer, large=large)

        return route

    return decorated


def _of_one(reader: RunReader, make: Callable[[], Answer]) -> Answer:
    """An answer about one run; a `Failure` if it can't be read."""
    run = reader.run
    answer = Problem(run.problem) if run.problem else attempt(make, (Failure,))
    if isinstance(answer, Problem):
        raise Failure(422, UNREADABLE, _unread(run.name, answer.log(run.name)))
    return answer


def _unread(run: str, problem: str) -> str:
    reason = problem.removeprefix(f"{UNREAD}: ")
    return (
        f"Could not read the run {shown(run)}: {reason}. Other runs aren't affected. "
        "TensorBoard's log has details."
    )


_LISTED = methodcaller("runs", 1, MOST_LISTED)
_STEP, _AT, _SINCE = (methodcaller("step", name) for name in ("step", "at", "since"))
_UNIT, _MASK = methodcaller("choice", "unit", UNITS), methodcaller("choice", "mask", MASKS)


def index(query: Query) -> Answer | NotModified:
    """All runs and their networks."""
    catalog = query.catalog
    listed = tuple((name, run.version) for name, run in catalog.runs.items())

    def make(runs: Sequence[CatalogRun]) -> Answer:
        lost = sum((run.notes for run in runs), Notes())
        return json_answer(index_of(replace(catalog, runs={run.name: run for run in runs})), lost)

    version = (catalog.other_runs, catalog.warnings, listed)
    key = ("index", query.context.experiment)
    return kept(query.store, key, version, lambda: each_alone([*catalog.runs.values()], make))


@_about_runs(Query.run, Query.threshold, Query.columns, Query.span)
def overview(reader: RunReader, threshold: float, most: int, span: StepSpan) -> Answer:
    """Every layer of a run in at most `cols` columns, from one step to another: to be drawn."""
    return binary_answer(overview_columns(figures_of(reader, threshold), most, span))


@_about_runs(_LISTED, Query.threshold, _AT, methodcaller("integer", "count", least=1, most=BLOCK))
def records(
    readers: Sequence[RunReader], threshold: float, step: int | None, count: int | None
) -> Answer:
    """Exact figures of every layer at the record in force at a step, and records around it."""
    return binary_answer(*(_block(reader, threshold, step, count or BLOCK) for reader in readers))


def _block(reader: RunReader, threshold: float, step: int | None, count: int) -> Sections:
    return _error_of(reader.run) or figures_of(reader, threshold).block(step, count)


def _error_of(run: CatalogRun) -> Sections | None:
    """What stands for a run among others if it can't be read."""
    if not run.problem:
        return None
    error = {"code": UNREADABLE, "message": _unread(run.name, run.problem)}
    return {"run": run.name, "error": error}, {}, run.notes


def _layers_of_runs(query: Query) -> tuple[str, ...]:
    """The ids of some layers, each of which one of the runs has; empty for all layers."""
    readers, asked = query.runs(1, MOST_LISTED), query.arguments.getlist("layer")
    present = {layer_.id for reader in readers for layer_ in reader.run.layers}
    for layer_id in asked:
        if layer_id not in present:
            raise _no_layer(len(readers), layer_id)
    return tuple(asked)


def _no_layer(runs: int, layer_id: str) -> Failure:
    return not_found(
        f"Could not find the layer: expected one of the {runs} runs to have it, got "
        f"{shown(layer_id)}. The index lists them."
    )


@_about_runs(_LISTED, Query.threshold, Query.columns, _layers_of_runs)
def lanes(
    readers: Sequence[RunReader], threshold: float, most: int, layers: tuple[str, ...]
) -> Answer:
    """Each run as one lane: some layers together, by default all, with flags."""
    return binary_answer(
        *(
            _error_of(reader.run) or lane(figures_of(reader, threshold), most, layers)
            for reader in readers
        )
    )


@_about_runs(Query.run, Query.layer, Query.variable, Query.threshold, _SINCE, large=True)
def layer(
    reader: RunReader,
    entry: LayerEntry,
    variable: VariableEntry,
    threshold: float,
    since: int | None,
) -> Answer:
    """State and relative delta of each record and channel of one variable."""
    return binary_answer(layer_view(reader, entry.id, variable, threshold, since))


def channel(query: Query) -> Answer:
    """Everything recorded of one channel."""
    reader = query.run()

    def make() -> Answer:
        variable, number, threshold = query.variable(), query.channel(), query.threshold()
        view = channel_view(reader, query.layer().id, variable, number, threshold)
        return json_answer(view, Notes())

    return _of_one(reader, make)


@_about_runs(Query.run)
def violations(reader: RunReader) -> Answer:
    """Held weights of a run that moved."""
    lost = reader.run.notes + reader.masks.notes
    total, first = reader.list_violations(lost)
    body = {
        "run": reader.run.name,
        "total": total,
        "violations": [asdict(violation) for violation in first],
        "notes": listed(lost),
    }
    return json_answer(body, lost)


@_about_runs(_LISTED)
def findings(readers: Sequence[RunReader]) -> Answer:
    """The findings of some runs together."""
    body = {"findings": [as_json(finding) for finding in findings_of(readers)]}
    lost = (summary_of(reader).notes for reader in readers)
    return json_answer(body, sum(lost, Notes()))


@_about_runs(Query.run, large=True)
def function(reader: RunReader) -> Answer:
    """How far the outputs of a run moved on its probe."""
    return binary_answer(function_view(reader.run, reader.function()))


def scalars(query: Query) -> Answer:
    """One scalar of each run that its training logged, on the run's axis. Never cached."""
    readers, name = query.runs(1, MOST_LISTED), query.arguments.get("name")
    source, ours = query.store.source, query.catalog.runs.keys()

    def made(runs: Sequence[CatalogRun]) -> Answer:
        given = scalars_of(source, query.context, runs, ours, name)
        return binary_answer(
            *(as_sections(run.name, own) for run, own in zip(runs, given, strict=True))
        )

    return each_alone([reader.run for reader in readers], made)


def _layer_of_runs(query: Query) -> str | None:
    """The id of a layer that one of the runs has; None for all layers."""
    readers, layer_id = query.runs(), query.arguments.get("layer")
    if layer_id is not None and not any(
        layer_.id == layer_id for reader in readers for layer_ in reader.run.layers
    ):
        raise _no_layer(len(readers), layer_id)
    return layer_id


@_about_runs(Query.runs, _STEP, _layer_of_runs, _UNIT, _MASK, large=True)
def overlap(
    readers: Sequence[RunReader], step: int | None, layer_id: str | None, unit: str, mask: str
) -> Answer:
    """How far the masks of each pair of runs overlap at a step, over all layers or in one."""
    return json_answer(*overlap_view(MaskComparison(_two(readers), unit, mask, layer_id), step))


def _two(readers: Sequence[RunReader]) -> Sequence[RunReader]:
    """At least two: a run that is tried by itself is compared with itself."""
    return [*readers, *readers] if len(readers) == 1 else readers


def _pair(query: Query) -> list[RunReader]:
    return [query.run(), query.run("other")]


@_about_runs(_pair, Query.columns, _AT, _UNIT, _MASK, large=True)
def overlap_layers(
    readers: Sequence[RunReader], most: int, step: int | None, unit: str, mask: str
) -> Answer:
    """Two runs, layer by layer in at most `cols` columns, or exactly at a step."""
    return binary_answer(overlap_layers_view(MaskComparison(_two(readers), unit, mask), most, step))


def export(query: Query) -> Answer:
    """The data of the pictures as CSV: all layers, each channel of one, or the probe."""
    return _of_one(query.run(), lambda: _export(query))


def _export(query: Query) -> Answer:
    if query.integer("function", least=0, most=1):
        series = query.run().function()
        _check_lines(len(series.steps) * len(series.places))
        # All digits of single precision: a cosine is mostly nearly 1.
        return csv_answer(csv_pieces([Function(series).columns()], ".7g"))
    if query.arguments.keys() & {"layer", "channel"}:
        return csv_answer(csv_pieces(_layer_tables(query), ".4g", COUNTS_EXACT))
    reader = query.run()
    _check_lines(len(reader.run.axis.steps) * len(reader.run.layers))
    return csv_answer(overview_csv(figures_of(reader, query.threshold())))


def _layer_tables(query: Query) -> Iterator[Columns]:
    """The records of one variable, some at a time."""
    reader, variable = query.run(), query.variable()
    threshold, since = query.threshold(), query.step("since")
    series = reader.series(variable.id)
    first, stop = first_after(series.steps, since), len(series.steps)
    channels = slice(0, variable.channels)
    if "channel" in query.arguments:
        number = query.channel()
        channels = slice(number, number + 1)
    width = channels.stop - channels.start
    _check_lines((stop - first) * width)
    states = make_state_series(series, variable, reader.masks.commanded(variable.id))
    state = reader.marked(states, variable.id, threshold)
    count = max(1, _LINES // max(width, 1))
    for start in range(first, max(stop, first + 1), count):
        part = slice(start, min(start + count, stop))
        cut = series.part(part, channels)
        yield record_columns(cut, state[part, channels], channels.start)


def _check_lines(count: int) -> None:
    if count > MOST_LINES:
        raise bad_request(
            f"Could not export: expected at most {MOST_LINES} lines, got {count}. "
            "Ask for one layer, for one of its channels, or for the steps since one."
        )


ROUTES: dict[str, Route] = {
    "/index": index,
    "/overview": overview,
    "/lanes": lanes,
    "/records": records,
    "/layer": layer,
    "/channel": channel,
    "/violations": violations,
    "/findings": findings,
    "/scalars": scalars,
    "/function": function,
    "/overlap": overlap,
    "/overlap_layers": overlap_layers,
    "/export.csv": export,
}
"""The routes below `data/plugin/pastnet/`; `openapi.json` has their parameters."""
