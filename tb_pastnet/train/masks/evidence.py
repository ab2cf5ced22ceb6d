"""Collects what tells why held weights moved: from the optimizer, its slots and its hook.

Some is only known when a weight begins to be held, some at the check before. What can't be read is
left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.train.masks.assigned import assignments
from tb_pastnet.train.masks.causes import MOST_UPDATES, Array, Evidence, cause_of
from tb_pastnet.train.masks.hook import hook_of, innermost
from tb_pastnet.train.masks.slots import averages_of, slots_of
from tb_pastnet.train.masks.state import MaskState
from tb_pastnet.train.masks.watch import Ints, Watch, channels_at, values_at
from tb_pastnet.train.model.walk import tf_variable

SAMPLE = 256
"""Elements of a variable that are looked at for a cause."""

_BETAS = ("momentum", "beta_1", "beta_2", "rho")
_LOOKED_AT = 1 << 16
_FORGOTTEN = 1e-4


def _nothing() -> None:
    return None


class _Start(NamedTuple):
    """How it stood when some elements of a variable began to be held.

    Optimizer and step are weak references: what was replaced may be large.
    """

    optimizer: Any
    step: Any
    updates: int
    applied: int
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

    optimizer: Any = _nothing
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

    def optimizer(self, state: MaskState | None) -> Any:
        """The innermost optimizer that trains, None where none is known."""
        if self._given is not None:
            return innermost(self._given)
        keeper = None if state is None else state.keeper
        if keeper is not None:
            return keeper.optimizer()
        compiled = getattr(self._model, "optimizer", None)
        return None if compiled is None else innermost(compiled)

    def begin(self, watch: Watch, state: MaskState | None) -> None:
        """Remembers how it stands where more of a variable is held from now on."""
        optimizer = self.optimizer(state)
        positions, slots = np.zeros(0, np.int64), {}
        # Slots matter where the optimizer goes on with weights that are only said to be held.
        if watch.hold is not None and watch.reference is None and not enforced(state):
            positions = _some(~watch.hold.through.numpy())
            slots = _slots_at(optimizer, watch.variable, positions)
        self._starts[watch.record.text.id] = _Start(
            _reference(optimizer),
            _reference(getattr(self._model, "train_function", None)),
            _updates(optimizer),
            applied(optimizer),
            positions,
            slots,
        )

    def tick(self, watches: Iterable[Watch], state: MaskState | None) -> None:
        """Remembers how it stands after a check."""
        optimizer = self.optimizer(state)
        assigned = {one.record.text.id: assignments(one.owner) for one in watches}
        self._clock = _Clock(_reference(optimizer), _updates(optimizer), _rate(optimizer), assigned)

    def bypassed(self, name: str, state: MaskState) -> bool:
        """Whether updates were made, since the masks of a variable came, that don't know of them.

        Args:
            name: id of a variable with masks that enforce.
            state: the masks.
        """
        hook = hook_of(self.optimizer(state))
        start = self._starts.get(name)
        if hook is None or start is None or start.optimizer() is not hook.optimizer:
            return False
        # Each variable's first masks make a generation.
        generation = 1 + list(state.holds).index(name)
        return applied(hook.optimizer) > start.applied and int(hook.generation) < generation

    def cause(self, watch: Watch, channels: Ints, state: MaskState | None) -> str:
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

    def _evidence(self, watch: Watch, channels: Ints, state: MaskState | None) -> Evidence:
        name, optimizer = watch.record.text.id, self.optimizer(state)
        start = self._starts[name]
        same = optimizer is not None and start.optimizer() is optimizer
        masked = watch.hold is not None and watch.reference is None
        holding = masked and enforced(state)
        step = getattr(self._model, "train_function", None)
        at = watch.worst(channels, SAMPLE)
        return Evidence(
            was=values_at(watch.expected(), at),
            now=values_at(watch.value(), at),
            masked=masked,
            enforced=holding,
            assigned=assignments(watch.owner) > self._clock.assigned.get(name, 0),
            replaced=hook_of(optimizer) is None if holding else not same and _known(start),
            bypassed=holding and state is not None and self.bypassed(name, state),
            still_trained=same and start.step() is step and _trains(optimizer, watch.variable),
            average=self._average(optimizer, watch.variable, at),
            decay=_decay(optimizer, watch.owner),
            rates=self._rates(optimizer, start),
            slots=_faded(optimizer, watch, start, channels) if same else {},
            betas=[beta for beta in map(vars(optimizer).get, _BETAS) if beta] if same else (),
            updates=_updates(optimizer) - start.updates,
        )

    def _average(self, optimizer: Any, variable: Any, at: Ints) -> Array | None:
        average = averages_of(optimizer).get(id(variable))
        if average is None:
            return None
        now, before = _updates(optimizer), self._clock.updates
        often = optimizer.ema_overwrite_frequency
        # Without a frequency the weights are overwritten when `fit` ends. Long after any movement
        # the average has come to equal the weights by itself.
        if often:
            overwritten = now // often > before // often
        else:
            overwritten = optimizer.ema_momentum ** (now - before) > _FORGOTTEN
        return values_at(average, at) if overwritten else None

    def _rates(self, optimizer: Any, start: _Start) -> list[Array]:
        """Learning rates of the updates since the last check, and since they are held."""
        if optimizer is None:
            return []
        now, rates = _updates(optimizer), []
        for reference, updates in (
            (self._clock.optimizer, self._clock.updates),
            (start.optimizer, start.updates),
        ):
            since = updates if reference() is optimizer else 0
            if 0 < now - since <= MOST_UPDATES:
                rates += _rates_between(optimizer, since, now, self._clock.rate)
        return rates


def enforced(state: MaskState | None) -> bool:
    """Whether the masks are held on an optimizer, not only declared."""
    return state is not None and state.keeper is not None and state.keeper.enforces


def applied(optimizer: Any) -> int:
    """Updates that went through the optimizer's hook, 0 without one."""
    hook = None if optimizer is None else hook_of(optimizer)
    return 0 if hook is None else int(tf.convert_to_tensor(hook.applied))


def _reference(thing: Any) -> Any:
    try:
        return weakref.ref(thing)
    except TypeError:
        return _nothing


def _updates(optimizer: Any) -> int:
    return 0 if optimizer is None else int(tf.convert_to_tensor(optimizer.iterations))


def _rate(optimizer: Any) -> float:
    with suppress(Exception):
        return float(tf.convert_to_tensor(optimizer.learning_rate))
    return float("nan")


def _rates_between(optimizer: Any, since: int, until: int, then: float) -> list[Array]:
    schedule = getattr(optimizer, "_learning_rate", None)
    count = until - since
    if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        steps = np.arange(since, until)
        points = np.unique(np.linspace(since, until - 1, 64).astype(np.int64))
        known = [float(schedule(step)) for step in points.tolist()]
        return [np.interp(steps, points, known)]
    now = _rate(optimizer)
    if then == now or not np.isfinite(then):
        return [np.full(count, now)]
    # A callback changed it in between, at one of these updates.
    changes = range(count + 1) if count <= 64 else (0, count)
    return [np.repeat([then, now], [at, count - at]) for at in changes]


def _decay(optimizer: Any, variable: Any) -> float:
    with suppress(Exception):
        if not optimizer._use_weight_decay(variable):
            return 0.0
        # Muon leaves some variables to AdamW.
        other = getattr(optimizer, "_should_use_adamw", None)
        if other is not None and other(variable):
            return float(optimizer.adam_weight_decay or 0)
        return float(optimizer.weight_decay or 0)
    return 0.0


def _trains(optimizer: Any, variable: Any) -> bool:
    known = getattr(optimizer, "_trainable_variables", ())
    return any(tf_variable(one) is variable for one in known)


def _known(start: _Start) -> bool:
    return start.optimizer is not _nothing


def _slots_at(optimizer: Any, variable: Any, positions: Ints) -> dict[str, Array]:
    with suppress(Exception):
        slots = slots_of(optimizer, variable)
        return {name: values_at(slot, positions) for name, slot in slots.items()}
    return {}


def _faded(
    optimizer: Any, watch: Watch, start: _Start, channels: Ints
) -> dict[str, tuple[Array, Array]]:
    now = _slots_at(optimizer, watch.variable, start.positions)
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
