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
from tb_pastnet.record.overhead_timer import OverheadTimer
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.update_watch import UpdateWatch

Group = Mapping[str, Any]
Listener = Callable[[Optimizer], None]
Weak = tuple[weakref.ref[Any], Callable[[Any, Optimizer], None]]
"""A bound method, its object kept weakly: `WeakMethod` takes longer, and steps are many."""


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
        timer: counts what is done here as recording overhead.
        done: called after each step of any optimizer; it must not raise.
    """

    def __init__(
        self, weights: Sequence[TorchWeight], given: Sequence[Optimizer], failures: Failures
    ) -> None:
        self._weights = weights
        self._failures = failures
        self.timer: OverheadTimer | None = None
        self.done: Listener | None = None
        # Those that exist; the last is the one that made the latest step.
        self._trainers = weakref.WeakKeyDictionary({each: Steps() for each in given})
        # The same, in an order that stays, and quicker to walk.
        self._references = [weakref.ref(each) for each in given]
        self._latest: tuple[weakref.ref[Optimizer], Steps] | None = None
        self.stepped = self.working = self._captured = False
        # For others, such as wrappers, it isn't certain that the hook is called.
        self._awaited = any(getattr(type(each).step, "hooked", False) for each in given)
        self.held: dict[str, TorchWeight] = {}
        self._watch: UpdateWatch | None = None
        # All updates, and after how many of them the next are looked at.
        self._total, self._looks_from = 0, math.inf
        self.with_gradient: Counter[str] = Counter()
        self._before: list[Weak] = []
        self._after: list[Weak] = []
        # Only these builds capture graphs. To ask for a device would hurt a later fork.
        self._may_capture = torch.backends.cuda.is_built()
        self.made, self.most = 0, math.inf
        self._overdue: Callable[[], Callable[[], None] | None] = lambda: None
        handles = [
            register_optimizer_step_pre_hook(_hook(self._begin)),
            register_optimizer_step_post_hook(_hook(self._notice, last=True)),
        ]
        for left in _LEFT:
            left.remove()
        _LEFT.clear()
        self._handles = handles
        self._at_end = weakref.finalize(self, _disable, handles)

    def close(self) -> None:
        """Removes the hooks."""
        if self._at_end.detach() is not None:
            for handle in self._handles:
                handle.remove()

    def listen(self, before: Listener | None = None, after: Listener | None = None) -> None:
        """Calls bound methods, kept weakly, before each step and after it.

        They may only look at the optimizer's own weights: each weight may have its own.
        """
        self._before += _weak(before)
        self._after += _weak(after)

    def trained_by(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer that made a step has any of the weights."""
        return optimizer in self._trainers

    def meet(self, optimizer: Optimizer) -> bool:
        """Follows an optimizer before its step; whether it is new and trains any of the weights."""
        return optimizer not in self._trainers and self._find(optimizer) is not None

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

    def groups(self) -> Iterator[Group]:
        """The groups of all optimizers."""
        return (group for optimizer in self._trainers for group in optimizer.param_groups)

    def key(self) -> list[tuple[int, ...]]:
        """Another one if `all` may return something else: quick, read at each record."""
        return [
            (id(group), *map(id, group["params"]))
            for reference in self._references
            if (optimizer := reference()) is not None
            for group in optimizer.param_groups
        ]

    def latest_rate(self, group: Group, steps: Steps, number: int) -> float:
        """The learning rate of a group in the latest update: a scheduler may have set the next.

        Args:
            group: of an optimizer.
            steps: of that optimizer.
            number: of the group in it.
        """
        if self._captured or not steps.rates or number >= len(steps.rates[-1]):
            return rate_of(group)
        return steps.rates[-1][number]

    def _begin(self, optimizer: Optimizer) -> None:
        if self._may_capture and self._in_graph():
            return
        for reference, listen in self._before:
            owner = reference()
            if owner is not None:
                listen(owner, optimizer)
        if self._total >= self._looks_from and self._watch is not None:
            self._look(self._watch.before, optimizer)

    @property
    def looked(self) -> bool:
        """Whether all updates were looked at that `look_from` asked for, as far as is known."""
        return self._total > self._looks_from or self._looks_from == math.inf

    def look_from(self, watch: UpdateWatch | None, updates: int) -> None:
        """Has weights that are idle looked at after some more updates; None: nothing."""
        self._watch = watch
        self._looks_from = math.inf if watch is None else self._total + updates

    @noted("Could not look at weights that are idle")
    def _look(self, look: Listener, optimizer: Optimizer) -> None:
        with torch.no_grad():
            look(optimizer)

    def _in_graph(self) -> bool:
        """Whether a step was captured. Reading a weight meanwhile would end the user's capture."""
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            self._captured, self._awaited, self.working = True, False, False
        return self._captured

    def _notice(self, optimizer: Optimizer) -> None:
        if self._may_capture and self._in_graph():
            return
        for reference, listen in self._after:
            owner = reference()
            if owner is not None:
                listen(owner, optimizer)
        if self._total >= self._looks_from and self._watch is not None:
            self._look(self._watch.after, optimizer)
        self._total += 1
        latest = self._latest
        steps = latest[1] if latest and latest[0]() is optimizer else self._find(optimizer)
        if steps is None:
            return
        steps.count += 1
        groups = optimizer.param_groups
        steps.rates.append([g["lr"] if type(g.get("lr")) is float else rate_of(g) for g in groups])
        self.stepped = self.working = True
        self.made += 1
        if self.made > self.most and (overdue := self._overdue()) is not None:
            overdue()
        if self.held:
            self._note_gradients(optimizer)

    def _find(self, optimizer: Optimizer) -> Steps | None:
        """The steps of an optimizer, which now makes the latest; None if it trains no weight."""
        steps = self._trainers.pop(optimizer, None)
        if steps is None:
            if not self._trains(optimizer):
                return None
            steps = Steps()
            # A program may make one after another: those that are gone aren't walked again.
            alive = [each for each in self._references if each() is not None]
            self._references = [*alive, weakref.ref(optimizer)]
        self._trainers[optimizer] = steps
        self._latest = weakref.ref(optimizer), steps
        return steps

    def _note_gradients(self, optimizer: Optimizer) -> None:
        # Those that train again may have one.
        own = parameters_of(optimizer)
        left = {id(each) for each in own if not each.requires_grad and each.grad is not None}
        if left:
            stored = ((name, weight.entry.stored) for name, weight in self.held.items())
            self.with_gradient.update([name for name, each in stored if id(each) in left])

    def _trains(self, optimizer: Optimizer) -> bool:
        own = set(map(id, parameters_of(optimizer)))
        return any(id(weight.entry.stored) in own for weight in self._weights)


def _weak(method: Listener | None) -> list[Weak]:
    bound: Any = method
    return [] if method is None else [(weakref.ref(bound.__self__), bound.__func__)]


def _hook(method: Any, *, last: bool = False) -> Callable[..., None]:
    """A hook that calls a method as long as its object exists, and never raises.

    The `last` one of a step then calls `done`, which counts its own time.
    """
    reference, follow = weakref.ref(method.__self__), method.__func__
    is_compiling = torch.compiler.is_dynamo_compiling

    def hook(optimizer: Optimizer, *_: object) -> None:
        # Compilers don't trace into it. Otherwise that would take longer than the hook itself.
        if is_compiling():
            disabled(optimizer)
            return
        steps = reference()
        if steps is None:
            return
        timer = steps.timer
        begun = 0.0 if timer is None else timer.clock()
        try:
            follow(steps, optimizer)
        except Exception as error:
            steps._failures.add("Could not follow a step of an optimizer", error)
        if timer is not None:
            timer.passed(begun)
        if last and steps.done is not None:
            steps.done(optimizer)

    disabled = torch.compiler.disable(hook)
    return hook


_LEFT: list[Any] = []
"""Handles of hooks that do nothing any more."""


def _disable(handles: Iterable[Any]) -> None:
    """Makes hooks do nothing: garbage is collected at any time, even while torch calls them all."""
    for handle in handles:
        hooks = handle.hooks_dict_ref()
        if hooks is not None and handle.id in hooks:
            hooks[handle.id] = _nothing  # to remove it would end the user's step
        _LEFT.append(handle)


def _nothing(*_: object) -> None:
    """A hook without an owner."""


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
