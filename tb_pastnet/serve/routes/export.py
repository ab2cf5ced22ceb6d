"""What the pictures show, as text."""

from __future__ import annotations

from tb_pastnet.reader import csv_export
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.function_view import COLUMNS, function_rows
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.state_series import make_movement
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.violation_list import mark
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.failures import bad_request
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import CSV, Answer, answer
from tb_pastnet.serve.routes.kept import chosen, first_after

MOST_LINES = 1 << 20
"""Lines of a CSV export; a larger one is refused."""


def export_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """What the pictures show, as CSV: of all layers, of each channel of one, or of the probe."""
    if parameters.whole(arguments, "function", least=0, most=1):
        text = _function_csv(store, caller, arguments)
    elif "layer" in arguments:
        text = _layer_csv(store, caller, arguments)
    else:
        run = parameters.run(arguments, store.catalog(caller))
        _check_lines(len(run.axis.steps) * len(run.layers))
        text = figures_of(store, caller, run, parameters.threshold(arguments)).table()
    # Without a name: one of ours would go before that of the page, which tells runs apart.
    disposition = ("Content-Disposition", "attachment")
    return answer(text.encode("utf-8", "replace"), CSV, (disposition,))


def _layer_csv(store: Store, caller: Caller, arguments: Arguments) -> str:
    run, variable, _ = chosen(store, caller, arguments)
    threshold = parameters.threshold(arguments)
    since = parameters.step(arguments, "since")
    series = store.series(caller, run, variable.id)
    first = first_after(series.steps, since)
    channels = range(variable.channels)
    if "channel" in arguments:
        index = parameters.channel(arguments, variable)
        channels = range(index, index + 1)
    records = range(first, len(series.steps))
    _check_lines(len(records) * len(channels))
    held = store.held(caller, run)
    told = make_movement(series, variable, held.commanded(variable.id)).told(threshold)
    mark(told, series.steps, held.violations.get(variable.id, ()))
    return "".join(csv_export.layer_table(series, told, records, channels))


def _function_csv(store: Store, caller: Caller, arguments: Arguments) -> str:
    series = store.function(caller, parameters.run(arguments, store.catalog(caller)))
    _check_lines(len(series.steps) * len(series.places))
    return csv_export.table(COLUMNS, function_rows(series))


def _check_lines(count: int) -> None:
    if count > MOST_LINES:
        raise bad_request(
            f"Could not export: expected at most {MOST_LINES} lines, got {count}. "
            "Ask for one layer, for one of its channels, or for the steps since one."
        )
