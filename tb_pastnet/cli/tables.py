"""What is exported: tables of columns, as `pastnet.read` gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from tb_pastnet.reader.columns import Column, Columns, Labels, labels, occurring
from tb_pastnet.reader.run import Run


class Table(NamedTuple):
    """A table.

    Attributes:
        kind: one of "runs", "layers", "violations", "function", "channels".
        run: whose, None in the table of all runs.
        layer: whose, None where it isn't of one.
        variable: likewise.
        columns: of the table.
    """

    kind: str
    run: str | None
    layer: str | None
    variable: str | None
    columns: Columns


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
    return Table("layers", run.name, None, None, run.overview(threshold).columns())


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
    return Table("function", run.name, None, None, run.function.columns())


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
                columns = _only_occurring(variable.columns(threshold))
                yield Table("channels", run.name, layer, variable.id, columns)


def _only_occurring(columns: Columns) -> Columns:
    """Of texts those that stand in the table."""
    return {
        name: occurring(column) if isinstance(column, Labels) else column
        for name, column in columns.items()
    }
