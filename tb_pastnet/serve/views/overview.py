"""All layers of a run on one time axis, in as many columns as the picture has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.serve.http import container
from tb_pastnet.serve.http.failures import SCHEMA
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import Store
from tb_pastnet.serve.threads import in_threads
from tb_pastnet.serve.views import csv_export
from tb_pastnet.serve.views.digest import Digest, Part, digest_of
from tb_pastnet.serve.views.rows import Row, stack, total

_COUNTS = ("counts", "violated", "nonfinite", "pruned")

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Overview:
    """What the Network view shows of a run.

    Attributes:
        run: the run.
        threshold: relative delta under which a channel is quiet.
        digest: what is known of it.
        rows: one for each layer of the run, in its order.
    """

    run: Run
    threshold: float
    digest: Digest
    rows: tuple[Row, ...]

    def container(self) -> bytes:
        """The answer of the route."""
        header = {
            "schema": SCHEMA,
            "run": self.run.name,
            "threshold": self.threshold,
            "patience": states.PATIENCE,
            "past": self.run.past,
            "layers": [layer.id for layer in self.run.layers],
            "prunable": [one.prunable for one in self.digest.pruned],
            "violated_channels": self.digest.violated_channels,
            "accounts": [asdict(account) for account in self.digest.accounts],
            "notes": notes.listed(self.digest.notes),
        }
        axis = self.run.axis
        rates = _looked_up(axis.steps, axis.learning_rates, self.digest.steps)
        sections: dict[str, npt.NDArray[Any]] = {
            "first_steps": self.digest.first_steps.astype(np.float64),
            "steps": self.digest.steps.astype(np.float64),
            "wall_times": _looked_up(axis.steps, axis.wall_times, self.digest.steps),
            "learning_rates": rates.astype(np.float32),
        }
        layers = {**stack(self.rows, len(self.digest.steps)), "pruned": self._pruned()}
        sections |= layers | {f"total_{name}": sums for name, sums in total(layers).items()}
        for name in sections:
            if name.endswith(_COUNTS):
                sections[name] = container.smallest(sections[name])
        return container.pack(header, sections)

    def _pruned(self) -> Floats:
        counts = [one.counts for one in self.digest.pruned]
        return np.array(counts, np.float64).reshape(len(counts), len(self.digest.steps))

    def table(self) -> str:
        """The same as CSV."""
        layers = [
            csv_export.LayerLines(layer.id, self.run.variables[layer.main].channels, row, pruned)
            for layer, row, pruned in zip(
                self.run.layers, self.rows, self.digest.pruned, strict=True
            )
        ]
        return csv_export.table(
            csv_export.OVERVIEW, csv_export.overview_rows(self.digest.steps, layers)
        )


def make_overview(store: Store, caller: Caller, run: Run, threshold: float, part: Part) -> Overview:
    """Reads all layers of a run and pools them.

    Args:
        store: the records.
        caller: on whose behalf.
        run: from the catalog.
        threshold: relative delta under which a channel is quiet.
        part: which steps, in how many columns.
    """
    digest = digest_of(store, caller, run, part)
    rows = in_threads(lambda tally: tally.row(threshold), digest.tallies)
    return Overview(run, threshold, digest, tuple(rows))


def _looked_up(known: Integers, values: Floats, steps: Integers) -> Floats:
    """The values at some steps, NaN where the axis doesn't know them."""
    found = np.full(len(steps), np.nan)
    if len(known):
        at = np.minimum(np.searchsorted(known, steps), len(known) - 1)
        hit = known[at] == steps
        found[hit] = values[at[hit]]
    return found
