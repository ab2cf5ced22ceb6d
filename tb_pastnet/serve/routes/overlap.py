"""How far masks of runs overlap, beside how far they would by chance."""

from __future__ import annotations

from tb_pastnet.core.names import MASKS
from tb_pastnet.reader.overlap_layers import make_overlap_layers
from tb_pastnet.reader.overlap_pairs import make_overlap
from tb_pastnet.reader.overlap_question import Question
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.strict_json import dumps
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.failures import not_found, shown
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import BINARY, JSON, Answer, Known, answer
from tb_pastnet.serve.routes.kept import kept


def overlap_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """Each two of some runs at a step, over all layers or in one."""
    runs = parameters.runs(arguments, store.catalog(caller))
    step = parameters.step(arguments, "step")
    layer = arguments.get("layer")
    if layer is not None and not any(one.id == layer for run in runs for one in run.layers):
        raise not_found(
            f"Could not find the layer: expected one of the {len(runs)} runs to have it, got "
            f"{shown(layer)}. The index lists them."
        )
    question = _question(store, caller, arguments, layer)

    def make() -> tuple[Answer, bool]:
        body, complete = make_overlap(question, runs, step)
        return answer(dumps(body), JSON), complete

    names = tuple(run.name for run in runs)
    key = ("overlap", caller.experiment, names, step, layer, question.unit, question.mask)
    return kept(store, key, tuple(run.version for run in runs), make)


def overlap_layers_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """Two runs, layer by layer in at most `cols` columns, or exactly at a step."""
    catalog = store.catalog(caller)
    pair = parameters.run(arguments, catalog), parameters.run(arguments, catalog, "other")
    most = parameters.whole(
        arguments, "cols", least=1, most=parameters.MOST_COLUMNS, default=parameters.COLUMNS
    )
    step = parameters.step(arguments, "at")
    question = _question(store, caller, arguments, None)

    def make() -> tuple[Answer, bool]:
        body, complete = make_overlap_layers(question, *pair, most or parameters.COLUMNS, step)
        return answer(body, BINARY), complete

    names = tuple(run.name for run in pair)
    key = ("overlap layers", caller.experiment, names, question.unit, question.mask, most, step)
    return kept(store, key, tuple(run.version for run in pair), make)


def _question(store: Store, caller: Caller, arguments: Arguments, layer: str | None) -> Question:
    unit = parameters.choice(arguments, "unit", UNITS)
    return Question(store, caller, unit, parameters.choice(arguments, "mask", MASKS), layer)
