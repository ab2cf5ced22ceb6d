"""What happened to a layer: masks changed, the learning rate changed, training was resumed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.run_changes import rate_jumps
from tb_pastnet.core.statistics import KEPT, TRAINABLE
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.mask_history import MaskEvent
from tb_pastnet.reader.series import RecordSeries

Event = dict[str, Any]

MOST_EVENTS = 256
"""Events of a layer that are listed."""


def recorded_events(series: RecordSeries) -> list[Event]:
    """The events that records show, in order, the first 256.

    In addition to step, kind and text, a "learning_rate" has `from` and `to`, and "trainable" has
    how many of all `channels` are `frozen` and `pruned` from then on. Of learning rates only jumps
    are listed, by the rule of the finding: schedules that change gradually have none.
    """
    resumed = series.steps[np.flatnonzero(np.diff(series.writers)) + 1]
    restarts = [_event(step, "restart", "training was resumed here") for step in resumed]
    events = [*restarts, *_rates(series), *_masks(series)]
    return sorted(events, key=lambda event: int(event["step"]))[:MOST_EVENTS]


def _event(step: np.int64 | int, kind: str, text: str, **values: float) -> Event:
    return {"step": int(step), "kind": kind, "text": text, **values}


def _rates(series: RecordSeries) -> list[Event]:
    events = []
    for step, before, after, _ in rate_jumps(series.steps, series.learning_rates):
        text = f"learning rate {before:.3g} → {after:.3g}"
        events.append(_event(step, "learning_rate", text, **{"from": before, "to": after}))
    return events


def _masks(series: RecordSeries) -> list[Event]:
    planes = [series.codes[KEPT], series.codes[TRAINABLE]]
    # Views, one after the other: a copy of both takes ten times as long.
    changed = [(plane[1:] != plane[:-1]).any(axis=1) for plane in planes]
    rows = np.flatnonzero(np.logical_or(*changed)) + 1
    events = []
    for row in rows[:MOST_EVENTS]:
        kept, trainable = (dequantize(plane[row]) for plane in planes)
        pruned = int((kept == 0).sum())
        frozen = int(((trainable == 0) & (kept != 0)).sum())
        text = f"{frozen} of {len(kept)} channels frozen, {pruned} pruned"
        if 0 < trainable.mean() < 1 and frozen + pruned in (0, len(kept)):
            text += f", {100 * trainable.mean():.3g} % of weights trainable"
        counts = {"frozen": frozen, "pruned": pruned, "channels": len(kept)}
        events.append(_event(series.steps[row], "trainable", text, **counts))
    return events


def merge_events(
    recorded: Sequence[Event], steps: Integers, logged: Iterable[MaskEvent]
) -> list[Event]:
    """Joins the events that the records show with those of the log of mask changes, the first 256.

    Events of the log have the exact step and how many of all `elements` the mask lets `through`. A
    change from the records stays if the log has none since the previous record, for example
    `trainable=False` of a Keras layer.
    """
    changes: list[Event] = [
        {
            "step": change.step,
            "kind": change.mask,
            "text": f"{change.mask} {change.through:,} of {change.elements:,} weights",
            "through": change.through,
            "elements": change.elements,
        }
        for change in logged
    ]
    changed = np.array(sorted(int(change["step"]) for change in changes), np.int64)
    unexplained = [event for event in recorded if not _explained(event, steps, changed)]
    return sorted([*unexplained, *changes], key=lambda event: int(event["step"]))[:MOST_EVENTS]


def _explained(event: Event, steps: Integers, changed: Integers) -> bool:
    """Whether the log has a change after the record before an event's, up to the event's."""
    if event["kind"] != "trainable":
        return False
    row = int(np.searchsorted(steps, event["step"]))
    previous = steps[row - 1] if row else event["step"] - 1
    first, last = np.searchsorted(changed, [previous, event["step"]], side="right")
    return bool(last > first)
