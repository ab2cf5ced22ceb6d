"""Recipes of torch that freeze or prune by gradients: declared with `trainable=` and `kept=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import prune

from tests.leaks.recipe import Recipe, Watch
from tests.leaks.torch_loop import FROZEN_AT, loss_of, network, rows, train

HELD = rows((4, 3), 1, 2)
"""Which elements of the first layer's kernel are meant to stay."""

ROWS = {"0/weight": HELD}
MASKS = {"0.weight": ~HELD}
FIRST = {"0/weight": None, "0/bias": None}
WHOLE = {"0.*": False}
NEXT = FROZEN_AT + 1
Optimizers = Callable[[Any], torch.optim.Optimizer]
SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW

PUT_BACK = "restore the values after each step"


def _hooked(make: Optimizers, since: int = 0) -> Callable[[Watch], None]:
    """A hook of the kernel that sets rows of its gradient to zero."""

    def program(watch: Watch) -> None:
        model = network()
        free = torch.from_numpy(~HELD).float()
        hook = lambda: model[0].weight.register_hook(lambda gradient: gradient * free)  # noqa: E731
        if since == 0:
            hook()
        train(watch, model, make(model.parameters()), ROWS, freeze=hook, masks=MASKS, since=since)

    return program


def _set_to_zero(make: Optimizers, clip: str = "", since: int = 0) -> Callable[[Watch], None]:
    """`weight.grad[rows] = 0`, before or behind `clip_grad_norm_`."""

    def program(watch: Watch) -> None:
        model, calls = network(), iter(range(1, 100))

        def change() -> None:
            if clip == "first":
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            if next(calls) > since:
                model[0].weight.grad[[1, 2]] = 0
            if clip == "last":
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        optimizer = make(model.parameters())
        train(watch, model, optimizer, ROWS, on_gradients=change, masks=MASKS, since=since)

    return program


def _put_back(*, behind: bool) -> Callable[[Watch], None]:
    """`torch.no_grad` copies of the values that are meant to stay, before or behind each step."""

    def program(watch: Watch) -> None:
        model = network()
        values = model[0].weight.detach().clone()

        @torch.no_grad()
        def put_back() -> None:
            model[0].weight[[1, 2]] = values[[1, 2]]

        place: dict[str, Any] = {"on_updated" if behind else "on_gradients": put_back}
        optimizer = ADAM(model.parameters())
        train(watch, model, optimizer, ROWS, masks=MASKS, since=0, **place)

    return program


OLD = rows((6, 3), 0, 1, 2, 3)
"""Rows of the tokens that a vocabulary had before."""


def _new_tokens(make: Optimizers) -> Callable[[Watch], None]:
    """Only the rows of new tokens are meant to learn."""

    def program(watch: Watch) -> None:
        torch.manual_seed(4)
        model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 2))

        def change() -> None:
            model[0].weight.grad[:4] = 0

        train(
            watch, model, make(model.parameters()), ["0/weight"], on_gradients=change,
            loss=lambda module: loss_of(module, torch.arange(6)), masks={"0.weight": ~OLD}, since=0,
        )  # fmt: skip

    return program


def _padding(make: Optimizers) -> Callable[[Watch], None]:
    """A row of its own values that `padding_idx` keeps from gradients."""

    def program(watch: Watch) -> None:
        torch.manual_seed(4)
        table = nn.Embedding.from_pretrained(torch.randn(6, 3), freeze=False, padding_idx=0)
        model = nn.Sequential(table, nn.Linear(3, 2))
        train(
            watch, model, make(model.parameters()), ["0/weight"], masks={"0.weight": ~PAD}, since=0,
            loss=lambda module: loss_of(module, torch.arange(6)),
        )  # fmt: skip

    return program


PAD = rows((6, 3), 0)


def _groups(schedule: Callable[[Any], Any] | None) -> Callable[[Watch], None]:
    """A group of its own with a learning rate of zero, which a schedule may set."""

    def program(watch: Watch) -> None:
        model = network()
        groups = [
            {"params": model[0].parameters(), "lr": 0.0},
            {"params": model[2].parameters()},
        ]
        optimizer = ADAMW(groups, lr=0.01, weight_decay=0.1)
        scheduler = None if schedule is None else schedule(optimizer)
        step = (lambda: None) if scheduler is None else scheduler.step
        train(watch, model, optimizer, FIRST, masks=WHOLE, since=0, on_updated=step)

    return program


def _one_cycle(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20)


def _detached(make: Optimizers, *, to_none: bool) -> Callable[[Watch], None]:
    """The loss no longer reaches the first layer: `model[0](x).detach()`, in mid-training."""

    def program(watch: Watch) -> None:
        model, calls = network(), iter(range(1, 100))
        optimizer = make(model.parameters())

        def loss(module: Any) -> torch.Tensor:
            hidden = module[0](torch.linspace(-1, 2, 15).reshape(5, 3))
            if next(calls) > FROZEN_AT:
                hidden = hidden.detach()
            return (module[2](module[1](hidden)) - 1).square().mean()

        clear = lambda: optimizer.zero_grad(set_to_none=to_none)  # noqa: E731
        train(watch, model, optimizer, FIRST, clear=clear, loss=loss, masks=WHOLE)

    return program


def _times_zero(watch: Watch) -> None:
    """A loss of the first layer with the weight 0 gives it a gradient of zeros."""
    model = network()
    optimizer = ADAMW(model.parameters(), weight_decay=0.1)

    def loss(module: Any) -> torch.Tensor:
        x = torch.linspace(-1, 2, 15).reshape(5, 3)
        hidden = module[0](x)
        main = (module[2](module[1](hidden.detach())) - 1).square().mean()
        return main + 0.0 * hidden.square().mean()

    train(watch, model, optimizer, ["0/weight"], loss=loss, masks={"0.weight": False}, since=0)


def _forgotten_bias(watch: Watch) -> None:
    model = network()
    for name, parameter in model.named_parameters():
        if name.startswith("0.") and "weight" in name:
            parameter.requires_grad_(False)
    train(watch, model, ADAM(model.parameters()), FIRST, masks=WHOLE, since=0)


def _thawed_by_all(watch: Watch) -> None:
    """Something else calls `requires_grad_()` of the whole model, as adapters do that were removed."""
    model = network()
    optimizer = SGD(model.parameters(), 0.1)
    model[0].requires_grad_(False)
    thaw = {FROZEN_AT: lambda: model.requires_grad_(True)}
    train(watch, model, optimizer, FIRST, masks=WHOLE, since=0, on_updated=thaw)


def _loaded(watch: Watch) -> None:
    """A checkpoint is loaded in mid-training, over rows that a hook keeps from gradients."""
    model = network()
    free = torch.from_numpy(~HELD).float()
    model[0].weight.register_hook(lambda gradient: gradient * free)
    other = {name: value + 1 for name, value in model.state_dict().items()}
    load = {5: lambda: model.load_state_dict(other)}
    train(watch, model, ADAM(model.parameters()), ROWS, masks=MASKS, since=0, on_updated=load)


ZEROS = {"0.weight": ~rows((4, 3), 1)}
PRUNED = {"0/weight": rows((4, 3), 1)}


def _removed(make: Optimizers) -> Callable[[Watch], None]:
    """`prune.remove` makes zeros of the mask, and training goes on without it."""

    def program(watch: Watch) -> None:
        model = network()
        prune.custom_from_mask(model[0], "weight", torch.from_numpy(ZEROS["0.weight"]))
        prune.remove(model[0], "weight")
        train(watch, model, make(model.parameters()), PRUNED, kept=ZEROS, since=0)

    return program


def _removed_while_training(watch: Watch) -> None:
    model = network()
    prune.custom_from_mask(model[0], "weight", torch.from_numpy(ZEROS["0.weight"]))
    remove = lambda: prune.remove(model[0], "weight")  # noqa: E731
    optimizer = ADAM([model[0].weight_orig, model[0].bias, *model[2].parameters()])
    train(watch, model, optimizer, PRUNED, freeze=remove, kept=ZEROS)


def _multiplied(*, always: bool) -> Callable[[Watch], None]:
    """`weight.data.mul_(mask)`, once or behind each step."""

    def program(watch: Watch) -> None:
        model = network()
        keep = torch.from_numpy(ZEROS["0.weight"]).float()

        def prune_now() -> None:
            model[0].weight.data.mul_(keep)

        prune_now()
        changes = prune_now if always else None
        train(
            watch,
            model,
            SGD(model.parameters(), 0.1),
            PRUNED,
            kept=ZEROS,
            since=0,
            on_updated=changes,
        )

    return program


def _of(name: str, program: Callable[[Watch], None], advice: str, **settings: Any) -> Recipe:
    settings.setdefault("stays", ROWS)
    return Recipe(name, "torch", program, advice=advice, **settings)


RECIPES = [
    _of("A hook that zeroes rows of a gradient, Adam, from the start", _hooked(ADAM), "the optimizer's averages of these weights stay zero"),
    _of("A hook that zeroes rows of a gradient, AdamW, from the start", _hooked(lambda p: ADAMW(p, weight_decay=0.1)), f"`weight_decay=0` for that weight, or {PUT_BACK}", moved_by="weight_decay", begins=1),
    _of("A hook that zeroes rows of a gradient, Adam, during training", _hooked(ADAM, FROZEN_AT), PUT_BACK, moved_by="momentum", begins=NEXT, since=FROZEN_AT),
    _of("`weight.grad[rows] = 0` during training, SGD with momentum", _set_to_zero(lambda p: SGD(p, 0.1, momentum=0.9), since=FROZEN_AT), PUT_BACK, moved_by="momentum", begins=NEXT, since=FROZEN_AT),
    _of("`weight.grad[rows] = 0`, SGD with weight decay", _set_to_zero(lambda p: SGD(p, 0.1, weight_decay=0.1)), f"`weight_decay=0` for that weight, or {PUT_BACK}", moved_by="weight_decay", begins=1),
    _of("`weight.grad[rows] = 0` before `clip_grad_norm_`, SGD", _set_to_zero(lambda p: SGD(p, 0.1), "last"), "only trained weights count in the norm"),
    _of("`weight.grad[rows] = 0` after `clip_grad_norm_`, SGD", _set_to_zero(lambda p: SGD(p, 0.1), "first"), "nothing moves, but the clipping norm includes these rows: zero them first"),
    _of("Values restored under `torch.no_grad()` after each step, Adam", _put_back(behind=True), "exact under every optimizer"),
    _of("Values restored before each step, Adam", _put_back(behind=False), PUT_BACK, moved_by="gradient", begins=1),
    _of("Rows of old tokens of an `Embedding` zeroed in `.grad`, Adam, from the start", _new_tokens(ADAM), "the optimizer's averages of these weights stay zero", stays={"0/weight": OLD}),
    _of("Rows of old tokens of an `Embedding` zeroed in `.grad`, AdamW", _new_tokens(lambda p: ADAMW(p, weight_decay=0.1)), "`weight_decay=0` for the embedding", stays={"0/weight": OLD}, moved_by="weight_decay", begins=1),
    _of("`padding_idx` of a loaded `Embedding`, Adam", _padding(ADAM), "its row gets no gradient", stays={"0/weight": PAD}),
    _of("`padding_idx` of a loaded `Embedding`, AdamW", _padding(lambda p: ADAMW(p, weight_decay=0.1)), "`weight_decay=0` for the embedding", stays={"0/weight": PAD}, moved_by="weight_decay", begins=1),
    _of("A group with `lr=0`, AdamW", _groups(None), "weight decay is multiplied by the learning rate", stays=FIRST),
    _of("A group with `lr=0` under `OneCycleLR`, which sets the rate of all groups", _groups(_one_cycle), "`max_lr=` by groups, or `requires_grad_(False)`", stays=FIRST, moved_by="gradient", begins=1),
    _of("`detach()` during training, `zero_grad(set_to_none=False)`, Adam", _detached(ADAM, to_none=False), "`zero_grad()` with its default", stays=FIRST, moved_by="momentum", begins=NEXT, since=FROZEN_AT),
    _of("`detach()` during training, `zero_grad()`, AdamW", _detached(ADAMW, to_none=True), "the optimizer skips a weight without a gradient", stays=FIRST, since=FROZEN_AT),
    _of("`0.0 * loss` of frozen weights, AdamW", _times_zero, "remove the term", stays={"0/weight": None}, moved_by="weight_decay", begins=1),
    _of("Frozen by a name that misses the bias, Adam", _forgotten_bias, "freeze modules, not names", stays=FIRST, moved_by="gradient", begins=1),
    _of("`model.requires_grad_(True)` by other code, during training", _thawed_by_all, "leave frozen weights out of the optimizer", stays=FIRST, moved_by="gradient", begins=NEXT),
    _of("`load_state_dict` over rows that a hook freezes", _loaded, "load first, then freeze", moved_by="loaded", begins=5),
    _of("`prune.remove`, then more training with SGD", _removed(lambda p: SGD(p, 0.1)), "train with the mask; remove it at the end", stays=PRUNED, moved_by="gradient", begins=1),
    _of("`prune.remove` during training, Adam", _removed_while_training, "train with the mask; remove it at the end", stays=PRUNED, moved_by="gradient", begins=NEXT, since=FROZEN_AT),
    _of("`weight.data.mul_(mask)` once", _multiplied(always=False), "multiply after each step, or use `torch.nn.utils.prune`", stays=PRUNED, moved_by="gradient", begins=1),
    _of("`weight.data.mul_(mask)` after each step", _multiplied(always=True), "exact", stays=PRUNED, pruned=True),
]  # fmt: skip
