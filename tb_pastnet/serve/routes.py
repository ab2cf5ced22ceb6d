"""The routes. They are documented in `http_api.md`, with a sample answer for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, replace

from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.figures import BLOCK, figures_of
from tb_pastnet.reader.function_series import Function, function_view
from tb_pastnet.reader.index import index_of
from tb_pastnet.reader.layer_view import (
    COUNTS_EXACT,
    channel_view,
    first_after,
    layer_view,
    record_columns,
)
from tb_pastnet.reader.notes import Notes, listed
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.overlap_views import MaskComparison, overlap_layers_view, overlap_view
from tb_pastnet.reader.overview import overview_columns, overview_csv
from tb_pastnet.reader.run_findings import as_json, findings_of
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
from tb_pastnet.serve.http.failures import bad_request, not_found, shown
from tb_pastnet.serve.http.parameters import MOST_LISTED, Query

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
        store.small.get(name, version, lambda: replace(answer, body=b""))
        return answer

    def fresh() -> Answer:
        return (store.large if large else store.small).get(key, version, named)

    name = ("name", *key)
    given_before = store.small.find(name, version)
    return fresh() if given_before is None else NotModified(given_before.tag, fresh)


def _kept_of(
    route: str,
    readers: Sequence[RunReader],
    make: Callable[[], Answer],
    *asked: Hashable,
    large: bool = False,
) -> Answer | NotModified:
    """The answer of a route about runs, given the other parameters."""
    store, experiment = readers[0].store, readers[0].context.experiment
    key = (route, experiment, tuple(reader.run.name for reader in readers), *asked)
    return kept(store, key, tuple(reader.run.version for reader in readers), make, large=large)


def _variable(query: Query) -> tuple[RunReader, VariableEntry, str]:
    """The requested run, variable and id of the layer."""
    reader = query.run()
    layer = query.layer(reader.run)
    return reader, query.variable(reader.run, layer), layer.id


def index(query: Query) -> Answer | NotModified:
    """All runs and their networks."""
    catalog = query.catalog
    runs = tuple((name, run.version) for name, run in catalog.runs.items())

    def make() -> Answer:
        lost = sum((run.notes for run in catalog.runs.values()), Notes())
        return json_answer(index_of(catalog), lost)

    version = (catalog.other_runs, catalog.warnings, runs)
    return kept(query.store, ("index", query.context.experiment), version, make)


def overview(query: Query) -> Answer | NotModified:
    """Every layer of a run in at most `cols` columns, from one step to another: to be drawn."""
    reader = query.run()
    threshold = query.threshold()
    most = query.columns()
    span = query.span()

    def make() -> Answer:
        return binary_answer(overview_columns(figures_of(reader, threshold), most, span))

    return _kept_of("overview", [reader], make, threshold, most, span)


def records(query: Query) -> Answer | NotModified:
    """Exact figures of every layer at the record in force at a step, and records around it."""
    readers = query.runs(least=1, most=MOST_LISTED)
    threshold = query.threshold()
    step = query.step("at")
    count = query.integer("count", least=1, most=BLOCK) or BLOCK

    def make() -> Answer:
        blocks = (figures_of(reader, threshold).block(step, count) for reader in readers)
        return binary_answer(*blocks)

    return _kept_of("records", readers, make, threshold, step, count)


def layer(query: Query) -> Answer | NotModified:
    """State and relative delta of each record and channel of one variable."""
    reader, variable, layer_id = _variable(query)
    threshold = query.threshold()
    since = query.step("since")

    def make() -> Answer:
        return binary_answer(layer_view(reader, layer_id, variable, threshold, since))

    return _kept_of("layer", [reader], make, variable.id, threshold, since, large=True)


def channel(query: Query) -> Answer | NotModified:
    """Everything recorded of one channel."""
    reader, variable, layer_id = _variable(query)
    number = query.channel(variable)
    threshold = query.threshold()
    return json_answer(channel_view(reader, layer_id, variable, number, threshold), Notes())


def violations(query: Query) -> Answer | NotModified:
    """Held weights of a run that moved."""
    reader = query.run()

    def make() -> Answer:
        lost = reader.run.notes + reader.masks.notes
        total, first = reader.list_violations(lost)
        body = {
            "run": reader.run.name,
            "total": total,
            "violations": [asdict(violation) for violation in first],
            "notes": listed(lost),
        }
        return json_answer(body, lost)

    return _kept_of("violations", [reader], make)


def findings(query: Query) -> Answer | NotModified:
    """The findings of some runs."""
    readers = query.runs(1, MOST_LISTED)
    threshold = query.threshold()

    def make() -> Answer:
        body = {
            "threshold": threshold,
            "findings": [as_json(finding) for finding in findings_of(readers, threshold)],
        }
        lost = (figures_of(reader, threshold).notes for reader in readers)
        return json_answer(body, sum(lost, Notes()))

    return _kept_of("findings", readers, make, threshold)


def function(query: Query) -> Answer | NotModified:
    """How far the outputs of a run moved on its probe."""
    reader = query.run()

    def make() -> Answer:
        return binary_answer(function_view(reader.run, reader.function()))

    return _kept_of("function", [reader], make, large=True)


def overlap(query: Query) -> Answer | NotModified:
    """How far the masks of each pair of runs overlap at a step, over all layers or in one."""
    readers = query.runs()
    step = query.step("step")
    layer_id = query.arguments.get("layer")
    if layer_id is not None and not any(
        layer_.id == layer_id for reader in readers for layer_ in reader.run.layers
    ):
        raise not_found(
            f"Could not find the layer: expected one of the {len(readers)} runs to have it, got "
            f"{shown(layer_id)}. The index lists them."
        )
    comparison = _comparison(query, readers, layer_id)

    def make() -> Answer:
        return json_answer(*overlap_view(comparison, step))

    asked = (step, layer_id, comparison.unit, comparison.mask)
    return _kept_of("overlap", comparison.readers, make, *asked, large=True)


def overlap_layers(query: Query) -> Answer | NotModified:
    """Two runs, layer by layer in at most `cols` columns, or exactly at a step."""
    pair = query.run(), query.run("other")
    most = query.columns()
    step = query.step("at")
    comparison = _comparison(query, pair)

    def make() -> Answer:
        return binary_answer(overlap_layers_view(comparison, most, step))

    asked = (comparison.unit, comparison.mask, most, step)
    return _kept_of("overlap layers", comparison.readers, make, *asked, large=True)


def _comparison(
    query: Query, readers: Sequence[RunReader], layer_id: str | None = None
) -> MaskComparison:
    unit, mask = query.choice("unit", UNITS), query.choice("mask", MASKS)
    return MaskComparison(readers, unit, mask, layer_id)


def export(query: Query) -> Answer | NotModified:
    """The data of the pictures as CSV: all layers, each channel of one, or the probe."""
    if query.integer("function", least=0, most=1):
        series = query.run().function()
        _check_lines(len(series.steps) * len(series.places))
        # All digits of single precision: a cosine is mostly nearly 1.
        return csv_answer(csv_pieces([Function(series).columns()], ".7g"))
    if "layer" in query.arguments:
        return csv_answer(csv_pieces(_layer_tables(query), ".4g", COUNTS_EXACT))
    reader = query.run()
    _check_lines(len(reader.run.axis.steps) * len(reader.run.layers))
    return csv_answer(overview_csv(figures_of(reader, query.threshold())))


def _layer_tables(query: Query) -> Iterator[Columns]:
    """The records of one variable, some at a time."""
    reader, variable, _ = _variable(query)
    threshold = query.threshold()
    since = query.step("since")
    series = reader.series(variable.id)
    first, stop = first_after(series.steps, since), len(series.steps)
    channels = slice(0, variable.channels)
    if "channel" in query.arguments:
        number = query.channel(variable)
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


ROUTES: dict[str, Callable[[Query], Answer | NotModified]] = {
    "/index": index,
    "/overview": overview,
    "/records": records,
    "/layer": layer,
    "/channel": channel,
    "/violations": violations,
    "/findings": findings,
    "/function": function,
    "/overlap": overlap,
    "/overlap_layers": overlap_layers,
    "/export.csv": export,
}
"""The routes below `data/plugin/pastnet/`; `openapi.json` has their parameters."""
