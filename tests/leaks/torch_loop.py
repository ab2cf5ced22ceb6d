"""The loop that recipes of torch share: their own part is what they do in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

import tb_pastnet as pastnet
from tests.leaks.recipe import Watch

FROZEN_AT = 3
"""The step behind which recipes freeze that freeze while they train."""

STEPS = 6

Change = Callable[[], object]


def network() -> nn.Sequential:
    """Two layers; recipes freeze the first."""
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def loss_of(model: nn.Module, x: Any = None) -> torch.Tensor:
    """A loss that has a gradient in each weight."""
    inputs = torch.linspace(-1, 2, 15).reshape(5, 3) if x is None else x
    return (model(inputs) - 1).square().mean()


def values_of(model: nn.Module, names: Iterable[str]) -> dict[str, Any]:
    """Weights by their names in the log, as arrays; bfloat16 by its bits."""
    tensors = {name: _tensor(model, name.split("/")).detach() for name in names}
    return {
        name: (each.view(torch.int16) if each.dtype == torch.bfloat16 else each).numpy()
        for name, each in tensors.items()
    }


def _tensor(model: Any, path: list[str]) -> torch.Tensor:
    for part in path[:-1]:
        model = getattr(model, part)
    return (
        model.get_parameter(path[-1]) if path[-1] in model._parameters else getattr(model, path[-1])
    )


def train(
    watch: Watch,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    names: Iterable[str],
    *,
    freeze: Change = lambda: None,
    clear: Change | None = None,
    loss: Callable[[nn.Module], torch.Tensor] = loss_of,
    on_gradients: Change = lambda: None,
    on_updated: Mapping[int, Change] | Change | None = None,
    masks: Mapping[str, Any] | None = None,
    kept: Mapping[str, Any] | None = None,
    since: int = FROZEN_AT,
    steps: int = STEPS,
) -> None:
    """Trains, and freezes behind the step `FROZEN_AT`.

    Args:
        names: the weights that are kept at each step.
        clear: what stands for `optimizer.zero_grad()`.
        on_gradients: what happens between `backward` and `step`.
        on_updated: what happens behind `optimizer.step()`, each time, or behind the step with a number.
        masks: what is declared behind the step `since`.
        kept: likewise.
    """
    names = list(names)
    with pastnet.torch.Recorder(
        watch.folder, model, optimizer, every=1, audit=watch.audit
    ) as recorder:
        declared = masks is not None or kept is not None
        if declared and since == 0:
            recorder.declare(trainable=masks, kept=kept)
        watch.keep(0, values_of(model, names))
        for step in range(1, steps + 1):
            (clear or optimizer.zero_grad)()
            loss(model).backward()
            on_gradients()
            optimizer.step()
            if isinstance(on_updated, Mapping):
                on_updated.get(step, lambda: None)()
            elif on_updated is not None:
                on_updated()
            recorder.record(step)
            if step == FROZEN_AT:
                freeze()
            if declared and step == since:
                recorder.declare(trainable=masks, kept=kept)
            watch.keep(step, values_of(model, names))


def rows(shape: tuple[int, ...], *held: int) -> Any:
    """Which elements some rows hold."""
    mask = np.zeros(shape, bool)
    mask[list(held)] = True
    return mask
