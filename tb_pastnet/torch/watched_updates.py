"""What becomes of a module's weights over some updates, and why: for preflights and assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from torch.optim import Optimizer

from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.record.audit.held_array import HeldSince
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.weight import Array
from tb_pastnet.torch.module_audit import ModuleCauses
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.optimizer_steps import OptimizerSteps, parameters_of
from tb_pastnet.torch.still_causes import StillCauses, overflows


class WatchedUpdates:
    """Looks at each update of some weights until `close`, including those of later optimizers.

    Args:
        weights: of a module.
        optimizers: that are known already.
        values_before: returns the values that a weight has now, by its name, whenever it is asked.
    """

    def __init__(
        self,
        weights: Sequence[TorchWeight],
        optimizers: Sequence[Optimizer],
        values_before: Callable[[str], Array],
    ) -> None:
        self._weights = {weight.name: weight for weight in weights}
        self._numbers = {name: number for number, name in enumerate(self._weights)}
        self._parameters = {
            weight.name: weight.entry.stored
            for weight in weights
            if not (weight.statistic or weight.entry.computed)
        }
        self.steps = OptimizerSteps(weights, optimizers, Failures())
        self._still = StillCauses(weights, self.steps, Schedule(1, "previous", 0))
        self._still.look_at_all()
        self._given = bool(optimizers)
        self._causes = ModuleCauses(self.steps)
        self._held = {
            name: HeldSince(self._weights[name], partial(values_before, name))
            for name, parameter in self._parameters.items()
            if not parameter.requires_grad
        }
        self._causes.begin(list(self._held.values()))
        if self._held:
            self.steps.listen(before=self._meet)

    def why_still(
        self, still: Iterable[str] | None = None, moved: Iterable[str] = ()
    ) -> Mapping[str, str]:
        """Ends the look at updates: of weights that didn't move the cause, None: as if all didn't.

        Returns:
            Keys of `core.standing.CAUSES` by name; of those that moved only if they barely do.
        """
        numbers = [self._numbers[name] for name in (self._numbers if still is None else still)]
        slow = [self._numbers[name] for name in moved]
        names = list(self._weights)
        causes = self._still.find(numbers, slow, 0)
        causes_by_name = {names[number]: cause for number, cause in causes.items()}
        return {name: self._without_step(name, cause) for name, cause in causes_by_name.items()}

    def decay(self, name: str) -> tuple[float, float] | None:
        """The least and the largest share of a weight that its decay takes in an update."""
        return self._still.decay(self._numbers[name])

    def updates(self, name: str) -> int:
        """How many updates the optimizer of a weight made."""
        member = self.steps.all([self._weights[name]]).get(name)
        return 0 if member is None else member[2].count

    def why_moved(self, name: str) -> str:
        """Why a weight moved that needed no gradient: a key of `core.violation.CAUSES`."""
        held = self._held.get(name)
        if held is None:
            return UNKNOWN
        return self._causes.cause(held, np.arange(held.axis.channels))

    def replaced(self) -> set[str]:
        """Names of weights at whose place another parameter is now."""
        return {
            name
            for name, former in self._parameters.items()
            if self._weights[name].entry.stored is not former
        }

    def close(self) -> None:
        """Ends the look at updates."""
        self.steps.close()

    def _meet(self, optimizer: Optimizer) -> None:
        """Notes what an optimizer that wasn't given has of held weights, before its first step."""
        if self.steps.meet(optimizer):
            own = {id(each) for each in parameters_of(optimizer)}
            known = {name for name, each in self._weights.items() if id(each.entry.stored) in own}
            self._causes.begin([each for name, each in self._held.items() if name in known])

    def _without_step(self, name: str, cause: str) -> str:
        """The cause if no optimizer has a weight, or its optimizer made no step."""
        weight = self._weights[name]
        member = self.steps.all([weight]).get(name)
        if weight.entry.computed or (member is not None and member[2].count):
            return cause
        # An optimizer that wasn't given is only known once it makes a step.
        unseen = cause == UNKNOWN or (cause == "no_optimizer" and not self._given)
        if unseen and overflows(weight.entry.stored):
            return "skipped"
        return "no_optimizer" if member is None else cause
