"""What is told of one layer, and of one of its channels."""

from __future__ import annotations

import zlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.reader import container, notes
from tb_pastnet.reader import layer_cells as cells
from tb_pastnet.reader.channel_view import channel_of
from tb_pastnet.reader.container import SCHEMA
from tb_pastnet.reader.layer_events import merge_events
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.state_series import Movement, make_movement, measured_in
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.strict_json import dumps
from tb_pastnet.reader.violation_list import entries, mark
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import BINARY, JSON, Answer, Known, answer
from tb_pastnet.serve.routes.kept import chosen, first_after, kept


def layer_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer | Known:
    """State and relative delta of each record and channel of one variable."""
    run, variable, layer_id = chosen(store, caller, arguments)
    threshold = parameters.threshold(arguments)
    since = parameters.step(arguments, "since")

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
        first = first_after(moves.steps, since)
        header["before"] = _digest(moves, told, first)
        header["digest"] = _digest(moves, told, len(moves.steps))
        sections = _sections(moves, told, first)
        return answer(container.pack(header, sections), BINARY), notes.WITHHELD not in found

    key = ("layer", caller.experiment, run.name, variable.id, threshold, since)
    return kept(store, key, run.version, make)


def _digest(moves: Movement, told: states.States, until: int) -> str:
    """Names the columns before one: a page that holds them can tell whether they still stand."""
    digest = 0
    for array in (moves.steps, moves.past_steps, told, moves.delta):
        digest = zlib.crc32(np.ascontiguousarray(array[:until]).data, digest)
    return f"{digest:08x}"


def _sections(moves: Movement, told: states.States, first: int) -> dict[str, npt.NDArray[Any]]:
    state, lengths = cells.stretches(told[first:])
    delta, values = cells.listed(moves.delta[first:])
    return {
        "steps": moves.steps[first:].astype(np.float64),
        "past_steps": moves.past_steps[first:].astype(np.float64),
        "wall_times": moves.wall_times[first:],
        "learning_rates": moves.learning_rates[first:].astype(np.float32),
        "state": state,
        "state_lengths": lengths,
        "delta": delta.T,
        "delta_values": values,
    }


def channel_impl(store: Store, caller: Caller, arguments: Arguments) -> Answer:
    """Everything recorded of one channel."""
    run, variable, layer_id = chosen(store, caller, arguments)
    index = parameters.channel(arguments, variable)
    threshold = parameters.threshold(arguments)
    series = store.series(caller, run, variable.id)
    only = replace(series, codes=series.codes[:, :, index : index + 1])
    held = store.held(caller, run)
    seen = measured_in(series, variable)
    moves = make_movement(only, variable, held.commanded(variable.id), seen=seen)
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
