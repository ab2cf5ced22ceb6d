"""Held weights that moved: in the list, and as marks on the picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.format.description import Variable
from tb_pastnet.reader.marks import Marked
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.state_series import Movement

Entry = dict[str, Any]

MOST = 4096
"""Violations that a route lists; all are counted."""

_UNKNOWN = "unknown"


def mark(
    told: states.States, steps: npt.NDArray[np.int64], violations: Iterable[Violation]
) -> states.States:
    """Adds the mark `VIOLATED` where the audit found that a channel moved in part.

    Args:
        told: uint8 (records, channels), changed in place.
        steps: int64 (records,), increasing.
        violations: of the variable. A violation stands from its first to its last step.

    Returns:
        The same array.
    """
    spans: dict[tuple[int, int], list[int]] = {}
    for one in violations:
        spans.setdefault((one.first_step, one.last_step), []).append(one.channel)
    for (first, last), channels in spans.items():
        at = np.searchsorted(steps, [first, last + 1])
        told[at[0] : at[1], channels] |= np.uint8(states.VIOLATED)
    return told


def entries(
    variable: Variable,
    layer: str,
    audited: Sequence[Violation],
    moves: Movement | Marked,
    first_channel: int = 0,
    most: int | None = MOST,
) -> tuple[int, list[Entry]]:
    """The violations of one variable, as JSON values.

    Args:
        variable: the variable.
        layer: the id of its layer.
        audited: what the audit found of it.
        moves: its records. Marked channels of which the audit says nothing are listed from these.
        first_channel: the number of the first channel of these records.
        most: of either kind at most; None: all.

    Returns:
        The number of all, and the first of them, by first step and channel.
    """
    by_place = sorted(audited, key=lambda one: (one.first_step, one.channel))
    marks = moves.marks
    channels = marks.channels + first_channel
    fresh = np.flatnonzero(~np.isin(channels, [one.channel for one in audited]))
    fresh = fresh[np.lexsort((channels[fresh], marks.first[fresh]))]
    told = [{"layer": layer, **vars(one), "text": one.text} for one in by_place[:most]]
    told += [
        {"layer": layer, **_from_mark(variable, moves, at, int(channels[at]))}
        for at in fresh[:most].tolist()
    ]
    return len(audited) + len(fresh), told


def _from_mark(variable: Variable, moves: Movement | Marked, at: int, channel: int) -> Entry:
    marks, weights = moves.marks, variable.elements
    start, end = int(moves.steps[marks.first[at]]), int(moves.steps[marks.last[at]])
    largest = float(f"{marks.largest[at]:.4g}")
    when = f"at step {start:,}" if start == end else f"from step {start:,} to {end:,}"
    # All of its weights were held: that is what the mark means.
    return {
        "variable": variable.id,
        "channel": channel,
        "first_step": start,
        "last_step": end,
        "elements": max(round(marks.changed[at] * weights), min(1, weights)),
        "held": weights,
        "largest": largest,
        "cause": _UNKNOWN,
        "text": f"{variable.id}, channel {channel:,}: held weights moved {when}, by at most "
        f"{largest:.3g} in one record. Cause: {CAUSES[_UNKNOWN]}.",
    }


def listed(
    run: Run,
    audited: Mapping[str, Sequence[Violation]],
    marked: Iterable[tuple[str, Marked]],
    most: int | None = MOST,
) -> tuple[int, list[Entry]]:
    """The violations of a run: how many, and the first of them.

    Args:
        run: the run.
        audited: what the audit found, by variable.
        marked: the marks of each variable's records.
        most: how many are wanted at most; None: all.

    Returns:
        The number of all, and the first of them: by first step, then in the order of layers, of
        their variables and of channels.
    """
    layers = {one: layer.id for layer in run.layers for one in layer.variables}
    ranks = {one: rank for rank, one in enumerate(layers)}

    def place(entry: Entry) -> tuple[int, int, int]:
        return entry["first_step"], ranks[entry["variable"]], entry["channel"]

    total = 0
    found: list[Entry] = []
    for name, moves in marked:
        known = audited.get(name, ())
        count, some = entries(run.variables[name], layers[name], known, moves, most=most)
        total += count
        found += some
        if most is not None and len(found) > 4 * most:
            found = sorted(found, key=place)[:most]
    return total, sorted(found, key=place)[:most]
