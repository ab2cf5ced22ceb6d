"""Whether a log that is read back says what the routes of the tab answer, to the last bit."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from typing import Any

import numpy as np
from tensorboard import context

from tb_pastnet.reader.log import Log, Run
from tb_pastnet.reader.records import Records
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tests.blocks import all_records
from tests.masks_in_force import masks_in_force
from tests.tensorboards import Board

STATES = np.array(
    ["no data", "moving", "reactivated", "quiet", "frozen", "pruned", "following", "nonfinite"]
)
STATISTICS = (
    "norm", "past_norm", "delta_norm", "delta_max", "changed", "nonfinite", "kept", "trainable",
)  # fmt: skip
MEASURES = ("relative", "cosine", "divergence", "decisions")
same = np.testing.assert_array_equal


def check(here: Board, log: Log) -> int:
    """Compares everything.

    Returns:
        How many numbers were compared.
    """
    index = here.json("/index")
    assert list(log.runs) == [run["name"] for run in index["runs"]]
    assert list(log.warnings) == index["warnings"]
    return sum(
        check_run(here, log.runs[run["name"]], run, index["networks"][run["network"]])
        for run in index["runs"]
    )


def check_run(here: Board, run: Run, known: dict[str, Any], network: dict[str, Any]) -> int:
    for name in ("name", "source", "past", "every", "origin", "closed"):
        assert getattr(run, name) == known[name], name
    assert asdict(run.account) == known["account"]
    assert [asdict(one) for one in run.lineages] == known["lineages"]
    assert run.skipped == {one["name"]: one["reason"] for one in known["skipped"]}
    ends = [*run.steps[[0, -1]].tolist()] if len(run.steps) else [None, None]
    assert [*ends, len(run.steps)] == [known[x] for x in ("first_step", "last_step", "records")]
    told = here.json("/violations", run=run.name)
    assert len(run.violations) == told["total"]
    ours = [asdict(one) for one in run.violations[:4096]]
    for one in ours:
        one["largest"] = one["largest"] if math.isfinite(one["largest"]) else None
    assert ours == told["violations"]
    # The route reads records as well, of which more may be damaged.
    notes = {note["text"]: note["count"] for note in told["notes"]}
    assert all(notes.get(text, 0) >= many for text, many in run.notes.items())
    count = check_overview(here, run) + check_function(here, run)
    assert list(run.layers) == [layer["id"] for layer in network["layers"]]
    for layer in network["layers"]:
        one = run.layers[layer["id"]]
        for name in ("id", "group", "name", "type", "variable"):
            assert getattr(one, name) == layer[name]
        assert list(one.variables) == [variable["id"] for variable in layer["variables"]]
        same(one.delta_max, one.variables[one.variable].delta_max)
        same(one.steps, one.variables[one.variable].steps)
        for name, variable in one.variables.items():
            count += check_records(here, run, layer["id"], variable, {"variable": name})
    return count


def check_overview(here: Board, run: Run) -> int:
    header, arrays = all_records(here, run=run.name)
    ours = run.overview()
    assert list(ours.layers) == header["layers"]
    same(ours.steps, arrays["steps"])
    # Where a layer lacks a record, the route tells of the one before.
    own = arrays["age"] == 0
    for at, state in enumerate(STATES[1:].tolist(), 1):
        same(getattr(ours, state).T, np.where(own, arrays["counts"][:, :, at], 0))
    same(ours.violated.T, np.where(own, arrays["violated"], 0))
    same(ours.mean_delta.T, np.where(own, arrays["mean_delta"], np.float32(np.nan)))
    same(np.where(own, ours.pruned_weights.T, 0), np.where(own, arrays["pruned"], 0))
    assert ours.prunable_weights.tolist() == header["prunable"]
    prunable = sum(header["prunable"])
    if prunable and own.all():
        same(ours.sparsity, arrays["pruned"].sum(axis=0, dtype=np.float64) / prunable)
    lines = table(here, run=run.name)
    assert len(lines) == len(ours.steps) * len(ours.layers)
    return sum(array.size for array in arrays.values())


def check_function(here: Board, run: Run) -> int:
    header, arrays = here.arrays("/function", run=run.name)
    ours = run.function
    same(ours.steps, arrays["steps"])
    same(ours.past_steps, arrays["past_steps"])
    for at, name in enumerate(MEASURES):
        same(getattr(ours, name).T, arrays["values"][at])
    assert [asdict(one) for one in ours.places] == header["places"]
    assert list(ours.changed) == header["changed"]
    assert [one.digest for one in ours.probe] == [one["digest"] for one in header["probe"]]
    return int(arrays["values"].size)


def check_records(here: Board, run: Run, layer: str, ours: Records, query: dict[str, str]) -> int:
    asked = {"run": run.name, "layer": layer, **query}
    header, arrays = here.arrays("/layer", **asked, th="0.01")
    for name in ("steps", "past_steps", "wall_times"):
        same(getattr(ours, name), arrays[name])
    same(ours.learning_rates.astype(np.float32), arrays["learning_rates"])
    state = arrays["state"].T
    same(ours.states(0.01), STATES[state & 7])
    same(ours.violated, state & 0x80 != 0)
    same(ours.nonfinite != 0, state & 7 == 7)
    same(ours.relative_delta, arrays["delta"].T)
    assert asdict(ours.account) == header["account"]
    described = (list(ours.shape), ours.axis, ours.channels, ours.elements, ours.role)
    assert described == tuple(header[x] for x in ("shape", "axis", "channels", "elements", "role"))
    count = sum(array.size for array in arrays.values())
    for channel in {0, ours.channels - 1} if ours.channels else ():
        count += check_channel(here, asked, ours, channel)
    count += check_masks(here, run, ours, header["variable"])
    return count


def check_channel(here: Board, asked: dict[str, str], ours: Records, channel: int) -> int:
    told = here.json("/channel", **asked, channel=channel)
    assert told["state"] == ours.states()[:, channel].tolist()
    for name in ("relative_delta", *STATISTICS):
        form = ".0f" if name == "nonfinite" else ".4g"
        mine = [digits(x, form) for x in getattr(ours, name)[:, channel].tolist()]
        assert told[name] == mine, name
    lines = table(here, **asked, channel=channel)
    assert [line["state"] for line in lines] == told["state"]
    assert [int(line["step"]) for line in lines] == ours.steps.tolist()
    found = [one["first_step"] for one in told["violations"]]
    assert sorted(found) == [one.first_step for one in ours.violations if one.channel == channel]
    return len(STATISTICS) * len(lines)


def check_masks(here: Board, run: Run, ours: Records, variable: str) -> int:
    store, caller = Store(here.provider), RequestContext(context.RequestContext(), "")
    for step in {0, *ours.steps[::7].tolist(), *ours.steps[-1:].tolist()}:
        reader = store.reader(caller, store.catalog(caller).runs[run.name])
        told = masks_in_force(reader, variable, step)
        masks = ours.masks(step)
        for name in ("kept", "trainable"):
            mine, theirs = getattr(masks, name), getattr(told, name)
            if name in told.unknown:
                assert mine is None
            else:
                assert mine.shape == ours.shape
                same(mine.ravel(), True if theirs is None else theirs)
    return math.prod(ours.shape)


def digits(number: float, form: str) -> float | None:
    """A number as the channel route rounds it."""
    return float(f"{number:{form}}") if math.isfinite(number) else None


def table(here: Board, **query: Any) -> list[dict[str, str]]:
    text = here.get("/export.csv", **query).get_data(as_text=True)
    return list(csv.DictReader(io.StringIO(text.replace("\0", "␀"), newline="")))
