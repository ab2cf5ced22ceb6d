"""Recipes of torch that freeze by `requires_grad_(False)`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

import tb_pastnet as pastnet
from tests.leaks.recipe import Recipe, Watch
from tests.leaks.torch_loop import FROZEN_AT, STEPS, loss_of, network, rows, train

FIRST = {"0/weight": None, "0/bias": None}
Optimizers = Callable[[Any], torch.optim.Optimizer]

NONE = "`optimizer.zero_grad()` with its default, `set_to_none=True`"
ELSEWHERE = "freeze afterwards, or leave frozen weights out"


def _frozen(make: Optimizers, *, to_none: bool) -> Callable[[Watch], None]:
    """Freezes the first layer in mid-training, and goes on with zeros for gradients, or none."""

    def program(watch: Watch) -> None:
        model = network()
        optimizer = make(model.parameters())
        clear = lambda: optimizer.zero_grad(set_to_none=to_none)  # noqa: E731
        train(
            watch,
            model,
            optimizer,
            FIRST,
            clear=clear,
            freeze=lambda: model[0].requires_grad_(False),
        )

    return program


def _muon(watch: Watch) -> None:
    model = network()
    optimizer = torch.optim.Muon([model[0].weight, model[2].weight], lr=0.02, weight_decay=0.0)
    names = ["0/weight"]
    clear = lambda: optimizer.zero_grad(set_to_none=False)  # noqa: E731
    train(
        watch, model, optimizer, names, clear=clear, freeze=lambda: model[0].requires_grad_(False)
    )


def _only_trained_cleared(watch: Watch) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def clear() -> None:
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.grad = None

    train(
        watch, model, optimizer, FIRST, clear=clear, freeze=lambda: model[0].requires_grad_(False)
    )


def _between_backward_and_step(watch: Watch) -> None:
    model, calls = network(), iter(range(1, 100))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def freeze() -> None:
        if next(calls) == FROZEN_AT + 1:
            model[0].requires_grad_(False)

    train(watch, model, optimizer, FIRST, on_gradients=freeze)


def _filtered(watch: Watch) -> None:
    model = network()
    model[0].requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, weight_decay=0.5)
    clear = lambda: optimizer.zero_grad(set_to_none=False)  # noqa: E731
    train(watch, model, optimizer, FIRST, clear=clear)


def _beside(change: Callable[[nn.Module], object], at: int = 5) -> Callable[[Watch], None]:
    """A frozen layer, and something that writes weights behind one of the updates."""

    def program(watch: Watch) -> None:
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        freeze = lambda: model[0].requires_grad_(False)  # noqa: E731
        train(watch, model, optimizer, FIRST, freeze=freeze, on_updated={at: lambda: change(model)})

    return program


def _load(model: nn.Module) -> None:
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})


def _load_the_same(model: nn.Module) -> None:
    model.load_state_dict(copy.deepcopy(model.state_dict()))


def _write_data(model: Any) -> None:
    model[0].weight.data.add_(0.1)
    model[0].bias.data.add_(0.1)


def _average(since: int) -> Callable[[Watch], None]:
    """A moving average of all weights that is written back at the step 5."""

    def program(watch: Watch) -> None:
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        smooth = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        )
        if since == 0:
            model[0].requires_grad_(False)
        calls = iter(range(1, 100))

        def update() -> None:
            smooth.update_parameters(model)
            if next(calls) == 5:
                model.load_state_dict(smooth.module.state_dict())

        freeze = lambda: model[0].requires_grad_(False)  # noqa: E731
        train(watch, model, optimizer, FIRST, freeze=freeze, on_updated=update)

    return program


def _decay_by_hand(watch: Watch) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[0].requires_grad_(False)

    @torch.no_grad()
    def decay() -> None:
        for parameter in model.parameters():
            parameter.mul_(1 - 0.01)

    train(watch, model, optimizer, FIRST, on_updated=decay)


class _Norm(nn.Module):
    """A normalization between two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body, self.norm, self.head = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(torch.tanh(self.norm(self.body(x))))


NORM = {"norm/weight": None, "norm/bias": None}


def _normalized(*, evaluated: bool) -> Callable[[Watch], None]:
    def program(watch: Watch) -> None:
        model = _Norm()
        model.norm.requires_grad_(False).train(not evaluated)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        statistics = ["norm/running_mean", "norm/running_var"] if evaluated else []
        train(watch, model, optimizer, [*NORM, *statistics])

    return program


class _Tied(nn.Module):
    """An embedding, and a head of the same weights."""

    def __init__(self, *, by_data: bool) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        if by_data:
            self.head.weight.data = self.embed.weight.data
        else:
            self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.head(self.embed(tokens) * self.scale)


def _tied(*, by_data: bool) -> Callable[[Watch], None]:
    def program(watch: Watch) -> None:
        model = _Tied(by_data=by_data)
        model.embed.requires_grad_(False)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loss = lambda module: loss_of(module, torch.arange(5))  # noqa: E731
        train(watch, model, optimizer, ["embed/weight"], loss=loss)

    return program


def _max_norm(watch: Watch) -> None:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Embedding(5, 3, max_norm=0.5), nn.Linear(3, 2))
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters())
    loss = lambda module: loss_of(module, torch.arange(5))  # noqa: E731
    train(watch, model, optimizer, ["0/weight"], loss=loss)


PARTS = {f"0/parametrizations/weight/original{part}": None for part in (0, 1)} | {"0/bias": None}


def _weight_norm(*, to_none: bool) -> Callable[[Watch], None]:
    def program(watch: Watch) -> None:
        model = network()
        parametrizations.weight_norm(model[0])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        clear = lambda: optimizer.zero_grad(set_to_none=to_none)  # noqa: E731
        freeze = lambda: model[0].requires_grad_(False)  # noqa: E731
        train(watch, model, optimizer, PARTS, clear=clear, freeze=freeze)

    return program


def _spectral_norm(watch: Watch) -> None:
    model = network()
    parametrizations.spectral_norm(model[0])
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    train(watch, model, optimizer, SPECTRAL)


SPECTRAL = {"0/parametrizations/weight/original": None}


def _pruned(watch: Watch) -> None:
    model = network()
    prune.custom_from_mask(model[0], "weight", torch.from_numpy(~rows((4, 3), 1)))
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.5)
    train(watch, model, optimizer, ["0/weight"])


def _adversaries(watch: Watch) -> None:
    """Each of two networks is frozen while the other one makes its step."""
    model = nn.ModuleDict({"generator": network(), "discriminator": network()})
    optimizers = {name: torch.optim.Adam(part.parameters(), 0.01) for name, part in model.items()}
    with pastnet.torch.Recorder(
        watch.folder, model, [*optimizers.values()], every=1, audit=watch.audit
    ) as recorder:
        for step in range(1, STEPS + 1):
            for name in ("discriminator", "generator"):
                for other, part in model.items():
                    part.requires_grad_(other == name)
                optimizers[name].zero_grad()
                (loss_of(model["discriminator"]) + loss_of(model["generator"])).backward()
                optimizers[name].step()
            recorder.record(step)


def _unfrozen(watch: Watch) -> None:
    """A layer is unfrozen, and only then given to the optimizer."""
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(model[2].parameters(), 0.01)

    def unfreeze() -> None:
        model[0].requires_grad_(True)
        optimizer.add_param_group({"params": list(model[0].parameters())})

    train(watch, model, optimizer, [], freeze=unfreeze)


SGD, ADAM = torch.optim.SGD, torch.optim.Adam
NEXT = FROZEN_AT + 1


def _of(name: str, program: Callable[[Watch], None], advice: str, **settings: Any) -> Recipe:
    settings.setdefault("stays", FIRST)
    return Recipe(name, "torch", program, advice=advice, **settings)


def _zeroed(name: str, make: Optimizers, moved_by: str) -> Recipe:
    text = f"`requires_grad_(False)` during training, `zero_grad(set_to_none=False)`: {name}"
    return _of(
        text, _frozen(make, to_none=False), NONE, moved_by=moved_by, begins=NEXT, since=FROZEN_AT
    )


RECIPES = [
    _zeroed("SGD with momentum", lambda p: SGD(p, 0.1, momentum=0.9), "momentum"),
    _zeroed("SGD with weight decay", lambda p: SGD(p, 0.1, weight_decay=0.1), "weight_decay"),
    _zeroed("Adam", ADAM, "momentum"),
    _zeroed("AdamW", torch.optim.AdamW, "momentum"),
    _zeroed("NAdam", torch.optim.NAdam, "momentum"),
    _of(
        "`requires_grad_(False)` during training, `zero_grad(set_to_none=False)`: Muon",
        _muon, NONE, stays={"0/weight": None}, moved_by="momentum", begins=NEXT, since=FROZEN_AT,
    ),
    _of(
        "`requires_grad_(False)` during training, `zero_grad()`: SGD with momentum and weight decay",
        _frozen(lambda p: SGD(p, 0.1, momentum=0.9, weight_decay=0.1), to_none=True),
        "the optimizer skips a weight without a gradient", since=FROZEN_AT,
    ),
    _of(
        "`requires_grad_(False)` during training, `zero_grad()`: AdamW",
        _frozen(lambda p: torch.optim.AdamW(p, weight_decay=0.5), to_none=True),
        "the optimizer skips a weight without a gradient", since=FROZEN_AT,
    ),
    _of(
        "`p.grad = None` only where `p.requires_grad`, then frozen", _only_trained_cleared,
        NONE, moved_by="stale_gradient", begins=NEXT, since=FROZEN_AT,
    ),
    _of(
        "Frozen between `backward()` and `step()`", _between_backward_and_step,
        "freeze before `backward()`", moved_by="stale_gradient", begins=NEXT, since=FROZEN_AT,
    ),
    _of(
        "An optimizer with only the parameters that have `requires_grad`", _filtered,
        "the weight isn't in the optimizer",
    ),
    _of(
        "`load_state_dict` of another checkpoint, during training", _beside(_load),
        ELSEWHERE, moved_by="loaded", begins=5, since=FROZEN_AT,
    ),
    _of(
        "`load_state_dict` of the same values", _beside(_load_the_same),
        "no bit changes", since=FROZEN_AT,
    ),
    _of(
        "Values written through `.data`", _beside(_write_data),
        ELSEWHERE, moved_by="written", begins=5, since=FROZEN_AT,
    ),
    _of(
        "`swa_utils.AveragedModel`, an EMA from before the freeze, copied back", _average(FROZEN_AT),
        "copy back only trained weights", moved_by="loaded", begins=5, since=FROZEN_AT,
    ),
    _of(
        "`swa_utils.AveragedModel`, an EMA of weights frozen from the start, copied back", _average(0),
        "the average of equal values is the same value",
    ),
    _of(
        "Weight decay by hand over `model.parameters()`", _decay_by_hand,
        "apply it only where `requires_grad`", moved_by="loaded", begins=1,
    ),
    _of(
        "A BatchNorm frozen, and in `eval()`", _normalized(evaluated=True),
        "its statistics don't change either",
        stays={**NORM, "norm/running_mean": None, "norm/running_var": None},
    ),
    _of(
        "A BatchNorm frozen, and in `train()`", _normalized(evaluated=False),
        "its statistics change: they are recorded, but never frozen; call `eval()`", stays=NORM,
    ),
    _of(
        "Tied weights, one `Parameter`, frozen in one place", _tied(by_data=False),
        "it is one tensor, so it is frozen in both places", stays={"embed/weight": None},
    ),
    _of(
        "Tied weights by `head.weight.data = embed.weight.data`, frozen in one place",
        _tied(by_data=True), "tie the `Parameter` itself", stays={"embed/weight": None},
        moved_by="written", begins=1,
    ),
    _of(
        "A frozen `Embedding(max_norm=…)`: `forward` scales its rows", _max_norm,
        "freeze without `max_norm`", stays={"0/weight": None}, moved_by="loaded", begins=1,
    ),
    _of(
        "A `weight_norm` layer, frozen, `zero_grad(set_to_none=False)`", _weight_norm(to_none=False),
        NONE, stays=PARTS, moved_by="momentum", begins=NEXT, since=FROZEN_AT,
    ),
    _of(
        "A `weight_norm` layer, frozen, `zero_grad()`", _weight_norm(to_none=True),
        "the optimizer skips a weight without a gradient", stays=PARTS, since=FROZEN_AT,
    ),
    _of(
        "A `spectral_norm` layer, frozen", _spectral_norm,
        "its weight doesn't change; in `train()`, each batch updates the estimate of its norm",
        stays=SPECTRAL,
    ),
    _of(
        "`prune.custom_from_mask` under AdamW", _pruned,
        "`weight_orig` decays, but the layer computes with zeros",
        stays={"0/weight": rows((4, 3), 1)}, pruned=True,
    ),
    _of(
        "A discriminator frozen during the generator's step", _adversaries,
        "each is frozen only in the other's step", stays={},
    ),
    _of(
        "Gradual unfreezing: `requires_grad_(True)` and `add_param_group`", _unfrozen,
        "unfrozen weights may change", stays={},
    ),
]  # fmt: skip
