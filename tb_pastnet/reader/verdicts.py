"""Verdicts about layers of a run: whether they move in place, have arrived, or travel."""

from __future__ import annotations

import numpy as np

from tb_pastnet.core.quantize import ZERO, dequantize
from tb_pastnet.core.statistics import MASK_ROWS, NORM, TRAINABLE
from tb_pastnet.core.travel import Ending, Verdict, is_high, verdict
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.sketch_series import SketchSeries
from tb_pastnet.reader.store import RunReader


def verdict_of(reader: RunReader, variable: str) -> Verdict | None:
    """What the records of a variable prove at their end; None if too little is known."""
    return judged(reader.sketches(), variable, ending_of(reader.series(variable)))


def judged(sketches: SketchSeries, variable: str, ending: Ending) -> Verdict | None:
    """The same, from the sketches of its run."""
    own = sketches.of([variable])
    if not len(own.steps):
        return None
    comparable = (own.frames == own.frames[-1])[:, None]
    return verdict(own.steps, np.where(comparable, own.values[:, 0], np.nan), ending)


def ending_of(records: RecordSeries) -> Ending:
    """How the records of a variable end."""
    if not len(records.steps):
        return Ending(np.nan, trains=False, jump=None)
    jumps = np.diff(records.writers) != 0
    for row in MASK_ROWS:
        plane = records.codes[row]
        jumps |= (plane[1:] != plane[:-1]).any(axis=1)
    last = np.flatnonzero(jumps)[-1:].tolist()
    squares = dequantize(records.codes[NORM, -1])
    squares *= squares
    squares[np.isnan(squares)] = 0
    free = bool((records.codes[TRAINABLE, -1] != ZERO).any())
    return Ending(
        float(np.sqrt(squares.sum())),
        trains=free and is_high(records.learning_rates),
        jump=int(records.steps[last[0] + 1]) if last else None,
    )
