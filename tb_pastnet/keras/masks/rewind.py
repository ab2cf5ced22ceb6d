"""Takes snapshots of a training, and goes back to one: weights, or only the learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tb_pastnet.keras.masks.mask_state import MaskState
from tb_pastnet.keras.masks.optimizers import is_clock, renew, reset, unbuilt
from tb_pastnet.keras.model.optimizers import steps_of
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.record.masks.snapshots import (
    LEARNING_RATE,
    Rewound,
    Snapshot,
    check_snapshot,
    states_of,
)
from tb_pastnet.record.weight import Array

_CLOCK = 2
"""The first variables of an optimizer: its steps, and its learning rate without a schedule."""


def take(state: MaskState, optimizers: Sequence[Any]) -> Snapshot:
    """Copies weights and optimizers to the host."""
    state.look()
    return Snapshot(
        {name: weight.variable.numpy().copy() for name, weight in state.weights.items()},
        tuple((type(each).__name__, _values(each)) for each in optimizers),
        _step(optimizers),
        state.origin,
    )


def rewind(state: MaskState, optimizers: Sequence[Any], snapshot: Snapshot, what: str) -> Rewound:
    """Goes back to a snapshot, see `Masks.rewind`."""
    state.look()
    check_snapshot(state.weights, snapshot, what)
    start = _step(optimizers)
    pairs = list(zip(optimizers, states_of(optimizers, snapshot), strict=True))
    if what == LEARNING_RATE:
        for optimizer, (_, values) in pairs:
            _rewind_clock(optimizer, values)
        return Rewound(0, 0, 0, "kept", (start, _step(optimizers)))
    for optimizer, (_, values) in pairs:
        if len(values) > _CLOCK:
            state.build_optimizer(optimizer)
    # May raise, so before anything changes.
    fresh = [None if _has(each, *own) else unbuilt(each) for each, own in pairs]
    weights = held = statistics = 0
    for name, weight in state.weights.items():
        kept, trainable = state.read(name)
        through = kept & trainable
        weights += int(through.sum()) * (not weight.statistic)
        held += int((~through).sum())
        statistics += weight.statistic
        if not weight.found.computed:
            variable = weight.trained
            variable.assign(np.where(through, snapshot.weights[name], variable.numpy()))
    for (optimizer, (_, values)), new in zip(pairs, fresh, strict=True):
        _rewind_optimizer(state, optimizer, values, new)
    slots = "kept" if not pairs else "initial" if any(fresh) else "snapshot"
    state.origin = snapshot.origin
    return Rewound(weights, held, statistics, slots, (start, _step(optimizers)))


def _has(optimizer: Any, kind: str, values: Sequence[Array]) -> bool:
    """Whether values of a snapshot are those of all variables of an optimizer."""
    shapes = [tuple(variable.shape) for variable in optimizer._variables]
    same = kind in ("", type(optimizer).__name__)
    return same and [value.shape for value in values] == shapes


def _rewind_optimizer(
    state: MaskState, optimizer: Any, values: Sequence[Array], fresh: Any
) -> None:
    if fresh is not None:
        reset(optimizer, fresh)
        _rewind_clock(optimizer, values)
        return
    for variable, value in zip(optimizer._variables, values, strict=True):
        variable.assign(value)
    for masks in state.masked.values():
        renew(optimizer, masks.variable, ~masks.kept.numpy())


def _rewind_clock(optimizer: Any, values: Sequence[Array]) -> None:
    """Sets back the steps, so a schedule replays, and a learning rate that is a variable."""
    if not values:
        optimizer._iterations.assign(0)
    for variable, value in zip(optimizer._variables[:_CLOCK], values, strict=False):
        if is_clock(optimizer, variable) and value.shape == ():
            variable.assign(value)


def _values(optimizer: Any) -> tuple[Array, ...]:
    return tuple(np.array(tf_variable(variable).numpy()) for variable in optimizer._variables)


def _step(optimizers: Iterable[Any]) -> int:
    return max((steps_of(each) for each in optimizers), default=0)
