"""The answers about one layer, and about one of its channels."""

from __future__ import annotations

import math
import zlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states, statistics
from tb_pastnet.core.quantize import PRECISION, dequantize
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader import notes, sections
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.layer_events import merge_events
from tb_pastnet.reader.runs import variable_facts
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.state_series import StateSeries, make_state_series
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.tables import Columns, Labels
from tb_pastnet.reader.violation_list import mark, violations_of

COUNTS_EXACT = {statistics.STATISTICS[row]: ".0f" for row in statistics.COUNTS}
"""Formats of columns whose numbers aren't rounded for display."""


def layer_view(
    reader: RunReader, layer: str, variable: VariableEntry, threshold: float, since: int | None
) -> Sections:
    """State and relative delta of each record and channel of one variable."""
    # The series of a wide layer isn't kept: it is used once.
    series, masks = reader.state_series(variable.id), reader.masks
    state = reader.marked(series, variable.id, threshold)
    first = first_after(series.steps, since)
    lost = series.notes + masks.notes
    header = {
        "run": reader.run.name,
        "layer": layer,
        "variable": variable.id,
        **variable_facts(variable),
        "elements": variable.elements,
        "threshold": threshold,
        "patience": channel_states.PATIENCE,
        "past": reader.run.past,
        "account": asdict(series.account),
        "notes": notes.listed(lost),
        "events": merge_events(series.events, series.steps, masks.events(variable.id)),
        "before": _digest(series, state, first),
        "digest": _digest(series, state, len(series.steps)),
    }
    stretches, lengths = sections.stretches(state[first:])
    delta, values = sections.listed(series.delta[first:])
    arrays: dict[str, npt.NDArray[Any]] = {
        "steps": series.steps[first:].astype(np.float64),
        "past_steps": series.past_steps[first:].astype(np.float64),
        "wall_times": series.wall_times[first:],
        "learning_rates": series.learning_rates[first:].astype(np.float32),
        "state": stretches,
        "state_lengths": lengths,
        "delta": delta.T,
        "delta_values": values,
    }
    return header, arrays, lost


def first_after(steps: Integers, since: int | None) -> int:
    """The position of the first record after a step; 0 without a step."""
    return 0 if since is None else int(np.searchsorted(steps, since, side="right"))


def _digest(series: StateSeries, state: channel_states.States, until: int) -> str:
    """Identifies the columns before one: a page can check whether those it has are still valid."""
    digest = 0
    for array in (series.steps, series.past_steps, state, series.delta):
        digest = zlib.crc32(np.ascontiguousarray(array[:until]).data, digest)
    return f"{digest:08x}"


def channel_view(
    reader: RunReader, layer: str, variable: VariableEntry, channel: int, threshold: float
) -> dict[str, Any]:
    """Everything recorded of one channel, as JSON values."""
    series = reader.series(variable.id)
    only = series.part(slice(None), slice(channel, channel + 1))
    own = make_state_series(only, variable, reader.masks.commanded(variable.id))
    audited = [
        violation
        for violation in reader.masks.violations.get(variable.id, ())
        if violation.channel == channel
    ]
    first = [replace(violation, channel=0) for violation in audited]
    state = mark(own.states(threshold), own.steps, first)
    _, violations = violations_of(variable, layer, audited, own.marks, channel)
    return {
        "run": reader.run.name,
        "layer": layer,
        "variable": variable.id,
        "channel": channel,
        "precision": round(PRECISION, 3),
        **channel_records(only, state),
        "violations": [asdict(violation) for violation in violations],
    }


def channel_records(series: RecordSeries, state: channel_states.States) -> dict[str, Any]:
    """The records of one channel, one value per record; None: JSON has no such number."""
    plain = (state[:, 0] & np.uint8(channel_states.STATE)).tolist()
    changes = [row for row in range(1, len(plain)) if plain[row] != plain[row - 1]]
    return {
        "steps": series.steps.tolist(),
        "past_steps": series.past_steps.tolist(),
        "state": [channel_states.NAMES[code] for code in plain],
        "violated": ((state[:, 0] & channel_states.VIOLATED) != 0).tolist(),
        **{
            name: _rounded(values[:, 0], COUNTS_EXACT.get(name, ".4g"))
            for name, values in _values(series).items()
        },
        "changes": [
            {
                "step": int(series.steps[row]),
                "from": channel_states.NAMES[plain[row - 1]],
                "to": channel_states.NAMES[plain[row]],
            }
            for row in changes
        ],
    }


def _rounded(values: Floats, digits: str) -> list[float | None]:
    """Values for display, in a format; None if JSON has no such number."""
    return [float(f"{v:{digits}}") if math.isfinite(v) else None for v in values.tolist()]


def record_columns(
    series: RecordSeries,
    state: channel_states.States,
    first_channel: int = 0,
) -> Columns:
    """The records of a variable as a table, a row for each record and channel.

    The states are uint8 (records, channels).
    """
    _, records, channels = series.codes.shape
    return {
        "step": np.repeat(series.steps, channels),
        "past_step": np.repeat(series.past_steps, channels),
        "channel": np.tile(np.arange(first_channel, first_channel + channels), records),
        "state": Labels(channel_states.NAMES, (state & np.uint8(channel_states.STATE)).ravel()),
        "violated": ((state & np.uint8(channel_states.VIOLATED)) != 0).ravel(),
        **{name: values.ravel() for name, values in _values(series).items()},
    }


def _values(series: RecordSeries) -> dict[str, Floats]:
    """The relative delta and all statistics by name, float64 (records, channels) each."""
    return {
        "relative_delta": dequantize(channel_states.relative_delta(series.codes)),
        **{
            name: statistics.dequantize_statistic(row, series.codes)
            for row, name in enumerate(statistics.STATISTICS)
        },
    }
