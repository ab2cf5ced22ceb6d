"""Finds causes from an optimizer's state: when weights began to be held, at checks, and now."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from tb_pastnet.core.mask_input import spread
from tb_pastnet.record.audit.causes import (
    DECLARED,
    ENFORCED,
    FLAG,
    MOST_UPDATES,
    Array,
    Facts,
)
from tb_pastnet.record.audit.comparison import SAMPLE, Ints
from tb_pastnet.record.audit.freeze_audit import CauseFinder, Held

_POINTS = 64
_FORGOTTEN = 1e-4


class Applied(NamedTuple):
    """How many updates an optimizer has made, and how often that count was set by hand (`loaded`).

    `hooked` of them went through its hook, the last with `generation` of the masks; None: it has no
    hook.
    """

    updates: int = 0
    loaded: int = 0
    hooked: int | None = 0
    generation: int = 0


class Average(NamedTuple):
    """An optimizer's moving average of a variable: `values_at` returns some of its elements.

    `overwrites_every` is the number of updates between overwrites of the weights; None: only at the
    end.
    """

    values_at: Callable[[Ints], Array]
    overwrites_every: int | None
    momentum: float


class OptimizerFacts(Protocol):
    """An optimizer's current state, read by a framework's room, with defaults to derive from."""

    optimizer: Any

    @property
    def updates(self) -> int:
        """How many it has made."""

    @property
    def rate(self) -> float:
        """The learning rate, NaN if it follows a schedule or is unknown."""

    @property
    def schedule(self) -> Callable[[int], float] | None:
        """Returns the learning rate of an update; None without a schedule."""

    @property
    def applied(self) -> Applied:
        """Its updates, and how many went through its hook."""
        return Applied(self.updates, hooked=None)

    @property
    def betas(self) -> Sequence[float]:
        """The factors by which slots decay."""

    def decay(self, held: Any) -> float:
        """The weight decay of a variable."""

    def trains(self, held: Any) -> bool:
        """Whether the variable is among those that the optimizer was built for."""
        return True

    def average(self, held: Any) -> Average | None:
        """Its moving average of a variable."""
        return None

    def slots(self, held: Any, positions: Ints) -> dict[str, Array]:
        """Some elements of all its slots of a variable."""


class TrainingFacts(Protocol):
    """The state of a training, apart from its optimizers, with defaults to derive from."""

    def optimizers(self) -> Callable[[Any], OptimizerFacts | None]:
        """Returns the optimizer that trains a weight now; None if none is known."""

    def step(self) -> Any:
        """The compiled step; another object once it is compiled again."""
        return None

    def assigned(self, held: Any) -> int:
        """How often the variable was set by hand since the first call."""

    def constrained(self, held: Any) -> bool:
        """Whether the constraint of a weight turns its expected value into its current one."""
        return False

    def elsewhere(self, held: Any) -> bool:
        """Whether the optimizer of another model trains it, and has made updates."""
        return False


def _nothing() -> None:
    """A weak reference to nothing."""


class _Beginning(NamedTuple):
    """The state when some elements began to be held; large objects by weak reference."""

    step: Any
    optimizer: Any = _nothing
    updates: int = 0
    applied: Applied = Applied()
    positions: Ints = np.zeros(0, np.int64)
    slots: Mapping[str, Array] = MappingProxyType({})


class _Updates(NamedTuple):
    """The state of an optimizer at the previous check."""

    optimizer: Any = _nothing
    updates: int = 0
    rate: float = float("nan")


class OptimizerCauses(CauseFinder):
    """Finds causes from the current state and the remembered one."""

    def __init__(self, training: TrainingFacts) -> None:
        self._training = training
        self._begun: dict[str, _Beginning] = {}
        # At the previous check: optimizers by id, None if they didn't matter; how often each weight
        # was set by hand.
        self._updates_at_check: Mapping[int, _Updates] | None = None
        self._assigned_at_check: Mapping[str, int] = {}
        self._sound = False

    def held_by(self, held: Held) -> str:
        """ENFORCED, DECLARED or FLAG; DECLARED if the framework's optimizers ignore flags."""
        if held.flagged:
            return FLAG
        return ENFORCED if held.masks is not None and held.masks.enforced else DECLARED

    def begin(self, held: Sequence[Held]) -> None:
        """Remembers the state when more of some variables is held from now on."""
        of = self._training.optimizers()
        loose = [each for each in held if self.held_by(each) != ENFORCED]
        if loose and self._updates_at_check is None:
            self._updates_at_check = _updates(of, loose)
        step, self._sound = _reference(self._training.step()), False
        # Not by the facts: if they are made for each weight, they reuse addresses.
        now: dict[int, _Beginning] = {}
        for each in held:
            self._training.assigned(each)
            facts = of(each)
            if facts is None:
                self._begun[each.name] = _Beginning(step)
                continue
            optimizer = facts.optimizer
            if id(optimizer) not in now:
                reference = _reference(optimizer)
                now[id(optimizer)] = _Beginning(step, reference, facts.updates, facts.applied)
            begun = now[id(optimizer)]
            # Slots matter if the optimizer keeps updating weights that are only declared as held.
            if self.held_by(each) == DECLARED:
                positions = each.sample()
                begun = begun._replace(positions=positions, slots=facts.slots(each, positions))
            self._begun[each.name] = begun

    def remember(self, held: Iterable[Held]) -> None:
        """Remembers the state after a check."""
        held = list(held)
        self._assigned_at_check = {each.name: self._training.assigned(each) for each in held}
        # No optimizer moves what masks enforce: its count and rate, which cost a read, don't
        # matter.
        loose = [each for each in held if self.held_by(each) != ENFORCED]
        self._updates_at_check = _updates(self._training.optimizers(), loose) if loose else None

    def newly_bypassed(self, held: Iterable[Held]) -> set[str]:
        """Like `bypassed`, but not again once all current masks were seen in force."""
        if self._sound:
            return set()
        of, names, sound = self._training.optimizers(), set(), True
        for each in held:
            if self.held_by(each) != ENFORCED:
                continue
            facts = of(each)
            generation = 0 if facts is None else facts.applied.generation
            sound = sound and generation >= each.masks.generation
            if facts is not None and self._bypassed(each, facts):
                names.add(each.name)
        self._sound = sound and not names
        return names

    def _bypassed(self, held: Held, facts: OptimizerFacts) -> bool:
        """Whether an optimizer made updates without the enforced masks since they were set."""
        begun = self._begun.get(held.name)
        applied = facts.applied
        if begun is None or begun.optimizer() is not facts.optimizer or applied.hooked is None:
            return False
        # A hook that came since counts from zero.
        before = begun.applied
        hooked = applied.hooked - (before.hooked or 0)
        stale = hooked > 0 and applied.generation < held.masks.generation
        beside = applied.updates - before.updates > hooked
        # A loaded counter means nothing.
        return stale or (beside and applied.loaded == before.loaded)

    def facts(self, held: Held, channels: Ints) -> Facts:
        """Facts about a variable that moved."""
        positions = held.worst(channels, SAMPLE)
        was, current = held.values_at(positions)
        assigned = self._training.assigned(held) > self._assigned_at_check.get(held.name, 0)
        facts = Facts(was, current, self.held_by(held), assigned)
        optimizer = self._training.optimizers()(held)
        if facts.held_by == ENFORCED:
            if optimizer is None:
                return facts
            bypassed = self._bypassed(held, optimizer)
            return replace(facts, replaced=optimizer.applied.hooked is None, bypassed=bypassed)
        facts = replace(
            facts,
            constrained=self._training.constrained(held),
            untrained=optimizer is None or not optimizer.trains(held),
        )
        if optimizer is None:
            return replace(facts, elsewhere=self._training.elsewhere(held))
        begun = self._begun[held.name]
        updates = optimizer.updates - begun.updates
        # To look for other models takes long: not where the table wouldn't ask.
        may_be_elsewhere = facts.held_by == FLAG or not updates
        same = begun.optimizer() is optimizer.optimizer
        step = begun.step() is self._training.step()
        average = self._overwriting(optimizer, held)
        return replace(
            facts,
            elsewhere=may_be_elsewhere and self._training.elsewhere(held),
            replaced=not same and begun.optimizer is not _nothing,
            still_trained=same and step and optimizer.trains(held),
            average=None if average is None else average.values_at(positions),
            decay=optimizer.decay(held),
            rates=self._rates(optimizer, begun),
            slots=_faded(optimizer, held, begun, channels) if same else {},
            betas=optimizer.betas,
            updates=updates,
        )

    def _overwriting(self, optimizer: OptimizerFacts, held: Held) -> Average | None:
        """The moving average, if it has overwritten the weights since the last check."""
        average = optimizer.average(held)
        if average is None:
            return None
        checked = self._at_check(optimizer).updates
        updates, every = optimizer.updates, average.overwrites_every
        if every:
            return average if updates // every > checked // every else None
        # Without a frequency weights are overwritten when `fit` ends. Long after any other movement
        # the average equals the weights anyway.
        return average if average.momentum ** (updates - checked) > _FORGOTTEN else None

    def _rates(self, optimizer: OptimizerFacts, begun: _Beginning) -> list[Array]:
        """Learning rates of the updates since the last check, and since the weights are held."""
        rates: list[Array] = []
        checked = self._at_check(optimizer)
        for state in (checked, begun):
            since = state.updates if state.optimizer() is optimizer.optimizer else 0
            if 0 < optimizer.updates - since <= MOST_UPDATES:
                rates += _rates_of(optimizer, since, checked.rate)
        return rates

    def _at_check(self, optimizer: OptimizerFacts) -> _Updates:
        """Its state at the previous check; for a new one, the initial state."""
        state = (self._updates_at_check or {}).get(id(optimizer.optimizer), _Updates())
        return state if state.optimizer() is optimizer.optimizer else _Updates()


def _rates_of(optimizer: OptimizerFacts, since: int, earlier: float) -> list[Array]:
    """The learning rates of the updates since one; several if the rate was changed in between."""
    count, schedule = optimizer.updates - since, optimizer.schedule
    if schedule is not None:
        updates = np.arange(since, optimizer.updates)
        points = np.unique(np.linspace(updates[0], updates[-1], _POINTS).astype(np.int64))
        return [np.interp(updates, points, [float(schedule(point)) for point in points.tolist()])]
    rate = optimizer.rate
    if earlier == rate or not np.isfinite(earlier):
        return [np.full(count, rate)]
    # A callback changed it, at one of these updates.
    changes = range(count + 1) if count <= _POINTS else (0, count)
    return [np.repeat([earlier, rate], [change, count - change]) for change in changes]


def _updates(
    of: Callable[[Any], OptimizerFacts | None], held: Iterable[Held]
) -> dict[int, _Updates]:
    """The states of the optimizers of some weights, each read once."""
    facts = {id(each.optimizer): each for each in map(of, held) if each is not None}
    return {
        key: _Updates(_reference(each.optimizer), each.updates, each.rate)
        for key, each in facts.items()
    }


def _reference(thing: Any) -> Any:
    """A weak reference if possible: replaced objects may be large."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return _nothing


def _faded(
    optimizer: OptimizerFacts, held: Held, begun: _Beginning, channels: Ints
) -> dict[str, tuple[Array, Array]]:
    """Slots of the sampled elements in some channels, when they began to be held and now."""
    current = optimizer.slots(held, begun.positions)
    violated = np.isin(np.arange(held.axis.channels), channels)
    inside = spread(violated, held.axis).reshape(-1)[begun.positions]
    # The sample may miss a small channel among many: the others are like it.
    chosen = inside if inside.any() else np.ones_like(inside)
    unknown = np.full(len(begun.positions), np.nan)
    return {
        name: (begun.slots.get(name, unknown)[chosen], slot[chosen])
        for name, slot in current.items()
    }
