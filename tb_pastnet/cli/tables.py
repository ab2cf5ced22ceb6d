"""What is exported: tables of columns, as `pastnet.read` gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.function_change import MEASURES
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.log.network import Variable
from tb_pastnet.log.runs import Run

_COUNTS = (
    "moving", "reactivated", "settled", "frozen", "pruned",
    "violated", "nonfinite", "mean_delta", "pruned_weights",
)  # fmt: skip


class Labels(NamedTuple):
    """A column of texts of which many are equal.

    Attributes:
        names: those that there are.
        codes: int32 (rows,), the position of each row's name.
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]


Column = npt.NDArray[Any] | Labels


class Table(NamedTuple):
    """A table.

    Attributes:
        kind: one of "runs", "layers", "violations", "function", "channels".
        run: whose, None in the table of all runs.
        layer: whose, None where it isn't of one.
        variable: likewise.
        columns: by name, all of one length.
    """

    kind: str
    run: str | None
    layer: str | None
    variable: str | None
    columns: Mapping[str, Column]


def labels(texts: Sequence[str]) -> Labels:
    """Makes a column of texts.

    Example:
        >>> labels(["a", "b", "a"]).codes.tolist()
        [0, 1, 0]
    """
    names = tuple(dict.fromkeys(texts))
    at = {name: number for number, name in enumerate(names)}
    return Labels(names, np.array([at[text] for text in texts], np.int32))


def runs_table(runs: Sequence[Run]) -> Table:
    """A row a run: where it stands, and its account of records."""
    spans = [run.steps for run in runs]
    accounts = [asdict(run.account) for run in runs]
    columns: dict[str, Column] = {
        "run": labels([run.name for run in runs]),
        "source": labels([run.source for run in runs]),
        "past": labels([run.past for run in runs]),
        "origin": labels([run.origin for run in runs]),
        "closed": np.array([run.closed for run in runs], bool),
        "lineages": np.array([len(run.lineages) for run in runs], np.int64),
        "records": np.array([len(steps) for steps in spans], np.int64),
        "first_step": np.array([steps[0] if len(steps) else np.nan for steps in spans], np.float64),
        "last_step": np.array([steps[-1] if len(steps) else np.nan for steps in spans], np.float64),
    }
    for name in ("offered", "shown", "superseded", "thinned", "dropped", "unreadable"):
        columns[name] = np.array([account[name] for account in accounts], np.int64)
    return Table("runs", None, None, None, columns)


def layers_table(run: Run, threshold: float) -> Table:
    """A row for each record and layer: how many channels are in which state."""
    found = run.overview(threshold)
    records, layers = len(found.steps), len(found.layers)
    columns: dict[str, Column] = {
        "step": np.repeat(found.steps, layers),
        "layer": Labels(found.layers, np.tile(np.arange(layers, dtype=np.int32), records)),
        "channels": np.tile(found.channels, records),
    }
    columns |= {name: getattr(found, name).ravel() for name in _COUNTS}
    columns["prunable_weights"] = np.tile(found.prunable_weights, records)
    return Table("layers", run.name, None, None, columns)


def violations_table(run: Run) -> Table:
    """A row for each channel of held weights that moved, and beginning."""
    found = run.violations
    columns: dict[str, Column] = {
        name: labels([getattr(one, name) for one in found])
        for name in ("layer", "variable", "cause")
    }
    for name in ("channel", "first_step", "last_step", "elements", "held"):
        columns[name] = np.array([getattr(one, name) for one in found], np.int64)
    columns["largest"] = np.array([one.largest for one in found], np.float64)
    return Table("violations", run.name, None, None, columns)


def function_table(run: Run) -> Table:
    """A row for each record of the probe and place: how far outputs moved."""
    found = run.function
    places, records = len(found.places), len(found.steps)
    kind = labels([place.kind for place in found.places])
    place = labels([place.name for place in found.places])
    columns: dict[str, Column] = {
        "step": np.repeat(found.steps, places),
        "past_step": np.repeat(found.past_steps, places),
        "kind": Labels(kind.names, np.tile(kind.codes, records)),
        "place": Labels(place.names, np.tile(place.codes, records)),
    }
    columns |= {name: getattr(found, name).ravel() for name in MEASURES}
    return Table("function", run.name, None, None, columns)


def channels_tables(run: Run, layers: Sequence[str] | None, threshold: float) -> Iterator[Table]:
    """Of each variable a row for each record and channel; one variable at a time is in memory.

    Args:
        run: the run.
        layers: ids of layers; None: all.
        threshold: the relative delta under which a channel is quiet.

    Yields:
        The tables, of a variable that two layers share one.

    Raises:
        UnknownName: the run has no such layer.
    """
    chosen = list(run.layers) if layers is None else [run.layers[name].id for name in layers]
    seen = set()
    for layer in chosen:
        for variable in run.layers[layer].variables.values():
            if variable.id not in seen:
                seen.add(variable.id)
                columns = _channels(variable, threshold)
                yield Table("channels", run.name, layer, variable.id, columns)


def _channels(variable: Variable, threshold: float) -> dict[str, Column]:
    steps = variable.steps
    states = variable.states(threshold)
    names, codes = np.unique(states, return_inverse=True)
    columns: dict[str, Column] = {
        "step": np.repeat(steps, variable.channels),
        "past_step": np.repeat(variable.past_steps, variable.channels),
        "channel": np.tile(np.arange(variable.channels), len(steps)),
        "state": Labels(tuple(names.tolist()), codes.ravel().astype(np.int32)),
        "violated": variable.violated.ravel(),
    }
    for name in ("relative_delta", *STATISTICS):
        columns[name] = getattr(variable, name).ravel()
    return columns
