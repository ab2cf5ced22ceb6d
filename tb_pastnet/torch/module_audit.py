"""The audit of a module: weights held by `requires_grad_(False)` and masks, and what moves them.

Optimizers of torch ignore the flag: they continue as long as a gradient is left, which
`zero_grad(set_to_none=False)` keeps. Weights with the flag are thus treated as only declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from tb_pastnet.core.violation import MOVING_STATISTICS
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.causes import DECLARED, ENFORCED, Array, Facts
from tb_pastnet.record.audit.comparison import SAMPLE, Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.audit.optimizer_facts import (
    OptimizerCauses,
    OptimizerFacts,
    TrainingFacts,
)
from tb_pastnet.record.device_array import has_memory
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.options import VALUES
from tb_pastnet.record.weight import Look
from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import Homes, TorchWeight, array_of
from tb_pastnet.torch.optimizer_steps import Group, OptimizerSteps, Steps, parameters_of, rate_of

_BETAS = ("momentum", "alpha", "rho")
"""Factors of groups by which slots decay, besides betas."""


class _HeldTensor(HeldArray):
    """What torch prunes is held at zero: the module computes with that, not with what it masks."""

    def compared(self) -> Comparison:
        """See `Held`."""
        mask = self.weight.variable.mask
        if mask is None:
            return super().compared()
        pruned, effective = array_of(mask) == 0, self.weight.effective()
        # What `prune.remove` stores: zeros have a sign.
        self._reference[pruned] = effective[pruned]
        value, expected, held = super().compared()
        return Comparison(np.where(pruned, effective, value), expected, held)


class ModuleAudit(ArrayAudit):
    """Reads flags at each step, quickly; notes which statistics move in frozen layers.

    Weights computed by a parametrization move with its parts, and aren't held.
    """

    def __init__(
        self,
        weights: Iterable[TorchWeight],
        steps: OptimizerSteps,
        failures: Failures,
        wish: bool | str = VALUES,
        looks: Mapping[str, Look] = MappingProxyType({}),
    ) -> None:
        weights = [weight for weight in weights if not weight.entry.computed]
        super().__init__(weights, ModuleCauses(steps), wish, looks)
        self._homes = Homes(self.weights)
        self._parameters: list[torch.Tensor] = []
        self._flags: list[bool] = []
        self._by_id: dict[int, bool] = {}
        self._statistics = [each for each in weights if each.statistic]
        # Their bits when their layer was seen frozen, by name.
        self._references: dict[str, bytes] = {}
        self._failures = failures

    def _by_value(self, weight: Any) -> HeldArray:
        return _HeldTensor(weight)

    def moved(self, held: Sequence[HeldArray]) -> list[bool]:
        """See `AuditSource`."""
        moving = dict.fromkeys(repr(each.layer) for each in self._statistics if self._moves(each))
        if moving:
            self._failures.add(
                f"{MOVING_STATISTICS}, e.g. {', '.join([*moving][:3])}: call eval() on these "
                "layers to stop that"
            )
        return super().moved(held)

    def _moves(self, weight: TorchWeight) -> bool:
        """Whether a statistic of a frozen layer isn't what it was when that was first seen."""
        stored = weight.entry.stored
        if not is_frozen(weight.entry.owner) or not has_memory(local_of(stored)):
            self._references.pop(weight.name, None)
            return False
        bits = array_of(stored).tobytes()
        return self._references.setdefault(weight.name, bits) != bits

    def quick_key(self) -> tuple[bool, ...]:
        """See `AuditSource`."""
        return tuple([parameter.requires_grad for parameter in self._parameters])

    def trainable(self) -> list[bool]:
        """See `AuditSource`. Looks up the parameters again."""
        self._parameters = self._homes.stored()
        self._flags = [each.requires_grad for each in self._parameters]
        self._by_id.clear()
        return self._homes.trainable()

    @property
    def changed(self) -> bool:
        """Whether a flag isn't as `trainable` last saw it: read at each step."""
        return [each.requires_grad for each in self._parameters] != self._flags

    def changed_of(self, optimizer: torch.optim.Optimizer) -> bool:
        """The same for what an optimizer trains: each weight may have its own."""
        if not self._by_id:
            self._by_id.update(zip(map(id, self._parameters), self._flags, strict=True))
        flags = self._by_id
        for group in optimizer.param_groups:
            for each in group["params"]:
                if flags.get(id(each), each.requires_grad) != each.requires_grad:
                    return True
        return False


def is_frozen(layer: torch.nn.Module) -> bool:
    """Whether a layer in training has weights, none of which needs a gradient."""
    flags = [parameter.requires_grad for parameter in layer.parameters(recurse=False)]
    return layer.training and bool(flags) and not any(flags)


class ModuleCauses(OptimizerCauses, TrainingFacts):
    """Finds causes from the observed steps; its own `TrainingFacts`."""

    def __init__(self, steps: OptimizerSteps) -> None:
        super().__init__(self)
        self._steps = steps
        self._written: dict[str, tuple[int, ...]] = {}
        self._assigned: Counter[str] = Counter()
        self._left: dict[str, bool] = {}
        # Held in part: their optimizer keeps updating them, and only other writes count.
        self._partly: dict[str, Any] = {}
        self._partly_by_id: dict[int, Any] | None = None
        self._listens = False

    def held_by(self, held: Held) -> str:
        """See `OptimizerCauses`."""
        enforced = not held.flagged and getattr(held.masks, "enforced", False)
        return ENFORCED if enforced else DECLARED

    def facts(self, held: Any, channels: Ints) -> Facts:
        """See `CauseFinder`."""
        facts = super().facts(held, channels)
        if facts.held_by == ENFORCED:  # in the steps of any optimizer
            return replace(facts, replaced=False)
        if not held.flagged:
            return replace(facts, gradient=self._arrives(held, channels))
        left = self._left[held.name] if self._steps.working else None
        gradient = _dense(local_of(held.weight.entry.stored.grad))
        if not left or gradient is None:
            return replace(facts, gradient_left=left)
        if gradient.any():  # it moves weights itself, whatever slots decay
            return replace(facts, gradient_left=True, slots={})
        return replace(facts, gradient_zero=True)

    def _arrives(self, held: Any, channels: Ints) -> bool:
        """Whether the moved elements have a gradient now, just applied by their optimizer."""
        gradient = _dense(local_of(held.weight.entry.stored.grad))
        if gradient is None or not self._steps.working:
            return False
        positions = torch.from_numpy(held.worst(channels, SAMPLE))
        return bool(gradient.reshape(-1)[positions.to(gradient.device)].any())

    def _before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._look_around(optimizer, made=False)

    def _after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._look_around(optimizer, made=True)

    def _look_around(self, optimizer: torch.optim.Optimizer, *, made: bool) -> None:
        if self._partly_by_id is None:
            partly = self._partly.values()
            self._partly_by_id = {id(held.weight.entry.stored): held for held in partly}
        if self._partly_by_id:
            for parameter in parameters_of(optimizer):
                if id(parameter) in self._partly_by_id:
                    self._look(self._partly_by_id[id(parameter)], by_optimizer=made)

    def _look(self, held: Any, *, by_optimizer: bool = False) -> None:
        """Counts writes that no optimizer made."""
        name, stored = held.name, held.weight.entry.stored
        updates = self._steps.with_gradient[name] if held.flagged else 0
        now = id(stored), stored._version, updates
        written = self._written.get(name, now)
        self._left[name] = updates > written[2]
        self._assigned[name] += now != written and not (by_optimizer or self._left[name])
        self._written[name] = now

    def optimizers(self) -> Callable[[Any], _TorchOptimizerFacts | None]:
        """See `TrainingFacts`."""

        def of(held: Any) -> _TorchOptimizerFacts | None:
            member = self._steps.all((held.weight,)).get(held.name)
            return None if member is None else _TorchOptimizerFacts(*member)

        return of

    def assigned(self, held: Any) -> int:
        """See `TrainingFacts`: writes in place, or of another tensor, while no gradient was left.

        Each call also notes whether one was, in an update since the previous call.
        """
        if held.flagged:
            self._partly.pop(held.name, None)
            self._steps.held[held.name] = held.weight
        else:
            if not self._listens:
                self._listens = True
                self._steps.listen(self._before_step, self._after_step)
            self._partly[held.name] = held
        self._partly_by_id = None
        self._look(held)
        return self._assigned[held.name]


@dataclass
class _TorchOptimizerFacts(OptimizerFacts):
    """The facts of one group of an optimizer."""

    optimizer: torch.optim.Optimizer
    group: Group
    steps: Steps

    @property
    def updates(self) -> int:
        return self.steps.count

    @property
    def rate(self) -> float:
        return rate_of(self.group)

    @property
    def schedule(self) -> Callable[[int], float]:
        groups = [id(group) for group in self.optimizer.param_groups]
        number, rates = groups.index(id(self.group)), self.steps.rates
        first = self.steps.count - len(rates)
        # Before a group was added it had no rate.
        return lambda update: (*rates[update - first], *[0.0] * len(groups))[number]

    @property
    def betas(self) -> list[float]:
        values = [self.group.get(name) for name in _BETAS]
        return [float(beta) for beta in (*values, *self.group.get("betas", ())) if beta]

    def decay(self, held: Held) -> float:
        return float(self.group.get("weight_decay") or 0)

    def slots(self, held: Any, positions: Ints) -> dict[str, Array]:
        stored, chosen = held.weight.entry.stored, torch.from_numpy(positions)
        state = self.optimizer.state.get(stored, {})
        return {
            name: array_of(local_of(slot).reshape(-1)[chosen])
            for name, slot in state.items()
            if isinstance(slot, torch.Tensor) and slot.shape == stored.shape
            if has_memory(local_of(slot))
        }


def _dense(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """A gradient that may be that of a sparse embedding; None if it has no memory any more."""
    if gradient is None or gradient.is_sparse:
        return None if gradient is None else gradient.to_dense()
    return gradient if has_memory(local_of(gradient)) else None
