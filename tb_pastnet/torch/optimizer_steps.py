"""Observes each update of some weights by torch optimizers, and its learning rate."""

from __future__ import annotations

import math
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.audit.causes import MOST_UPDATES
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.torch.module_weights import TorchWeight

Group = Mapping[str, Any]
Listener = Callable[[Optimizer, bool], None]


@dataclass
class Steps:
    """Updates of one optimizer since it was first seen: how many, and the rates of each group."""

    count: int = 0
    rates: deque[list[float]] = field(default_factory=lambda: deque(maxlen=MOST_UPDATES))


class OptimizerSteps:
    """Follows the optimizers that train some weights, including later ones.

    It uses a hook that torch calls after each step of any optimizer; steps skipped by GradScaler
    don't count. No hook is called when a CUDA graph replays a step: once one is captured, every
    call may follow an update.

    Attributes:
        working: whether any has made a step.
        stepped: whether any has since the last call of `skipped`.
        held: weights, by name, that are checked for a gradient at each update.
        with_gradient: the number of updates in which they had one.
        made: updates since it was last set to 0.
        most: `overdue` is called after each update beyond these.
    """

    def __init__(
        self, weights: Sequence[TorchWeight], given: Sequence[Optimizer], failures: Failures
    ) -> None:
        self._weights = weights
        self._failures = failures
        # Those that exist; the last is the one that made the latest step.
        self._trainers = weakref.WeakKeyDictionary({each: Steps() for each in given})
        self.stepped = self.working = self._captured = False
        # For others, such as wrappers, it isn't certain that the hook is called.
        self._awaited = any(getattr(type(each).step, "hooked", False) for each in given)
        self.held: dict[str, TorchWeight] = {}
        self.with_gradient: Counter[str] = Counter()
        self._listeners: list[weakref.WeakMethod[Listener]] = []
        self.made, self.most = 0, math.inf
        self._overdue: Callable[[], Callable[[], None] | None] = lambda: None
        handles = [
            register_optimizer_step_pre_hook(_weakly(self._begin)),
            register_optimizer_step_post_hook(_weakly(self._notice)),
        ]
        self.close = weakref.finalize(self, _remove, handles)

    def listen(self, method: Listener) -> None:
        """Calls a bound method, kept weakly, around each step: False before it, True after it.

        It may only look at the optimizer's own weights: there may be an optimizer for each weight.
        """
        self._listeners.append(weakref.WeakMethod(method))

    def expect(self, most: float, method: Callable[[], None]) -> None:
        """Calls a bound method, kept weakly, after each update beyond `most`."""
        self.most, self._overdue = most, weakref.WeakMethod(method)

    @property
    def trainers(self) -> int:
        """How many optimizers train the weights, as far as is known."""
        return len(self._trainers)

    def skipped(self) -> bool:
        """Whether no optimizer made a step since the last call, though one once did."""
        stepped, self.stepped = self.stepped, False
        return not stepped and (self._awaited or self.working)

    def left_out(self, weights: Iterable[TorchWeight]) -> list[str]:
        """Names of parameters that need a gradient, but that none of the optimizers trains."""
        own = [
            each
            for each in weights
            if not (each.entry.computed or each.text.follows) and each.entry.trained()
        ]
        trained = self.all(own)
        return [each.name for each in own if self._trainers and each.name not in trained]

    def all(self, weights: Iterable[TorchWeight]) -> dict[str, tuple[Optimizer, Group, Steps]]:
        """The optimizer, its group and its steps, by the names of trained weights.

        If several optimizers have a weight, the one that made the latest step.
        """
        members: dict[int, tuple[Optimizer, Group, Steps]] = {}
        for optimizer, steps in self._trainers.items():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    members[id(parameter)] = optimizer, group, steps
        pairs = ((weight.name, members.get(id(weight.entry.stored))) for weight in weights)
        return {name: member for name, member in pairs if member is not None}

    def latest_rate(self, member: tuple[Optimizer, Group, Steps]) -> float:
        """The learning rate of a group in the latest update: a scheduler may have set the next."""
        optimizer, group, steps = member
        number = [id(each) for each in optimizer.param_groups].index(id(group))
        if self._captured or not steps.rates or number >= len(steps.rates[-1]):
            return rate_of(group)
        return steps.rates[-1][number]

    @noted("Could not look at held weights before a step")
    def _begin(self, optimizer: Optimizer) -> None:
        if not self._in_graph():
            self._tell(optimizer, made=False)

    def _in_graph(self) -> bool:
        """Whether a step was captured. Reading a weight meanwhile would end the user's capture."""
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            self._captured, self._awaited, self.working = True, False, False
        return self._captured

    def _tell(self, optimizer: Optimizer, *, made: bool) -> None:
        for reference in self._listeners:
            listen = reference()
            if listen is not None:
                listen(optimizer, made)

    @noted("Could not follow a step of an optimizer")
    def _notice(self, optimizer: Optimizer) -> None:
        if self._in_graph():
            return
        self._tell(optimizer, made=True)
        steps = self._trainers.pop(optimizer, None)
        if steps is None:
            if not self._trains(optimizer):
                return
            steps = Steps()
        self._trainers[optimizer] = steps
        steps.count += 1
        steps.rates.append([rate_of(group) for group in optimizer.param_groups])
        self.stepped = self.working = True
        self.made += 1
        if self.made > self.most and (overdue := self._overdue()) is not None:
            overdue()
        own = parameters_of(optimizer) if self.held else ()
        # Those that train again may have one.
        left = {id(each) for each in own if not each.requires_grad and each.grad is not None}
        if left:
            stored = ((name, weight.entry.stored) for name, weight in self.held.items())
            self.with_gradient.update([name for name, each in stored if id(each) in left])

    def _trains(self, optimizer: Optimizer) -> bool:
        own = set(map(id, parameters_of(optimizer)))
        return any(id(weight.entry.stored) in own for weight in self._weights)


def _weakly(method: Any) -> Callable[..., None]:
    """A hook that calls a method as long as its object exists; compilers don't trace into it."""
    reference = weakref.WeakMethod(method)

    def hook(optimizer: Optimizer, *_: object) -> None:
        alive = reference()
        if alive is not None:
            alive(optimizer)

    disabled: Callable[..., None] = torch.compiler.disable(hook)
    return disabled


def _remove(handles: Iterable[Any]) -> None:
    for handle in handles:
        handle.remove()


def parameters_of(optimizer: Optimizer) -> Iterator[torch.Tensor]:
    """The parameters of all groups."""
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def rate_of(group: Group) -> float:
    """The learning rate of a group; NaN if it is on an accelerator: nothing waits for it."""
    rate = group.get("lr", float("nan"))
    on_device = isinstance(rate, torch.Tensor) and rate.device.type != "cpu"
    return float("nan") if on_device else float(rate)


def optimizers_in(given: Any) -> list[Optimizer]:
    """The user's optimizers: None, one, or several."""
    wanted = [] if given is None else given if isinstance(given, list | tuple) else [given]
    for optimizer in wanted:
        if not hasattr(optimizer, "param_groups"):
            raise InvalidArgument(
                f"Could not read the learning rate: expected optimizer= a torch.optim.Optimizer or "
                f"a list of them, got {type(optimizer).__name__}. Pass the optimizer itself."
            )
    return list(wanted)
