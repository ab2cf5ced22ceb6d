"""What is told of all runs, and of one run as a whole."""

from __future__ import annotations

from tb_pastnet.reader import notes
from tb_pastnet.reader.container import SCHEMA
from tb_pastnet.reader.figures import BLOCK, Part, figures_of
from tb_pastnet.reader.function_view import function_container
from tb_pastnet.reader.index import index_of
from tb_pastnet.reader.marked import marks_of
from tb_pastnet.reader.overview_columns import overview_container
from tb_pastnet.reader.run_findings import findings_of, told
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.strict_json import dumps
from tb_pastnet.reader.violation_list import listed
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import BINARY, JSON, Answer, Known, answer
from tb_pastnet.serve.routes.kept import kept


def index_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """All runs and their networks."""
    del arguments
    catalog = store.catalog(caller)
    version = (
        catalog.other_runs,
        catalog.warnings,
        tuple((name, run.version) for name, run in catalog.runs.items()),
    )
    complete = not any(notes.WITHHELD in run.notes for run in catalog.runs.values())
    return kept(
        store,
        ("index", caller.experiment),
        version,
        lambda: (answer(dumps(index_of(catalog)), JSON), complete),
        small=True,
    )


def overview_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """Every layer of a run in at most `cols` columns, from one step to another: to be drawn."""
    run = parameters.run(arguments, store.catalog(caller))
    threshold = parameters.threshold(arguments)
    most = parameters.whole(
        arguments, "cols", least=1, most=parameters.MOST_COLUMNS, default=parameters.COLUMNS
    )
    part = Part(*parameters.span(arguments))

    def make() -> tuple[Answer, bool]:
        figures = figures_of(store, caller, run, threshold)
        body = overview_container(figures, most or parameters.COLUMNS, part)
        return answer(body, BINARY), notes.WITHHELD not in figures.digest.notes

    key = ("overview", caller.experiment, run.name, threshold, most, part)
    return kept(store, key, run.version, make, small=True)


def records_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """Exact figures of every layer at the record in force at a step, and at those around it."""
    run = parameters.run(arguments, store.catalog(caller))
    threshold = parameters.threshold(arguments)
    step = parameters.step(arguments, "at")
    count = parameters.whole(arguments, "count", least=1, most=BLOCK, default=BLOCK) or BLOCK

    def make() -> tuple[Answer, bool]:
        figures = figures_of(store, caller, run, threshold)
        last = int(figures.steps[-1]) if len(figures.steps) else 0
        body = figures.block(last if step is None else step, count)
        return answer(body, BINARY), notes.WITHHELD not in figures.digest.notes

    key = ("records", caller.experiment, run.name, threshold, step, count)
    return kept(store, key, run.version, make, small=True)


def violations_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """Held weights of a run that moved."""
    run = parameters.run(arguments, store.catalog(caller))

    def make() -> tuple[Answer, bool]:
        held = store.held(caller, run)
        found = run.notes + held.notes
        total, some = listed(run, held.violations, marks_of(store, caller, run, found))
        body = {
            "schema": SCHEMA,
            "run": run.name,
            "total": total,
            "violations": some,
            "notes": notes.listed(found),
        }
        return answer(dumps(body), JSON), notes.WITHHELD not in found

    key = ("violations", caller.experiment, run.name)
    return kept(store, key, run.version, make, small=True)


def findings_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """What there is to know of some runs before anybody asks."""
    runs = parameters.runs(arguments, store.catalog(caller), 1, parameters.MOST_LISTED)
    threshold = parameters.threshold(arguments)

    def make() -> tuple[Answer, bool]:
        found = findings_of(store, caller, runs, threshold)
        body = {"schema": SCHEMA, "threshold": threshold, "findings": [told(one) for one in found]}
        digests = (figures_of(store, caller, run, threshold).digest for run in runs)
        return answer(dumps(body), JSON), not any(notes.WITHHELD in one.notes for one in digests)

    key = ("findings", caller.experiment, tuple(run.name for run in runs), threshold)
    return kept(store, key, tuple(run.version for run in runs), make, small=True)


def function_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """How far the outputs of a run moved on its probe."""
    run = parameters.run(arguments, store.catalog(caller))

    def make() -> tuple[Answer, bool]:
        series = store.function(caller, run)
        found = run.notes + series.notes
        made = answer(function_container(run, series, found), BINARY)
        return made, notes.WITHHELD not in found

    return kept(store, ("function", caller.experiment, run.name), run.version, make)
