"""Trainings in which something that is meant to learn stands still."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import tb_pastnet as pastnet
from tests.commands import command
from tests.leaks.torch_loop import loss_of, network, values_of

STEPS = 22
"""More than the 20 records for which a channel has to stand still."""

FIRST = ("0/weight", "0/bias")
Made = tuple[nn.Module, torch.optim.Optimizer]


@dataclass(frozen=True)
class Still:
    """A mistake.

    Attributes:
        name: what is done, in the words of the table.
        make: the module and its optimizer.
        advice: what to do instead.
        noted: the log also names what the optimizer was never given.
        finding: the kind of finding that tells it.
        on_gradients: what happens between `backward` and `step`.
        loss: of the module.
    """

    name: str
    make: Callable[[], Made]
    advice: str
    noted: bool = False
    finding: str = "stalled"
    on_gradients: Callable[[nn.Module], object] = lambda model: None
    loss: Callable[[Any], torch.Tensor] = loss_of

    def check(self, folder: Path) -> None:
        """Trains, and compares what stood still, by NumPy, with what the log says."""
        model, optimizer = self.make()
        begun = copy.deepcopy(values_of(model, [*FIRST, "2/weight"]))
        with pastnet.torch.Recorder(folder, model, optimizer, every=1) as recorder:
            for step in range(1, STEPS + 1):
                optimizer.zero_grad()
                self.loss(model).backward()
                self.on_gradients(model)
                optimizer.step()
                recorder.record(step)
        ended = values_of(model, begun)
        still = {name for name in begun if np.array_equal(begun[name], ended[name])}
        assert still >= {*FIRST}
        (run,) = pastnet.read(folder).runs.values()
        named = {
            layer for each in run.findings() if each.kind == self.finding for layer in each.layers
        }
        assert named == {name.partition("/")[0] for name in still}
        missing = [note for note in run.notes if note.startswith("No optimizer trains 0/weight")]
        assert len(missing) == self.noted
        assert list(run.violations) == []
        for name in begun:
            assert command("verify", folder, "--trains", name).code == (name in still)


def _sgd(parameters: Any, rate: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, rate)


def _plain() -> Made:
    model = network()
    return model, _sgd(model.parameters())


def _never_given() -> Made:
    model = network()
    return model, _sgd(model[2].parameters())


def _created_later() -> Made:
    model = network()
    optimizer = _sgd(model.parameters())
    model[0] = nn.Linear(3, 4)
    return model, optimizer


def _copies() -> Made:
    model = network()
    copied = [nn.Parameter(each.data.clone()) for each in model[0].parameters()]
    return model, _sgd([*copied, *model[2].parameters()])


def _replaced() -> Made:
    """As a device or a dtype does that makes new parameters."""
    model = network()
    optimizer = _sgd(model.parameters())
    for name, parameter in list(model[0].named_parameters()):
        setattr(model[0], name, nn.Parameter(parameter.detach().double().float()))
    return model, optimizer


def _dead() -> Made:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    return model, _sgd(model.parameters())


def _without_rate() -> Made:
    model = network()
    return model, _sgd(
        [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}]
    )


def _bfloat16() -> Made:
    model = network().to(torch.bfloat16)
    with torch.no_grad():
        model[0].weight.fill_(1.0)
        model[0].bias.fill_(1.0)
    groups = [{"params": model[0].parameters(), "lr": 1e-5}, {"params": model[2].parameters()}]
    return model, torch.optim.SGD(groups, lr=0.5)


def _loaded_frozen() -> Made:
    model = network()
    teacher = network()[0].requires_grad_(False)
    model[0] = copy.deepcopy(teacher)
    return model, _sgd(model.parameters())


def _detached(model: Any) -> torch.Tensor:
    hidden = model[0](torch.linspace(-1, 2, 15).reshape(5, 3)).detach()
    return (model[2](model[1](hidden)) - 1).square().mean()


def _in_bfloat16(model: Any) -> torch.Tensor:
    return loss_of(model, torch.linspace(-1, 2, 15).reshape(5, 3).bfloat16())


def _clip(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model[0].parameters(), 0.0)  # type: ignore[index]


RECIPES = [
    Still("Weights that aren't in the optimizer", _never_given, "add them to a group", noted=True),
    Still("A layer created after the optimizer", _created_later, "create the optimizer last", noted=True),
    Still("An optimizer with copies of `.data`", _copies, "pass the parameters themselves", noted=True),
    Still("Parameters replaced after the optimizer was created", _replaced, "create the optimizer last", noted=True),
    Still("`detach()` in `forward`", _plain, "remove it", loss=_detached),
    Still("A ReLU that is never positive", _dead, "use a bias nearer to zero, or a leaky ReLU"),
    Still("A group with `lr=0`", _without_rate, "set its learning rate"),
    Still("bfloat16 updates that are too small to change a weight", _bfloat16, "use float32 weights, or stochastic rounding", loss=_in_bfloat16),
    Still("Gradients clipped to a norm of 0", _plain, "use a larger norm", on_gradients=_clip),
    Still("`p.grad = None` after `backward()`", _plain, "call `zero_grad` before `backward`", on_gradients=lambda model: model[0].zero_grad()),
    Still("A layer copied from a frozen one", _loaded_frozen, "`requires_grad_(True)`", finding="frozen"),
]  # fmt: skip
