"""Looks at the updates of weights that are idle, to find out why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.optim import Optimizer

from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import TorchWeight

_SAMPLED = 1 << 16
"""Elements of a weight that are compared before and after an update."""

_COPIED = 1 << 20
"""Elements of a weight that isn't contiguous, up to which it is sampled."""

Sample: TypeAlias = "torch.Tensor | None"


@dataclass
class SeenUpdates:
    """What the looks at a weight's updates since the last record showed.

    Attributes:
        made: by its optimizer, and looked at.
        without: in which its gradient was None.
        step: of the latest look, as far as is known; -1: there was none.
        gradient: elements of the gradient that aren't zero, in the latest look.
        finite: whether all of it was finite there.
        sampled: elements with a gradient there, among those that were compared.
        moved: how many of these the update changed.
        any: whether the update changed any element that was compared.
    """

    made: int = 0
    without: int = 0
    step: int = -1
    # On the weight's device: nothing waits for it before the record.
    gradient: Any = 0
    finite: Any = True
    sampled: Any = 0
    moved: Any = 0
    any: Any = False


class UpdateWatch:
    """Looks at updates of some weights, in the hooks of their optimizers.

    Args:
        now: the step that the next update belongs to, as far as is known.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._members: dict[int, list[tuple[int, Any]]] = {}
        self._updates: dict[int, SeenUpdates] = {}
        self._before: dict[int, tuple[bool, Any, Sample]] = {}

    def follow(self, members: Iterable[tuple[Optimizer, int, TorchWeight]]) -> None:
        """Follows these weights, by optimizer and number, from the next update on."""
        self._members, self._updates, self._before = {}, {}, {}
        for optimizer, number, weight in members:
            # Until the next record it is the same tensor.
            self._members.setdefault(id(optimizer), []).append((number, weight.entry.stored))
            self._updates[number] = SeenUpdates()

    def meet(self, members: Iterable[tuple[Optimizer, int, TorchWeight]]) -> None:
        """Follows weights of an optimizer, which is about to make a step, from now on as well."""
        own = [(optimizer, number, weight.entry.stored) for optimizer, number, weight in members]
        if own and id(own[0][0]) not in self._members:
            self._members[id(own[0][0])] = [(number, stored) for _, number, stored in own]
            for _, number, _ in own:
                self._updates.setdefault(number, SeenUpdates())

    def of(self, number: int) -> SeenUpdates:
        """The updates of a weight since `follow`; none if it wasn't among its weights."""
        return self._updates.get(number, SeenUpdates())

    def before(self, optimizer: Optimizer) -> None:
        """Looks before an update of an optimizer."""
        for number, stored in self._members.get(id(optimizer), ()):
            gradient = stored.grad
            if gradient is None:
                self._before[number] = False, 0, None
            else:
                self._before[number] = True, _nonzero(gradient), _sample(stored, copy=True)

    def after(self, optimizer: Optimizer) -> None:
        """Looks after it."""
        for number, stored in self._members.get(id(optimizer), ()):
            if number in self._before:
                had, before, old = self._before.pop(number)
                updates = self._updates[number]
                updates.made += 1
                if stored.grad is not None:
                    self._look(updates, stored, before, old)
                    updates.step = self._now()
                elif not had:
                    updates.without += 1

    def _look(self, updates: SeenUpdates, stored: Any, before: Any, old: Sample) -> None:
        gradient = stored.grad
        # A closure computes it in the update; some optimizers set it to zero there.
        updates.gradient = before + _nonzero(gradient)
        updates.finite = torch.isfinite(_elements(gradient)).all()
        updates.sampled = updates.moved = 0
        updates.any = False
        new, own = _sample(stored), None if gradient.is_sparse else _sample(gradient)
        if old is not None and new is not None:
            changed = new != old
            updates.any = changed.any()
            if own is not None:
                updates.sampled = torch.count_nonzero(own)
                updates.moved = torch.count_nonzero(changed & (own != 0))


def _elements(gradient: torch.Tensor) -> torch.Tensor:
    gradient = local_of(gradient.detach())
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _nonzero(gradient: torch.Tensor) -> torch.Tensor:
    return torch.count_nonzero(_elements(gradient))


def _sample(tensor: torch.Tensor, *, copy: bool = False) -> Sample:
    """Some elements, always the same; None if these can't be found quickly."""
    tensor = local_of(tensor.detach())
    if not tensor.is_contiguous() and tensor.numel() > _COPIED:
        return None
    # An odd stride meets all columns.
    sample: torch.Tensor = tensor.reshape(-1)[:: tensor.numel() // _SAMPLED | 1]
    return sample.clone() if copy else sample
