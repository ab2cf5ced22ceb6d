"""Held weights that moved: in the list, and as marks on the picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core import violation as core
from tb_pastnet.core.violation import CAUSES, between
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.state_series import Marks

MOST = 4096
"""Violations that a route lists; all are counted."""

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Violation:
    """Held weights of one channel that differ from the values at which they were held.

    Attributes:
        layer: the id of the layer.
        variable: the id of the variable.
        channel: which of its channels.
        first_step: the step of the first record that shows it.
        last_step: the step of the last one.
        elements: how many of the held weights differ at the last one; None: fingerprints were
            compared, which don't show that.
        held: how many weights of the channel were held.
        largest: the largest `|w - held value|`; infinite if that isn't finite, NaN if unknown.
        cause: the likely cause, such as "weight_decay", "momentum" or "unknown".
        text: the violation in one sentence.

    Example:
        >>> moved = Violation("dense", "dense/kernel", 2, 8, 8, 16, 16, 0.1, "momentum", "moved")
        >>> moved.channel, moved.first_step, moved.cause
        (2, 8, 'momentum')
    """

    layer: str
    variable: str
    channel: int
    first_step: int
    last_step: int
    elements: int | None
    held: int
    largest: float
    cause: str
    text: str


def mark(
    state: channel_states.States,
    steps: Integers,
    violations: Iterable[core.Violation],
) -> channel_states.States:
    """Adds the mark `VIOLATED` where the audit found that a channel moved in part.

    The states, uint8 (records, channels), are changed in place; a violation lasts from its first to
    its last step.
    """
    spans: dict[tuple[int, int], list[int]] = {}
    for violation in violations:
        span = violation.first_step, violation.last_step
        spans.setdefault(span, []).append(violation.channel)
    for (first, last), channels in spans.items():
        start, stop = np.searchsorted(steps, [first, last + 1])
        state[start:stop, channels] |= np.uint8(channel_states.VIOLATED)
    return state


def violations_of(
    variable: VariableEntry,
    layer: str,
    audited: Sequence[core.Violation],
    marks: Marks,
    first_channel: int = 0,
    most: int | None = MOST,
) -> tuple[int, list[Violation]]:
    """The violations of one variable: how many, and the first of them, by first step and channel.

    Marked channels without a finding of the audit are listed, too; `first_channel` is the number of
    the first channel in these records. `most` limits each kind; None: all.
    """
    ordered = sorted(audited, key=lambda violation: (violation.first_step, violation.channel))
    channels = marks.channels + first_channel
    fresh = np.flatnonzero(~np.isin(channels, [violation.channel for violation in audited]))
    fresh = fresh[np.lexsort((channels[fresh], marks.first_steps[fresh]))]
    violations = [
        Violation(layer=layer, **vars(violation), text=violation.text)
        for violation in ordered[:most]
    ]
    violations += [
        _from_mark(variable, layer, marks, row, int(channels[row])) for row in fresh[:most].tolist()
    ]
    return len(audited) + len(fresh), violations


def _from_mark(
    variable: VariableEntry, layer: str, marks: Marks, row: int, channel: int
) -> Violation:
    start, end = int(marks.first_steps[row]), int(marks.last_steps[row])
    weights, largest = variable.elements, float(f"{marks.largest[row]:.4g}")
    # All of its weights were held: that is what the mark means.
    return Violation(
        layer,
        variable.id,
        channel,
        start,
        end,
        max(round(marks.changed[row] * weights), min(1, weights)),
        weights,
        largest,
        _UNKNOWN,
        f"{variable.id}, channel {channel:,}: held weights moved {between(start, end)}, by at most "
        f"{largest:.3g} in one record. Likely cause: {CAUSES[_UNKNOWN]}.",
    )


def join_violations(
    run: CatalogRun,
    audited: Mapping[str, Sequence[core.Violation]],
    marks: Iterable[tuple[str, Marks]],
    most: int | None = MOST,
) -> tuple[int, list[Violation]]:
    """The violations of a run, given the marks of each variable's records: how many, and the first.

    They come by first step, then in the order of layers, of their variables and of channels.
    """
    layers = {name: layer.id for layer in run.layers for name in layer.variables}
    ranks = {name: rank for rank, name in enumerate(layers)}

    def order(violation: Violation) -> tuple[int, int, int]:
        return violation.first_step, ranks[violation.variable], violation.channel

    total = 0
    violations: list[Violation] = []
    for name, marked in marks:
        own = audited.get(name, ())
        count, listed = violations_of(run.variables[name], layers[name], own, marked, most=most)
        total += count
        violations += listed
        if most is not None and len(violations) > 4 * most:
            violations = sorted(violations, key=order)[:most]
    return total, sorted(violations, key=order)[:most]
