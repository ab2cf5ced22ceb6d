"""What lasts up to the newest record of variables, and why they are idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core.axes import experts_in
from tb_pastnet.core.channel_states import Lasting, lasting_each
from tb_pastnet.format.description import VariableEntry
from tb_pastnet.reader.arrays import Flags, Integers
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.standing import StandsStill
from tb_pastnet.reader.state_series import KERNEL, STATISTIC

_THAWED = {
    channel_states.FROZEN: {"freed": "unfrozen", "again": "refrozen"},
    channel_states.PRUNED: {"freed": "reactivated"},
}
"""Kinds of findings, by state and what `channel_states.thawed` says."""


def lasting_of(
    records: RecordSeries,
    state: channel_states.States,
    variables: Sequence[VariableEntry],
    edges: Integers,
    types: Mapping[str, str],
) -> Sequence[dict[str, Lasting]]:
    """Since when channels are as they are at the newest record, by kind of finding.

    `types` are those of layers, by id.
    """
    each: list[dict[str, Lasting]] = [{} for _ in variables]

    experts = [experts_in(types.get(each.layer, ""), each) for each in variables]

    def add(kind: str, flags: Flags) -> None:
        for number, lasting in enumerate(lasting_each(flags, records.steps, edges)):
            if lasting is not None:
                newest = flags[-1, edges[number] : edges[number + 1]]
                each[number][kind] = lasting._replace(experts=_of_experts(newest, experts[number]))

    plain = state & np.uint8(channel_states.STATE)
    for code in (channel_states.NONFINITE, channel_states.FROZEN, channel_states.PRUNED):
        if (plain[-1:] == code).any():
            add(channel_states.NAMES[code], plain == code)
    for code, kinds in _THAWED.items():
        for what, flags in channel_states.thawed(state, code).items():
            if what in kinds:
                add(kinds[what], flags)
    # No gradient trains a statistic, and what follows may wait long for its source.
    trained = [not (variable.role == STATISTIC or variable.follows) for variable in variables]
    rows = [
        variable.role == KERNEL and "Embedding" in types.get(variable.layer, "")
        for variable in variables
    ]
    unchanged = channel_states.unchanged(
        records.codes, state, records.steps, rows=rows, edges=edges
    )
    for kind, flags in unchanged.items():
        add(kind, flags & np.repeat(trained, np.diff(edges)))
    return each


def _of_experts(flags: Flags, experts: int) -> tuple[int, ...]:
    """The experts whose channels are flagged, if that is all or none of each; at most some."""
    if not experts or len(flags) % experts:
        return ()
    parts = flags.reshape(experts, -1)
    chosen = np.flatnonzero(parts.all(axis=1))
    alone = np.array_equal(parts.any(axis=1), parts.all(axis=1)) and 0 < len(chosen) < experts
    return tuple(chosen.tolist()) if alone else ()


def add_moving(
    own: dict[str, Lasting], still: StandsStill, steps: Integers, state: channel_states.States
) -> None:
    """Adds a variable that is idle though its bits change: its records don't show that."""
    plain = state & np.uint8(channel_states.STATE)
    free = (plain == channel_states.MOVING) | (plain == channel_states.NO_DATA)
    lasting = channel_states.lasting(free & (steps >= still.since)[:, None], steps)
    for kind in ("unchanged", "stalled", "rows"):
        own.pop(kind, None)
    if lasting is not None:
        long = channel_states.is_long(lasting.records, lasting.since, steps)
        own["stalled" if long else "unchanged"] = lasting


def cause_at_end(steps: Integers, still: StandsStill | None) -> tuple[str, bool]:
    """The cause of a variable in the summary."""
    if still is None or still.proven_since is None or not len(steps):
        return (still.cause if still else ""), False
    count = int(np.count_nonzero(steps >= still.proven_since))
    return still.cause, bool(channel_states.is_long(count, still.proven_since, steps))
