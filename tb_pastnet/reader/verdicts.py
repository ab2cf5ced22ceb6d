"""Verdicts about layers of a run: whether they move in place, have arrived, or travel."""

from __future__ import annotations

import numpy as np

from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import NORM
from tb_pastnet.core.travel import Verdict, verdict
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.sketch_series import SketchSeries
from tb_pastnet.reader.store import RunReader


def verdict_of(reader: RunReader, variable: str) -> Verdict | None:
    """What the records of a variable prove at their end; None if too little is known."""
    sketches = reader.sketches().of([variable])
    return judged(reader, variable, sketches, reader.series(variable))


def judged(
    reader: RunReader, variable: str, sketches: SketchSeries, records: RecordSeries
) -> Verdict | None:
    """The same, from the sketches and the records of the variable."""
    if not len(sketches.steps) or not len(records.steps):
        return None
    changes = [change.step for change in reader.masks.events(variable) if change.mask == "kept"]
    resumed = records.steps[np.flatnonzero(np.diff(records.writers)) + 1]
    jumps = np.array([*changes, *resumed.tolist()], np.int64)
    row = int(np.searchsorted(records.steps, sketches.steps[-1], side="right")) - 1
    norm = float(np.sqrt(np.nansum(dequantize(records.codes[NORM, max(row, 0)]) ** 2)))
    values = np.where(
        (sketches.frames == sketches.frames[-1])[:, None], sketches.values[:, 0], np.nan
    )
    return verdict(sketches.steps, values, norm, records.learning_rates, jumps)
