"""A module that a trainer of PyTorch trains: what Lightning's and Hugging Face's have in common."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import torch

from tests.conformance.adaptors import torch as own
from tests.conformance.room import Arrays, Masks

STEPS = [torch.zeros(1)] * 4096
"""What the trainer trains with: the loss doesn't depend on it."""


def loss_of(module: torch.nn.Module) -> torch.Tensor:
    """Half of the squares: the gradient of each weight is the weight."""
    squares = [each.float().square().sum() for each in module.parameters()]
    return sum(squares, torch.zeros(())) / 2


class Adaptor(own.Adaptor):
    """Where the suite sets weights, the callback is called by hand; `train` is the trainer's.

    An adaptor has `callback_of`, `started`, `ended`, `recorded_at` and `fit`. The first call of
    `train` is one of the trainer, within the log that is already open; updates after it are ours.
    """

    fitted = False

    def begin(self, trainable: Masks, kept: Masks) -> Any:
        self.callback = self.callback_of(trainable=trainable, kept=kept, **self.settings)
        self.started(self.start or 0)
        return self.callback.recorder

    def record(self, step: Any) -> None:
        if self.recorder is not None:
            self.recorded_at(step)

    def train(self, steps: int) -> list[Arrays]:
        if self.fitted or self.several or self.updates:
            return super().train(steps)
        self.fitted, self.seen = True, []
        self.fit(steps)
        self.updates += steps
        return self.seen

    def block(self) -> Any:
        return closing(self)  # the recorder is the callback's

    def schedule(self, optimizer: Any) -> Any:
        """The rates of the suite, set by the framework's own scheduler."""
        rates = [lambda done, layer=layer: self.rate_at(layer, done + 1) for layer in self.layers]
        return torch.optim.lr_scheduler.LambdaLR(optimizer, rates)

    def rate_at(self, layer: str, update: int) -> float:
        before, self.updates = self.updates, update
        rate = self.rate(f"{layer}/")
        self.updates = before
        return rate

    def close(self) -> None:
        if self.recorder is not None and not self.closed:
            self.ended()
        self.closed = True
