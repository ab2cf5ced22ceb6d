"""What happened to a layer: flags above its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tb_pastnet.reader.mask_history import MaskEvent
from tb_pastnet.reader.state_series import MOST_EVENTS, Event

_MASK = "trainable"


def merge_events(
    recorded: Sequence[Event], steps: npt.NDArray[np.int64], logged: Iterable[MaskEvent]
) -> list[Event]:
    """Joins the events that the records show with those of the log of mask changes.

    The log knows the step and the number of weights. A change that records show stays where the log
    has none since the record before, such as `trainable=False` of a Keras layer.

    Args:
        recorded: of the records, in order.
        steps: int64 (records,), increasing.
        logged: of the log of mask changes.

    Returns:
        Step, kind and text of each, in order, the first 256. Those of the log have how many of all
        `elements` the mask lets `through`; the others are as from `movement.events`.
    """
    told: list[Event] = [
        {
            "step": one.step,
            "kind": one.mask,
            "text": f"{one.mask} {one.through:,} of {one.elements:,} weights",
            "through": one.through,
            "elements": one.elements,
        }
        for one in logged
    ]
    changed = np.array(sorted(int(one["step"]) for one in told), np.int64)
    found = [one for one in recorded if not _explained(one, steps, changed)]
    return sorted([*found, *told], key=lambda one: int(one["step"]))[:MOST_EVENTS]


def _explained(event: Event, steps: npt.NDArray[np.int64], changed: npt.NDArray[np.int64]) -> bool:
    """Whether the log has a change after the record before an event's, up to the event's."""
    if event["kind"] != _MASK:
        return False
    at = int(np.searchsorted(steps, event["step"]))
    after = steps[at - 1] if at else event["step"] - 1
    first, last = np.searchsorted(changed, [after, event["step"]], side="right")
    return bool(last > first)
