"""Why weights of torch are idle, as far as their optimizers show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from tb_pastnet.core.standing import UNKNOWN, is_proven
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.torch.lora import LoraTensor
from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.optimizer_steps import Group, OptimizerSteps, Steps, parameters_of, rate_of
from tb_pastnet.torch.update_watch import SeenUpdates, UpdateWatch

_SHORT = torch.float16, torch.bfloat16
_Member = tuple[Optimizer, Group, Steps]


class StillCauses:
    """Finds causes, and has the next due update of weights that are idle looked at."""

    def __init__(
        self, weights: Sequence[TorchWeight], steps: OptimizerSteps, schedule: Schedule
    ) -> None:
        self._weights, self._steps, self._schedule = weights, steps, schedule
        self._members: Mapping[str, _Member] = {}
        self._found: dict[int, str] = {}

        def now() -> int:
            # Between calls, the optimizers count the steps.
            return (schedule.last or 0) + 1 + steps.made // schedule.updates.each

        self._watch = UpdateWatch(now)
        self._counts: dict[str, int] = {}

    def look_at_all(self) -> None:
        """Has all updates looked at, until `find` is called."""
        self._steps.listen(before=self._meet)
        self._steps.look_from(self._watch, 0)

    def _meet(self, optimizer: Optimizer) -> None:
        own = set(map(id, parameters_of(optimizer)))
        weights = enumerate(self._weights)
        self._watch.meet(
            (optimizer, number, weight)
            for number, weight in weights
            if not weight.entry.computed and id(weight.entry.stored) in own
        )

    def find(self, still: Sequence[int], slow: Sequence[int], skip: int) -> dict[int, str]:
        """See `Source.why_still`."""
        own = [*still, *slow]
        self._members = self._steps.all(self._weights[number] for number in own)
        if self._steps.looked:
            self._found = {number: self._cause(number) for number in still}
            self._found.update(self._causes_of_lora(still))
            self._found.update((number, self._slow_cause(number)) for number in slow)
        # Until the next look, what it was at the last one.
        found = {number: self._found.get(number, "") for number in own}
        causes = {number: found[number] or UNKNOWN for number in still}
        causes.update((number, found[number]) for number in slow if found[number])
        self._counts = {name: steps.count for name, (_, _, steps) in self._members.items()}
        self._watch.follow(self._followed(own))
        self._steps.look_from(self._watch if own else None, self._updates_until_due(skip))
        return causes

    def _updates_until_due(self, skip: int) -> int:
        """How many updates aren't looked at: rather too few than too many."""
        schedule = self._schedule
        each = schedule.updates.each if schedule.updates.counted else 1
        until = schedule.quiet_until - (schedule.now or 0) - 1
        return (max(until, 0) + schedule.due_before(skip) * schedule.every) * each

    def decay(self, number: int) -> tuple[float, float] | None:
        """See `Source`: what has momentum shrinks by more."""
        member = self._members.get(self._weights[number].name)
        if member is None:
            return None
        group = member[1]
        share = self._rate(member) * float(group.get("weight_decay") or 0.0)
        momentum = float(group.get("momentum") or 0.0)
        return (share, share / (1 - momentum)) if share > 0 and 0 <= momentum < 1 else None

    def _followed(self, numbers: Sequence[int]) -> Iterator[tuple[Optimizer, int, TorchWeight]]:
        for number in numbers:
            weight = self._weights[number]
            member = self._members.get(weight.name)
            # The gradients of a computed weight are those of others.
            if member is not None and not weight.entry.computed:
                yield member[0], number, weight

    def _cause(self, number: int) -> str:
        weight = self._weights[number]
        if weight.entry.computed or not self._steps.working:
            return UNKNOWN
        member = self._members.get(weight.name)
        if member is None:
            return "no_optimizer"
        if member[2].count == self._counts.get(weight.name):
            return "skipped" if overflows(weight.entry.stored) else UNKNOWN
        if self._rate(member) == 0:
            return "group_rate" if self._any_rate() else "rate"
        return self._cause_by_look(weight, member, self._watch.of(number))

    def _causes_of_lora(self, still: Sequence[int]) -> Iterator[tuple[int, str]]:
        """The causes of weights of LoRA layers: those of what adapters add."""
        entries = [(number, self._weights[number].entry) for number in still]
        places = {id(entry.stored): number for number, entry in entries if not entry.computed}
        for number, entry in entries:
            if not isinstance(entry, LoraTensor):
                continue
            added = entry.added()
            parts = [places.get(id(part)) for each in added for part in (each.b, each.a)]
            causes = [self._found[part] for part in parts if part is not None]
            zero = bool(added) and not any(bool(each.b.any()) for each in added)
            unproven = "zero_adapter" if zero else UNKNOWN
            yield number, next(filter(is_proven, causes), unproven)

    def _cause_by_look(self, weight: TorchWeight, member: _Member, seen: SeenUpdates) -> str:
        if seen.made and seen.without == seen.made:
            return "no_gradient"
        if not self._is_of_this_step(seen):
            return UNKNOWN
        if not bool(seen.finite):
            return "skipped"
        if int(seen.gradient) == 0:
            return "zero_gradient"
        if bool(seen.any):
            return "thrown_away"
        return "rounded" if _rounded(weight, member, seen) else UNKNOWN

    def _slow_cause(self, number: int) -> str:
        """Why a weight moves no more than that; "" if that isn't proven."""
        weight, seen = self._weights[number], self._watch.of(number)
        member = self._members.get(weight.name)
        if member is None or not self._is_of_this_step(seen) or not bool(seen.finite):
            return ""
        if int(seen.gradient) == 0:
            return "weight_decay"
        return "rounded" if _rounded(weight, member, seen) else ""

    def _is_of_this_step(self, seen: SeenUpdates) -> bool:
        return seen.step >= max(self._schedule.now or 0, 0)

    def _rate(self, member: _Member) -> float:
        optimizer, group, steps = member
        number = [id(each) for each in optimizer.param_groups].index(id(group))
        return self._steps.latest_rate(group, steps, number)

    def _any_rate(self) -> bool:
        """Whether another group has a learning rate."""
        return any(rate_of(group) > 0 for group in self._steps.groups())


def _rounded(weight: TorchWeight, member: _Member, seen: SeenUpdates) -> bool:
    # Others may keep the values in float32, or round by chance.
    ours = type(member[0]).__module__.startswith("torch.optim")
    short = weight.entry.stored.dtype in _SHORT
    return ours and short and int(seen.sampled) > 0 and 2 * int(seen.moved) < int(seen.sampled)


def overflows(parameter: Any) -> bool:
    """Whether its gradient isn't finite."""
    gradient = parameter.grad
    if gradient is None or gradient.is_sparse:
        return False
    return not bool(torch.isfinite(local_of(gradient.detach())).all())
