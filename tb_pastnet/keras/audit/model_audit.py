"""The audit of a model that runs eagerly, or in compiled steps."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.keras.audit.flag_audit import FlagAudit
from tb_pastnet.keras.audit.held_weight import HeldLarge, HeldWeight, values_at, which_moved
from tb_pastnet.keras.masks.carried import masks_in
from tb_pastnet.keras.masks.optimizers import averages_of, hook_of, slots_of
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.model.assignments import Assignments
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of, steps_of, trains
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.strategies import reader
from tb_pastnet.record.audit.causes import Array
from tb_pastnet.record.audit.comparison import Ints
from tb_pastnet.record.audit.freeze_audit import Audit, moved_of
from tb_pastnet.record.audit.held_prints import are_large, by_prints
from tb_pastnet.record.audit.optimizer_facts import Applied, Average, OptimizerCauses
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.options import VALUES
from tb_pastnet.record.weight import Look

_BETAS = ("momentum", "beta_1", "beta_2", "rho")


class ModelAudit(FlagAudit):
    """Compares held weights: with NumPy in this machine's memory, on an accelerator in place.

    There all are compared in one compiled function, made again when others are held.
    """

    def __init__(
        self,
        model: Any,
        weights: Sequence[TFWeight],
        optimizer: keras.optimizers.Optimizer | None = None,
        current: Callable[[], Mapping[str, Array]] = dict,
        wish: bool | str = VALUES,
        looks: Mapping[str, Look] = MappingProxyType({}),
    ) -> None:
        super().__init__(weights, current)
        self._wish, self._looks = wish, looks
        self._large = False
        self._assignments = Assignments()
        weakref.finalize(self, self._assignments.close).atexit = False
        self.causes = OptimizerCauses(self)
        self._model = model
        self._given = optimizer
        self._key: Any = None
        self._function: Any = None
        # Optimizers of other models, looked for at most once a check.
        self._others: weakref.WeakSet[Any] | None = None

    def expect(self, weights: Sequence[TFWeight]) -> None:
        """See `AuditSource`."""
        self._large = are_large(weights)

    def held(self, weight: TFWeight) -> HeldWeight | HeldLarge:
        """See `AuditSource`. Masks have their own reference."""
        prints = by_prints(self._wish, large=self._large) and weight.plain
        if prints and not weight.trainable():
            return HeldLarge(weight, self._looks)
        return HeldWeight(weight)

    def moved(self, held: Sequence[HeldWeight | HeldLarge]) -> Sequence[bool]:
        """See `AuditSource`."""
        self._others = None
        large = [each for each in held if isinstance(each, HeldLarge)]
        rest = [each for each in held if not isinstance(each, HeldLarge)]
        moved = dict(zip(map(id, large), moved_of(large), strict=True))
        moved |= dict(zip(map(id, rest), self._values_moved(rest), strict=True))
        return [moved[id(each)] for each in held]

    def _values_moved(self, held: Sequence[HeldWeight]) -> Sequence[bool]:
        if all(weight.here for weight in held):
            values = self._current() if held else {}
            compared = [weight.compared(values.get(weight.name)) for weight in held]
            return [bool(each.differ().any()) for each in compared]
        key = [(weight, weight.version) for weight in held]
        if key != self._key:
            self._key = key
            self._function = EAGER.fetch(lambda: which_moved(held))
        moved: list[bool] = self._function().tolist()
        return moved

    def optimizers(self) -> Callable[[HeldWeight], _KerasOptimizerFacts | None]:
        """See `TrainingFacts`: that of the model, or one that has updated the weight's masks."""
        known = optimizers_of(self._model) if self._given is None else [self._given]
        inner = [innermost(each) for each in known]
        keras_own = (each for each in inner if isinstance(each, keras.optimizers.Optimizer))
        of_model = [_KerasOptimizerFacts(each, self._assignments) for each in keras_own]
        facts = {id(each.optimizer): each for each in of_model}

        def of(held: HeldWeight) -> _KerasOptimizerFacts | None:
            hooks = () if held.masks is None else held.masks.hooks
            others = [
                facts.setdefault(
                    id(hook.optimizer), _KerasOptimizerFacts(hook.optimizer, self._assignments)
                )
                for hook in hooks
            ]
            if len(of_model) == 1 and all(each is of_model[0] for each in others):
                return of_model[0]
            candidates = [*of_model, *others]
            trains = (each for each in candidates if each.trains(held))
            return next(trains, None) or next(iter(candidates), None)

        return of

    def step(self) -> Any:
        """The function that `fit` has compiled."""
        return getattr(self._model, "train_function", None)

    def assigned(self, held: HeldWeight) -> int:
        """How often a weight was set by hand since the first call."""
        return self._assignments.of(held.owner)

    def close(self) -> None:
        """See `AuditSource`."""
        self._assignments.close()

    def constrained(self, held: HeldWeight | HeldLarge) -> bool:
        """See `TrainingFacts`: it keeps the current value, and would change the expected one."""
        constraint = getattr(held.owner, "constraint", None)
        if constraint is None or isinstance(held, HeldLarge):
            return False
        expected, now = np.asarray(held.expected()), np.asarray(held.value())
        at = np.broadcast_to(held.flags(), now.shape)
        stays = np.allclose(np.asarray(constraint(now))[at], now[at], 1e-5)
        before = np.where(at, expected, now)
        return stays and not np.allclose(np.asarray(constraint(before))[at], before[at], 1e-5)

    def elsewhere(self, held: HeldWeight) -> bool:
        """See `TrainingFacts`."""
        if self._others is None:
            models = [each for each in gc.get_objects() if issubclass(type(each), keras.Model)]
            known = {id(each) for each in optimizers_of(self._model)}
            others = {id(each): each for model in models for each in optimizers_of(model)}
            inner = [innermost(each) for key, each in others.items() if key not in known]
            # Weak, because they may be large.
            self._others = weakref.WeakSet(inner)
        return any(trains(each, held.variable) and steps_of(each) > 0 for each in self._others)


def audit_of(
    model: Any,
    weights: Sequence[TFWeight],
    masks: Callable[[], MaskTable | None] | None = None,
    optimizer: keras.optimizers.Optimizer | None = None,
    current: Callable[[], Mapping[str, Array]] = dict,
    wish: bool | str = VALUES,
    looks: Mapping[str, Look] = MappingProxyType({}),
) -> Audit:
    """Starts auditing a model: the masks that it carries, unless `masks` returns others.

    `optimizer` is the one that trains it, if that isn't the model's own.
    """
    source = ModelAudit(model, weights, optimizer, current, wish, looks)
    return Audit(source, masks or masks_in(model, weights))


class _KerasOptimizerFacts:
    """The `OptimizerFacts` of an innermost optimizer; unreadable facts are left out."""

    def __init__(self, optimizer: keras.optimizers.Optimizer, assignments: Assignments) -> None:
        self.optimizer, self._assignments = optimizer, assignments

    @property
    def updates(self) -> int:
        with suppress(Exception):
            return _int_of(self.optimizer.iterations)
        return 0

    @property
    def rate(self) -> float:
        with suppress(Exception):
            if self.schedule is None:
                return float(tf.convert_to_tensor(self.optimizer.learning_rate))
        return float("nan")

    @property
    def schedule(self) -> Callable[[int], float] | None:
        rate = getattr(self.optimizer, "_learning_rate", None)
        return rate if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule) else None

    @cached_property
    def applied(self) -> Applied:
        counter = tf_variable(self.optimizer._iterations)
        updates, loaded = _int_of(counter), self._assignments.of(counter)
        hook = hook_of(self.optimizer)
        if hook is None:
            return Applied(updates, loaded, hooked=None)
        return Applied(updates, loaded, _int_of(hook.applied), _int_of(hook.generation))

    @property
    def betas(self) -> list[float]:
        factors = (vars(self.optimizer).get(name) for name in _BETAS)
        return [float(beta) for beta in factors if beta]

    def decay(self, held: HeldWeight) -> float:
        optimizer = self.optimizer
        with suppress(Exception):
            if not optimizer._use_weight_decay(held.owner):
                return 0.0
            # Muon leaves some variables to AdamW.
            adamw = getattr(optimizer, "_should_use_adamw", None)
            if adamw is not None and adamw(held.owner):
                return float(optimizer.adam_weight_decay or 0)
            return float(optimizer.weight_decay or 0)
        return 0.0

    def trains(self, held: HeldWeight) -> bool:
        return trains(self.optimizer, held.variable)

    def average(self, held: HeldWeight) -> Average | None:
        optimizer = self.optimizer
        variable = averages_of(optimizer).get(id(held.variable))
        if variable is None:
            return None
        every, momentum = optimizer.ema_overwrite_frequency, optimizer.ema_momentum
        return Average(lambda positions: values_at(variable, positions), every, momentum)

    def slots(self, held: HeldWeight, positions: Ints) -> dict[str, Array]:
        with suppress(Exception):
            if len(positions):
                slots = slots_of(self.optimizer, held.variable)
                return {name: values_at(slot, positions) for name, slot in slots.items()}
        return {}


def _int_of(variable: tf.Variable) -> int:
    return int(reader(variable)())
