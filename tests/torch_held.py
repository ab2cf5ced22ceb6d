"""Trainings of torch with held weights: by `pastnet.torch.Masks`, and by the rule itself.

The rule: the stock optimizer, gradients of held elements set to zero before clipping, and held
values written back after each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tb_pastnet as pastnet

KEY = "0.weight"
STEPS = 8

_OWN: dict[str, dict[str, Any]] = {
    "ASGD": {},
    "Adadelta": {},
    "Adafactor": {},
    "Adagrad": {},
    "Adam": {},
    "AdamW": {},
    "Adamax": {},
    "LBFGS": {"max_iter": 4, "history_size": 5},
    "Muon": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9},
    "Rprop": {},
    "SGD": {"momentum": 0.9, "nesterov": True},
    "SparseAdam": {},
}
_VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "decay": {"weight_decay": 0.1},
    "foreach": {"foreach": True},
    "fused": {"fused": True, "weight_decay": 0.1},
    "amsgrad": {"amsgrad": True},
    "maximize": {"maximize": True},
}
_UNLIKE = {  # what an optimizer of torch doesn't have
    "decay": ("LBFGS", "Rprop", "SparseAdam"),
    "foreach": ("LBFGS", "Muon", "SparseAdam", "Adafactor"),
    "maximize": ("LBFGS", "Muon"),
}
_ONLY = {"fused": ("Adagrad", "Adam", "AdamW", "SGD"), "amsgrad": ("Adam", "AdamW")}
MODES = (
    "plain",
    "accumulated",
    "clip_norm",
    "clip_value",
    "scaled",
    "in_backward",
    "checkpointed",
    "compiled",
    "gradients_kept",
)


def optimizers() -> Iterator[tuple[str, str]]:
    """The optimizers of torch, and their options as far as each has them."""
    for name in _OWN:
        for variant in _VARIANTS:
            if name in _ONLY.get(variant, (name,)) and name not in _UNLIKE.get(variant, ()):
                yield name, variant


def cases() -> Iterator[tuple[str, str, str]]:
    """Optimizer, option and the way of training."""
    for name, variant in optimizers():
        for mode in MODES:
            closure = name == "LBFGS" and mode in ("scaled", "in_backward")
            sparse = name == "SparseAdam" and mode in (
                "clip_norm",
                "clip_value",
                "scaled",
                "compiled",
            )
            muon = name == "Muon" and mode == "in_backward"
            if not (closure or sparse or muon):
                yield name, variant, mode


@dataclass
class Held:
    """Which elements of a weight are frozen and pruned, and at which values."""

    kept: torch.Tensor
    trainable: torch.Tensor
    values: torch.Tensor

    @property
    def through(self) -> torch.Tensor:
        """The elements that train."""
        return self.kept & self.trainable


@dataclass
class Training:
    """A network, its optimizers, and what holds its first weight."""

    name: str
    variant: str
    mode: str
    ours: bool
    masks: Any = None
    optimizers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        sparse = self.name == "SparseAdam"
        first: Any = nn.Embedding(17, 9, sparse=True) if sparse else nn.Linear(9, 17)
        head = nn.Linear(9, 1) if sparse else nn.Linear(17, 1)
        self.module = nn.Sequential(first, nn.Tanh(), head)
        self.random = torch.Generator().manual_seed(1)
        self.held = hold(first.weight)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0) if self.mode == "scaled" else None
        self._make_optimizers()
        if self.ours:
            self.masks = pastnet.torch.Masks(self.module, *self.optimizers)
            self.masks.prune(KEY, kept=self.held.kept)
            self.masks.freeze(KEY, trainable=self.held.trainable)
        else:
            self.restore()
        self.forward = torch.compile(self.module, backend="eager")
        if self.scaler is not None:
            # Infinite where no update may look.
            self.weight.register_hook(lambda g: torch.where(self.held.through, g, torch.inf))

    @property
    def weight(self) -> Any:
        """The weight that is held in part."""
        return self.module[0].weight

    def _make_optimizers(self) -> None:
        kind = getattr(torch.optim, self.name)
        options = {"lr": 0.1 if self.name == "LBFGS" else 1e-2, **_OWN[self.name]}
        options |= _VARIANTS[self.variant]
        every = [*self.module.parameters()]
        if self.name == "Muon":
            every = [each for each in every if each.ndim == 2]
        if self.name == "SparseAdam":
            every = [self.weight]
        if self.mode == "in_backward":
            self.optimizers = [kind([each], **options) for each in every]
            for each, optimizer in zip(every, self.optimizers, strict=True):
                each.register_post_accumulate_grad_hook(self._step_in_backward(optimizer))
        else:
            self.optimizers = [kind(every, **options)]

    def _step_in_backward(self, optimizer: Any) -> Any:
        def step(parameter: Any) -> None:
            self.zero()
            optimizer.step()
            self.restore()
            optimizer.zero_grad()

        return step

    def zero(self) -> None:
        """The rule for gradients, if nothing else follows it."""
        gradient = self.weight.grad
        if self.ours or gradient is None:
            return
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows = gradient.indices()[0]
            own = torch.where(self.held.through[rows], gradient.values(), 0)
            places, shape = gradient.indices(), gradient.shape
            made = torch.sparse_coo_tensor(places, own, shape, check_invariants=False)
            self.weight.grad = made
        else:
            self.weight.grad = torch.where(self.held.through, gradient, 0)

    def restore(self) -> None:
        """The rule for values, if nothing else follows it."""
        if not self.ours:
            with torch.no_grad():
                now = torch.where(self.held.through, self.weight, self.held.values)
                self.weight.copy_(now)

    def loss(self) -> Any:
        """Of the next batch."""
        if self.name == "SparseAdam":
            batch: Any = torch.randint(0, 17, (8,), generator=self.random)
        else:
            batch = torch.randn(32, 9, generator=self.random)
        if self.mode == "checkpointed":
            return (checkpoint(self.module, batch, use_reentrant=False) - 1).square().mean()
        forward = self.forward if self.mode == "compiled" else self.module
        return (forward(batch) - 1).square().mean()

    def backward(self) -> Any:
        """Gradients of a step, as an optimizer gets them."""
        for _ in range(2 if self.mode == "accumulated" else 1):
            loss = self.loss()
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self.zero()
        if self.mode == "clip_norm":
            nn.utils.clip_grad_norm_(self.module.parameters(), 0.05)
        if self.mode == "clip_value":
            nn.utils.clip_grad_value_(self.module.parameters(), 0.01)
        return loss

    def step(self) -> None:
        """One step of the training."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=self.mode != "gradients_kept")
        self.module[2].zero_grad()
        if self.name == "LBFGS":
            (optimizer,) = self.optimizers
            optimizer.step(self._closure)
        else:
            self.backward()
            if self.mode != "in_backward":
                self._step()
        self.restore()

    def _step(self) -> None:
        for optimizer in self.optimizers:
            if self.scaler is None:
                optimizer.step()
            else:
                self.scaler.step(optimizer)
                self.scaler.update()

    def _closure(self) -> Any:
        self.optimizers[0].zero_grad()
        return self.backward()


def hold(weight: Any) -> Held:
    """Three tenths each are frozen and pruned, some of the frozen at a negative zero."""
    rng = np.random.default_rng(5)
    drawn = torch.from_numpy(rng.random(tuple(weight.shape)))
    kept, trainable = drawn >= 0.3, (drawn < 0.3) | (drawn > 0.6)
    with torch.no_grad():
        weight.view(-1)[::7] = -0.0
        values = torch.where(kept, weight, 0).clone()
    return Held(kept, trainable, values)


def bits(tensor: Any) -> Any:
    """The bits of float32 numbers."""
    return tensor.detach().contiguous().view(torch.int32)
