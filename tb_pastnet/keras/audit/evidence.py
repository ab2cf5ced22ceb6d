"""Collects what tells why held weights moved: from the optimizer, its slots and its hook.

Some is only known when a weight begins to be held, some at the check before. What can't be read is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from tb_pastnet.keras.audit import reading
from tb_pastnet.keras.audit.assigned import assignments, count_assignments
from tb_pastnet.keras.audit.causes import MOST_UPDATES, Array, Evidence, cause_of
from tb_pastnet.keras.audit.reading import Applied, nothing, reference
from tb_pastnet.keras.audit.watch import Ints, Watch, channels_at, values_at
from tb_pastnet.keras.masks.hook import hook_of, innermost
from tb_pastnet.keras.masks.table import MaskTable

SAMPLE = 256
"""Elements of a variable that are looked at for a cause."""

_LOOKED_AT = 1 << 16


class _Start(NamedTuple):
    """How it stood when some elements of a variable began to be held.

    Optimizer and step are weak references: what was replaced may be large.
    """

    optimizer: Any
    step: Any
    updates: int
    applied: Applied
    positions: Ints
    slots: Mapping[str, Array]


class _Clock(NamedTuple):
    """How it stood at the check before.

    Attributes:
        optimizer: a weak reference.
        updates: its `iterations`.
        rate: its learning rate.
        assigned: how often each watched variable was set by hand, by id.
    """

    optimizer: Any = nothing
    updates: int = 0
    rate: float = float("nan")
    assigned: Mapping[str, int] = MappingProxyType({})


class Witness:
    """Remembers what is needed to name causes.

    Args:
        model: whose optimizer trains.
        optimizer: the one that does, where the model isn't compiled with it.
    """

    def __init__(self, model: Any, optimizer: Any = None) -> None:
        self._model = model
        self._given = optimizer
        self._starts: dict[str, _Start] = {}
        self._clock = _Clock()

    def optimizer(self, state: MaskTable | None) -> Any:
        """The innermost optimizer that trains, None where none is known."""
        if self._given is not None:
            return innermost(self._given)
        keeper = None if state is None else state.keeper
        if keeper is not None:
            return keeper.optimizer()
        compiled = getattr(self._model, "optimizer", None)
        return None if compiled is None else innermost(compiled)

    def begin(self, watch: Watch, state: MaskTable | None) -> None:
        """Remembers how it stands where more of a variable is held from now on."""
        count_assignments(watch.owner)
        optimizer = self.optimizer(state)
        positions, slots = np.zeros(0, np.int64), {}
        # Slots matter where the optimizer goes on with weights that are only said to be held.
        if watch.hold is not None and watch.reference is None and not enforced(state):
            positions = _some(~watch.hold.through.numpy())
            slots = reading.slots_at(optimizer, watch.variable, positions)
        self._starts[watch.record.text.id] = _Start(
            reference(optimizer),
            reference(getattr(self._model, "train_function", None)),
            reading.updates(optimizer),
            reading.applied(optimizer),
            positions,
            slots,
        )

    def tick(self, watches: Iterable[Watch], state: MaskTable | None) -> None:
        """Remembers how it stands after a check."""
        optimizer = self.optimizer(state)
        assigned = {one.record.text.id: assignments(one.owner) for one in watches}
        self._clock = _Clock(
            reference(optimizer), reading.updates(optimizer), reading.rate(optimizer), assigned
        )

    def bypassed(self, state: MaskTable | None) -> set[str]:
        """Variables with masks that updates were made without since these came.

        Args:
            state: the masks.

        Returns:
            Their ids; none where the masks don't enforce.
        """
        optimizer = self.optimizer(state)
        if state is None or optimizer is None or not enforced(state):
            return set()
        now, found = reading.applied(optimizer), set()
        # Each variable's first masks make a generation.
        for generation, name in enumerate(state.holds, start=1):
            start = self._starts.get(name)
            if start is None or start.optimizer() is not optimizer:
                continue
            stale = now.hooked > start.applied.hooked and now.generation < generation
            beside = now.made - now.hooked > start.applied.made - start.applied.hooked
            # A counter that was loaded says nothing.
            if stale or (beside and now.loaded == start.applied.loaded):
                found.add(name)
        return found

    def cause(self, watch: Watch, channels: Ints, state: MaskTable | None) -> str:
        """Names the likely cause of violations that the last check didn't have.

        Args:
            watch: the variable.
            channels: where it is violated, int64.
            state: the masks.

        Returns:
            A key of `core.violation.CAUSES`; "unknown" also where something can't be read.
        """
        try:
            return cause_of(self._evidence(watch, channels, state))
        except Exception:
            return "unknown"

    def _evidence(self, watch: Watch, channels: Ints, state: MaskTable | None) -> Evidence:
        at, masked = watch.worst(channels, SAMPLE), watch.reference is None
        known = self._clock.assigned.get(watch.record.text.id, 0)
        evidence = Evidence(
            was=values_at(watch.expected(), at),
            now=values_at(watch.value(), at),
            masked=masked,
            enforced=masked and enforced(state),
            assigned=assignments(watch.owner) > known,
        )
        optimizer = self.optimizer(state)
        if not isinstance(optimizer, keras.optimizers.Optimizer):
            return evidence
        if evidence.enforced:
            bypassed = watch.record.text.id in self.bypassed(state)
            return replace(evidence, replaced=hook_of(optimizer) is None, bypassed=bypassed)
        return self._of_optimizer(optimizer, evidence, watch, at, channels)

    def _of_optimizer(
        self, optimizer: Any, evidence: Evidence, watch: Watch, at: Ints, channels: Ints
    ) -> Evidence:
        start = self._starts[watch.record.text.id]
        same = start.optimizer() is optimizer
        step = getattr(self._model, "train_function", None)
        average = reading.average(optimizer, watch.variable, self._clock.updates)
        trains = reading.trains(optimizer, watch.variable)
        return replace(
            evidence,
            replaced=not same and start.optimizer is not nothing,
            still_trained=same and start.step() is step and trains,
            average=None if average is None else values_at(average, at),
            decay=reading.decay(optimizer, watch.owner),
            rates=self._rates(optimizer, start),
            slots=_faded(optimizer, watch, start, channels) if same else {},
            betas=reading.betas(optimizer),
            updates=reading.updates(optimizer) - start.updates,
        )

    def _rates(self, optimizer: Any, start: _Start) -> list[Array]:
        """Learning rates of the updates since the last check, and since they are held."""
        now, rates = reading.updates(optimizer), []
        for known, updates in (
            (self._clock.optimizer, self._clock.updates),
            (start.optimizer, start.updates),
        ):
            since = updates if known() is optimizer else 0
            if 0 < now - since <= MOST_UPDATES:
                rates += reading.rates(optimizer, since, now, self._clock.rate)
        return rates


def enforced(state: MaskTable | None) -> bool:
    """Whether the masks are held on an optimizer, not only declared."""
    return state is not None and state.keeper is not None and state.keeper.enforces


def _faded(
    optimizer: Any, watch: Watch, start: _Start, channels: Ints
) -> dict[str, tuple[Array, Array]]:
    now = reading.slots_at(optimizer, watch.variable, start.positions)
    inside = np.isin(channels_at(watch.record.axis, start.positions), channels)
    # None of a small channel among many may be in the sample: the others are like it.
    here = inside if inside.any() else np.ones_like(inside)
    return {
        name: (then[here], now[name][here]) for name, then in start.slots.items() if name in now
    }


def _some(held: npt.NDArray[np.bool_]) -> Ints:
    """Positions of some held elements, from all over the variable."""
    flat = held.reshape(-1)
    # An odd stride doesn't stay in one column of a table of even width.
    stride = max(1, len(flat) // _LOOKED_AT) | 1
    found = np.flatnonzero(flat[::stride]) * stride
    if not len(found):
        found = np.flatnonzero(flat)
    chosen = np.linspace(0, len(found) - 1, min(SAMPLE, len(found)))
    return np.asarray(found[chosen.astype(np.int64)], np.int64)
