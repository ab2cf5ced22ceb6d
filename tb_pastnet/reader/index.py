"""The index: every run, and every network once, however many runs share it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from tb_pastnet.core import channel_states
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.catalog import Catalog
from tb_pastnet.reader.runs import CatalogRun, variable_facts
from tb_pastnet.reader.verified import verified_in


def index_of(catalog: Catalog) -> dict[str, Any]:
    """Writes the catalog as JSON values."""
    networks: dict[tuple[Any, ...], int] = {}
    runs = [
        _run(run, networks.setdefault(_key(run), len(networks))) for run in catalog.runs.values()
    ]
    firsts: dict[int, CatalogRun] = {}
    for run, entry in zip(catalog.runs.values(), runs, strict=True):
        firsts.setdefault(entry["network"], run)
    return {
        "threshold": channel_states.THRESHOLD,
        "patience": channel_states.PATIENCE,
        "runs": runs,
        "networks": [_network(firsts[number]) for number in networks.values()],
        "other_runs": catalog.other_runs,
        "warnings": list(catalog.warnings),
    }


def _key(run: CatalogRun) -> tuple[Any, ...]:
    return run.layers, tuple(run.variables.values())


def _run(run: CatalogRun, network: int) -> dict[str, Any]:
    steps, times = run.axis.steps, run.axis.wall_times
    return {
        "name": run.name,
        "tb_runs": list(run.tb_runs),
        "network": network,
        "origin": run.origin,
        "past": run.past,
        "every": run.every,
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
        "records": len(steps),
        "steps": stretches(steps),
        "closed": run.closed,
        "wall_time": [finite(times[0]), finite(times[-1])] if len(times) else [None, None],
        "lineages": [asdict(lineage.public) for lineage in run.lineages],
        "account": asdict(run.account),
        "verified": verified_in(run).as_json(),
        "overhead": overhead_of(run.overhead),
        "notes": notes.listed(run.notes),
        "skipped": [{"name": name, "reason": reason} for name, reason in run.skipped],
        "source": run.source,
        "probe": run.probed,
        "can_probe": run.can_probe,
    }


def stretches(steps: Integers) -> list[list[int]]:
    """Steps as stretches of equal strides, few numbers: first step, stride and count of each.

    Example:
        >>> import numpy as np
        >>> stretches(np.array([0, 10, 20, 25, 30]))
        [[0, 10, 3], [25, 5, 2]]
    """
    parts: list[list[int]] = []
    previous = 0
    for step in steps.tolist():
        if parts and (parts[-1][2] == 1 or step - previous == parts[-1][1]):
            parts[-1] = [parts[-1][0], step - previous, parts[-1][2] + 1]
        else:
            parts.append([step, 1, 1])
        previous = step
    return parts


def overhead_of(cost: Overhead | None) -> dict[str, Any] | None:
    """The recording overhead as JSON values; None if unknown."""
    if cost is None:
        return None
    return {**asdict(cost), "seconds": cost.seconds, "share": finite(cost.share)}


def _network(run: CatalogRun) -> dict[str, Any]:
    layers = []
    for layer in run.layers:
        main = run.variables[layer.main]
        layers.append(
            {
                "id": layer.id,
                "group": layer.group,
                "name": layer.name,
                "type": layer.type,
                "variable": main.id,
                **variable_facts(main),
                "weights": math.prod(main.shape),
                "variables": [
                    {"id": name, **variable_facts(run.variables[name])} for name in layer.variables
                ],
            }
        )
    return {"layers": layers}


def finite(value: float) -> float | None:
    """A number for JSON; None if it isn't finite."""
    return float(value) if math.isfinite(value) else None
