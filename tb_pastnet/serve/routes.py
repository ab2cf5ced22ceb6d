"""The routes, without HTTP: each takes a store and arguments and gives an answer.

They are documented in `http_api.md`, with a sample answer of each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.description import Variable
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.serve.http import container, parameters
from tb_pastnet.serve.http.failures import SCHEMA, bad_request
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.strict_json import dumps
from tb_pastnet.serve.http.web import BINARY, CSV, JSON, Answer, answer
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.movement import Movement, make_movement
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import UNKEPT, Store
from tb_pastnet.serve.views import csv_export
from tb_pastnet.serve.views.channel import channel_of
from tb_pastnet.serve.views.events import merge_events
from tb_pastnet.serve.views.function import COLUMNS, function_container, function_rows
from tb_pastnet.serve.views.index import index_of
from tb_pastnet.serve.views.overview import make_overview
from tb_pastnet.serve.views.violations import entries, listed, mark

MOST_LINES = 1 << 20
"""Lines of a CSV export; a larger one is refused."""

_MOST_STEP = 10**15


def index_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """All runs and their networks."""
    del arguments
    catalog = store.catalog(caller)
    others = store.other_runs(caller, catalog)
    version = (
        others,
        catalog.warnings,
        tuple((name, run.version) for name, run in catalog.runs.items()),
    )
    complete = not any(notes.WITHHELD in run.notes for run in catalog.runs.values())
    return _kept(
        store,
        ("index", caller.experiment),
        version,
        lambda: (answer(dumps(index_of(catalog, others)), JSON), complete),
    )


def overview_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """Every layer of a run in at most `cols` columns."""
    run = parameters.run(arguments, store.catalog(caller))
    threshold = parameters.threshold(arguments)
    most = parameters.whole(
        arguments, "cols", least=1, most=parameters.MOST_COLUMNS, default=parameters.COLUMNS
    )

    def make() -> tuple[Answer, bool]:
        overview = make_overview(store, caller, run, threshold, most)
        return answer(overview.container(), BINARY), notes.WITHHELD not in overview.notes

    return _kept(
        store, ("overview", caller.experiment, run.name, threshold, most), run.version, make
    )


def layer_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """State and relative delta of each record and channel of one variable."""
    run, variable, layer_id = _chosen(store, caller, arguments)
    threshold = parameters.threshold(arguments)
    since = parameters.whole(arguments, "since", least=-_MOST_STEP, most=_MOST_STEP)

    def make() -> tuple[Answer, bool]:
        moves = store.movement(caller, run, variable.id)
        held = store.held(caller, run)
        found = moves.notes + held.notes
        header = {
            "schema": SCHEMA,
            "run": run.name,
            "layer": layer_id,
            "variable": variable.id,
            "role": variable.role,
            "shape": variable.shape,
            "axis": variable.axis,
            "verified": variable.verified,
            "channels": variable.channels,
            "elements": variable.elements,
            "threshold": threshold,
            "patience": states.PATIENCE,
            "past": run.past,
            "account": asdict(moves.account),
            "notes": notes.listed(found),
            "events": merge_events(moves.events, moves.steps, held.events(variable.id)),
        }
        told = mark(moves.told(threshold), moves.steps, held.violations.get(variable.id, ()))
        sections = _sections(moves, told, _first_after(moves.steps, since))
        return answer(container.pack(header, sections), BINARY), notes.WITHHELD not in found

    key = ("layer", caller.experiment, run.name, variable.id, threshold, since)
    return _kept(store, key, run.version, make)


def _sections(moves: Movement, told: states.States, first: int) -> dict[str, npt.NDArray[Any]]:
    return {
        "steps": moves.steps[first:].astype(np.float64),
        "past_steps": moves.past_steps[first:].astype(np.float64),
        "wall_times": moves.wall_times[first:],
        "learning_rates": moves.learning_rates[first:].astype(np.float32),
        "state": told[first:].T,
        "delta": moves.delta[first:].T,
    }


def channel_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """Everything recorded of one channel."""
    run, variable, layer_id = _chosen(store, caller, arguments)
    index = parameters.channel(arguments, variable)
    threshold = parameters.threshold(arguments)
    series = store.series(caller, run, variable.id)
    only = replace(series, codes=series.codes[:, :, index : index + 1])
    held = store.held(caller, run)
    moves = make_movement(only, variable, held.commanded(variable.id))
    found = held.violations.get(variable.id, ())
    audited = [one for one in found if one.channel == index]
    told = mark(moves.told(threshold), moves.steps, [replace(one, channel=0) for one in audited])
    _, violations = entries(variable, layer_id, audited, moves, index)
    body = {
        "schema": SCHEMA,
        "run": run.name,
        "layer": layer_id,
        "variable": variable.id,
        "channel": index,
        "precision": round(PRECISION, 3),
        **channel_of(only, told[:, 0], 0),
        "violations": violations,
    }
    return answer(dumps(body), JSON)


def violations_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """Held weights of a run that moved."""
    run = parameters.run(arguments, store.catalog(caller))

    def make() -> tuple[Answer, bool]:
        held = store.held(caller, run)
        found = run.notes + held.notes
        total, some = listed(run, held.violations, _noting(store, caller, run, found))
        body = {
            "schema": SCHEMA,
            "run": run.name,
            "total": total,
            "violations": some,
            "notes": notes.listed(found),
        }
        return answer(dumps(body), JSON), notes.WITHHELD not in found

    return _kept(store, ("violations", caller.experiment, run.name), run.version, make)


def function_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """How far the outputs of a run moved on its probe."""
    run = parameters.run(arguments, store.catalog(caller))

    def make() -> tuple[Answer, bool]:
        series = store.function(caller, run)
        found = run.notes + series.notes
        made = answer(function_container(run, series, found), BINARY)
        return made, notes.WITHHELD not in found

    return _kept(store, ("function", caller.experiment, run.name), run.version, make)


def _noting(
    store: Store, caller: Caller, run: Run, found: notes.Notes
) -> Iterator[tuple[str, Movement]]:
    """The records of all variables, adding to the notes what can't be read of them."""
    variables = list(dict.fromkeys(one for layer in run.layers for one in layer.variables))
    movements = store.each_movement(caller, run, variables)
    for variable, moves in zip(variables, movements, strict=True):
        found.update(moves.notes)
        yield variable, moves


def export_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """What the pictures show, as CSV: of all layers, of each channel of one, or of the probe."""
    if parameters.whole(arguments, "function", least=0, most=1):
        text = _function_csv(store, caller, arguments)
    elif "layer" in arguments:
        text = _layer_csv(store, caller, arguments)
    else:
        run = parameters.run(arguments, store.catalog(caller))
        _check_lines(len(run.axis.steps) * len(run.layers))
        overview = make_overview(store, caller, run, parameters.threshold(arguments), None)
        text = overview.table()
    disposition = ("Content-Disposition", 'attachment; filename="pastnet.csv"')
    return answer(text.encode("utf-8", "replace"), CSV, (disposition,))


def _layer_csv(store: Store, caller: Caller, arguments: Arguments) -> str:
    run, variable, _ = _chosen(store, caller, arguments)
    threshold = parameters.threshold(arguments)
    since = parameters.whole(arguments, "since", least=-_MOST_STEP, most=_MOST_STEP)
    series = store.series(caller, run, variable.id)
    first = _first_after(series.steps, since)
    channels = range(variable.channels)
    if "channel" in arguments:
        index = parameters.channel(arguments, variable)
        channels = range(index, index + 1)
    records = range(first, len(series.steps))
    _check_lines(len(records) * len(channels))
    held = store.held(caller, run)
    told = make_movement(series, variable, held.commanded(variable.id)).told(threshold)
    mark(told, series.steps, held.violations.get(variable.id, ()))
    lines = csv_export.layer_rows(series, told, records, channels)
    return csv_export.table(csv_export.LAYER, lines)


def _function_csv(store: Store, caller: Caller, arguments: Arguments) -> str:
    series = store.function(caller, parameters.run(arguments, store.catalog(caller)))
    _check_lines(len(series.steps) * len(series.places))
    return csv_export.table(COLUMNS, function_rows(series))


def _first_after(steps: npt.NDArray[np.int64], since: int | None) -> int:
    return 0 if since is None else int(np.searchsorted(steps, since, side="right"))


def _check_lines(count: int) -> None:
    if count > MOST_LINES:
        raise bad_request(
            f"Could not export: expected at most {MOST_LINES} lines, got {count}. "
            "Ask for one layer, for one of its channels, or for the steps since one."
        )


def _chosen(store: Store, caller: Caller, arguments: Arguments) -> tuple[Run, Variable, str]:
    run = parameters.run(arguments, store.catalog(caller))
    layer = parameters.layer(arguments, run)
    return run, parameters.variable(arguments, run, layer), layer.id


def _kept(
    store: Store, key: Hashable, version: Hashable, make: Callable[[], tuple[Answer, bool]]
) -> Answer:
    """An answer from the cache. One that TensorBoard withheld a part of is made anew each time."""

    def sized() -> tuple[Answer, int]:
        made, complete = make()
        return made, len(made.body) if complete else UNKEPT

    return store.kept(key, version, sized)


ROUTES: dict[str, Callable[[Store, Caller, Arguments], Answer]] = {
    "/index": index_impl,
    "/overview": overview_impl,
    "/layer": layer_impl,
    "/channel": channel_impl,
    "/violations": violations_impl,
    "/function": function_impl,
    "/export.csv": export_impl,
}
"""What is served below `data/plugin/pastnet/`."""
