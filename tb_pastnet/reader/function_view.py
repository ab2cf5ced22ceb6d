"""How far outputs moved on the probe: as the picture needs it, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.function_change import MEASURES
from tb_pastnet.reader import container, notes
from tb_pastnet.reader.container import SCHEMA
from tb_pastnet.reader.csv_export import harmless, number
from tb_pastnet.reader.function_series import FunctionSeries
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run

_DIGITS = 7  # all that float32 holds: a cosine is mostly nearly 1

COLUMNS = ("step", "past_step", "kind", "place", *MEASURES)


def function_container(run: Run, series: FunctionSeries, found: Notes) -> bytes:
    """The answer of the route.

    Args:
        run: the run.
        series: its records.
        found: what could not be read of both.
    """
    header = {
        "schema": SCHEMA,
        "run": run.name,
        "past": run.past,
        "probe": [asdict(one) for one in series.probe],
        "changed": list(series.changed),
        "places": [asdict(one) for one in series.places],
        "measures": list(MEASURES),
        "notes": notes.listed(found),
    }
    sections: dict[str, npt.NDArray[Any]] = {
        "steps": series.steps.astype(np.float64),
        "past_steps": series.past_steps.astype(np.float64),
        "values": series.values,
    }
    return container.pack(header, sections)


def function_rows(series: FunctionSeries) -> Iterator[list[Any]]:
    """A line for each record and place, as in `COLUMNS`."""
    for at, step in enumerate(series.steps.tolist()):
        past = int(series.past_steps[at])
        for place, values in zip(series.places, series.values[:, :, at].T.tolist(), strict=True):
            cells = (number(one, _DIGITS) for one in values)
            yield [step, past, harmless(place.kind), harmless(place.name), *cells]
