"""Takes past copies between calls of `record`, where these don't follow each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from tb_pastnet.record.schedule import Schedule
from tb_pastnet.torch.module_tensors import local_of
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.optimizer_steps import OptimizerSteps

Take = Callable[[int], None]


class BetweenCalls:
    """Follows schedules by the optimizers' steps: each needs copies of steps without a call.

    A step ends somewhere between two updates. Parameters are copied just before the next update,
    after anything that the training's loop does to them; buffers after the last one, because the
    next step's forward pass changes them.

    Attributes:
        waiting: the copies that `prepare` has begun.
    """

    def __init__(self, weights: Sequence[TorchWeight], steps: OptimizerSteps) -> None:
        self._buffers = [weight for weight in weights if weight.statistic]
        self._steps = steps
        self._takers: list[tuple[Schedule, Take]] = []
        self.waiting: list[tuple[Take, int]] = []
        self._kept: list[torch.Tensor] = []

    def add(self, schedule: Schedule, take: Take) -> None:
        """Takes the copies of a schedule, by number."""
        schedule.count(self._steps.trainers)
        self._takers.append((schedule, take))

    def prepare(self) -> None:
        """After an update: copies what the next step may change before its update."""
        for schedule, take in self._takers:
            schedule.count(self._steps.trainers)
            copy = schedule.updated(self._steps.made)
            if copy is not None:
                self.waiting.append((take, copy))
        if self.waiting:
            with torch.no_grad():
                self._kept = [local_of(each.value().detach()).clone() for each in self._buffers]

    def take(self) -> None:
        """Before an update: takes the copies that `prepare` has begun."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        kept, self._kept = self._kept, []
        try:
            for weight, value in zip(self._buffers, kept, strict=True):
                weight.stand_in = value
            for take, copy in waiting:
                take(copy)
        finally:
            for weight in self._buffers:
                weight.stand_in = None

    def pause(self, step: int) -> None:
        """At a call that follows no update: the values are those of the call before."""
        for schedule, take in self._takers:
            copy = schedule.skipped(step)
            if copy is not None:
                take(copy)

    def end(self) -> None:
        """At a call: says how many updates there were since the last one."""
        self.waiting, self._kept = [], []
        for schedule, _ in self._takers:
            schedule.made = 0 if schedule.sees_all else self._steps.made

    def begin(self) -> None:
        """After a call. One that was refused doesn't end the count."""
        schedule, _ = self._takers[-1]
        if not schedule.made:
            self._steps.made = 0
            if not schedule.sees_all:
                self._steps.most = schedule.overdue
