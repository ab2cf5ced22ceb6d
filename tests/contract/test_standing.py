"""Why weights are idle, and what only looks like it: small trainings in PyTorch.

The causes in the tables are known from how each training is written. A layer that isn't named in
one must not be in any finding of kind stalled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
nn, optim = torch.nn, torch.optim

STEPS = 44
Step = Callable[[int], None]
Training = tuple[Any, Any, Step]
"""A module, its optimizers, and a function that makes a step, numbered from 1."""


def net(**layers: Any) -> Any:
    return nn.ModuleDict(layers or {"a": nn.Linear(4, 8), "b": nn.Linear(8, 3)})


def loop(
    module: Any, optimizers: Any, loss: Callable[[int], Any], after: Step = lambda _: None
) -> Training:
    """The usual loop: gradients are None where no loss reaches."""
    each = optimizers if isinstance(optimizers, list) else [optimizers]

    def step(number: int) -> None:
        for optimizer in each:
            optimizer.zero_grad()
        loss(number).backward()
        for optimizer in each:
            optimizer.step()
        after(number)

    return module, optimizers, step


def inputs(number: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(16, 4, generator=generator).to(dtype)


def chain(module: Any) -> Callable[[int], Any]:
    return lambda number: (module["b"](torch.tanh(module["a"](inputs(number)))) - 1).pow(2).mean()


def no_gradient(make: Any = lambda module: optim.SGD(module.parameters(), 0.1)) -> Training:
    module = net(a=nn.Linear(4, 8), b=nn.Linear(8, 3), aside=nn.Linear(8, 3))
    return loop(module, make(module), chain(module))


def detached(number_of: str = "a") -> Training:
    module = net()
    head = module["b"]
    return loop(
        module,
        optim.Adam(module.parameters(), 1e-2),
        lambda number: head(module["a"](inputs(number)).detach()).pow(2).mean(),
    )


def under_no_grad() -> Training:
    module = net()

    def loss(number: int) -> Any:
        with torch.no_grad():
            hidden = module["a"](inputs(number))
        return module["b"](hidden).pow(2).mean()

    return loop(module, optim.AdamW(module.parameters(), 1e-2), loss)


def checkpointed() -> Training:
    """A reentrant checkpoint whose inputs need no gradient gives its weights none."""
    from torch.utils.checkpoint import checkpoint

    module = net()

    def loss(number: int) -> Any:
        with warnings.catch_warnings(action="ignore"):
            hidden = checkpoint(module["a"], inputs(number), use_reentrant=True)
        return module["b"](hidden).sum()

    return loop(module, optim.SGD(module.parameters(), 0.01), loss)


def zero_gradient(make: Any, *, to_none: bool = True) -> Training:
    """A loss that is left out of the total: with a factor of 0."""
    module = net(a=nn.Linear(4, 8), b=nn.Linear(8, 3), aside=nn.Linear(8, 3))
    optimizer = make(module)

    def step(number: int) -> None:
        optimizer.zero_grad(set_to_none=to_none)
        hidden = torch.tanh(module["a"](inputs(number)))
        ((module["b"](hidden) - 1).pow(2).mean() + 0 * module["aside"](hidden).sum()).backward()
        optimizer.step()

    return module, optimizer, step


def dead_units() -> Training:
    module = net()
    with torch.no_grad():
        module["a"].bias -= 100.0
    return loop(
        module,
        optim.SGD(module.parameters(), 0.1),
        lambda number: (module["b"](torch.relu(module["a"](inputs(number)))) - 1).pow(2).mean(),
    )


def not_given(make: Any = lambda own: optim.Adam(own, 1e-2)) -> Training:
    module = net()
    return loop(module, make(module["b"].parameters()), chain(module))


def replaced() -> Training:
    """Parameters that were replaced after the optimizer was made."""
    module = net()
    optimizer = optim.SGD(module.parameters(), 0.1)
    module["a"].weight = nn.Parameter(module["a"].weight.detach().clone())
    return loop(module, optimizer, chain(module))


def loss_weights() -> Training:
    """Learnable weights of losses that never reached the optimizer."""
    module = net()
    module["auto"] = nn.Linear(1, 1)
    own = [*module["a"].parameters(), *module["b"].parameters()]
    plain = chain(module)
    total = lambda number: plain(number) * module["auto"](torch.ones(1)).sum()  # noqa: E731
    return loop(module, optim.SGD(own, 0.1), total)


def rates(first: float, second: float) -> Training:
    module = net()
    groups = [{"params": module[key].parameters(), "lr": rate}
              for key, rate in (("a", first), ("b", second))]  # fmt: skip
    return loop(module, optim.SGD(groups), chain(module))


def several_rates() -> Training:
    module = net()
    each = [optim.SGD(module["a"].parameters(), 0.0), optim.Adam(module["b"].parameters(), 1e-2)]
    return loop(module, each, chain(module))


def in_16_bits(rate: float, make: Any, *, dtype: Any = torch.bfloat16) -> Training:
    """A body of 16 bits at a rate too small for it, and a head of 32."""
    torch.manual_seed(0)
    module = net(a=nn.Linear(64, 64).to(dtype), b=nn.Linear(64, 3))

    def loss(number: int) -> Any:
        hidden = torch.tanh(module["a"](inputs(number, dtype).repeat(1, 16)))
        return (module["b"](hidden.float()) - 1).pow(2).mean()

    return loop(module, [make(module["a"].parameters(), lr=rate),
                         optim.SGD(module["b"].parameters(), 0.1)], loss)  # fmt: skip


def restored() -> Training:
    module = net()
    saved = {name: value.clone() for name, value in module["a"].state_dict().items()}
    after = lambda _: module["a"].load_state_dict(saved)  # noqa: E731
    return loop(module, optim.Adam(module.parameters(), 1e-2), chain(module), after)


def skipped() -> Training:
    """Of two optimizers one never steps: its gradients always overflow."""
    module = net()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    first, second = (optim.SGD(module[key].parameters(), 0.1) for key in "ab")

    def step(number: int) -> None:
        first.zero_grad()
        second.zero_grad()
        scaler.scale((module["a"](inputs(number)) * float("inf")).sum()).backward()
        (module["b"](inputs(number).repeat(1, 2)) - 1).pow(2).mean().backward()
        scaler.step(first)
        scaler.update()
        second.step()

    return module, [first, second], step


def adamw(module: Any) -> Any:
    return optim.AdamW(module.parameters(), 1e-3)


def sgd(module: Any) -> Any:
    return optim.SGD(module.parameters(), 0.05)


def decaying(momentum: float) -> Any:
    return lambda module: optim.SGD(module.parameters(), 0.05, momentum=momentum, weight_decay=1e-3)


STILL: dict[str, tuple[Callable[[], Training], dict[str, str]]] = {
    "no gradient": (no_gradient, {"aside": "no_gradient"}),
    "no gradient, AdamW": (lambda: no_gradient(adamw), {"aside": "no_gradient"}),
    "detached": (detached, {"a": "no_gradient"}),
    "no_grad": (under_no_grad, {"a": "no_gradient"}),
    "checkpoint": (checkpointed, {"a": "no_gradient"}),
    "zero gradient": (lambda: zero_gradient(sgd), {"aside": "zero_gradient"}),
    "zero gradient, kept": (lambda: zero_gradient(sgd, to_none=False), {"aside": "zero_gradient"}),
    "zero gradient, Adam": (
        lambda: zero_gradient(lambda module: optim.Adam(module.parameters(), 1e-3)),
        {"aside": "zero_gradient"},
    ),
    "dead units": (dead_units, {"a": "zero_gradient", "b": "zero_gradient"}),
    "decay, AdamW": (lambda: zero_gradient(adamw), {"aside": "weight_decay"}),
    "decay, SGD": (lambda: zero_gradient(decaying(0.0)), {"aside": "weight_decay"}),
    "decay, momentum": (lambda: zero_gradient(decaying(0.9)), {"aside": "weight_decay"}),
    "not in the optimizer": (not_given, {"a": "no_optimizer"}),
    "not in the optimizer, SGD": (
        lambda: not_given(lambda own: optim.SGD(own, 0.1)),
        {"a": "no_optimizer"},
    ),
    "weights of losses": (loss_weights, {"auto": "no_optimizer"}),
    "replaced": (replaced, {"a": "no_optimizer"}),
    "rate 0 of a group": (lambda: rates(0.0, 0.1), {"a": "group_rate"}),
    "rate 0 of an optimizer": (several_rates, {"a": "group_rate"}),
    "rate 0": (lambda: rates(0.0, 0.0), {"a": "rate", "b": "rate"}),
    "bfloat16, 1e-6": (lambda: in_16_bits(1e-6, optim.Adam), {"a": "rounded"}),
    "bfloat16, 1e-5": (lambda: in_16_bits(1e-5, optim.Adam), {"a": "rounded"}),
    "bfloat16, SGD": (lambda: in_16_bits(1e-9, optim.SGD), {"a": "rounded"}),
    "float16": (
        lambda: in_16_bits(1e-9, optim.SGD, dtype=torch.float16), {"a": "rounded"},
    ),
    "restored": (restored, {"a": "thrown_away"}),
    "skipped": (skipped, {"a": "skipped"}),
}  # fmt: skip
AT_END = {"zero_gradient", "rate", "unknown"}
"""Causes that don't show, while training goes on, that weights don't learn."""


def record(
    path: Path, training: Training, steps: Iterable[int], every: int = 1, **more: Any
) -> tuple[Any, Any, Any]:
    """The findings about what is idle, before the end and after it."""
    module, optimizers, step = training
    with pastnet.torch.Recorder(path, module, optimizers, every=every, **more) as recorder:
        for number in steps:
            step(number)
            recorder.record(number)
        recorder.flush()
        before = pastnet.read(path).findings()
    assert not [text for text in recorder.notes.counts() if not text.startswith(NOTED)]
    return before, pastnet.read(path).findings(), recorder


NOTED = "No optimizer trains "


def causes(findings: Iterable[Any], kind: str = "stalled") -> dict[str, str]:
    return {
        layer: finding.cause
        for finding in findings
        if finding.kind == kind
        for layer in finding.layers
    }


@pytest.mark.parametrize("name", STILL)
def test_causes_of_standing_still(tmp_path: Path, name: str) -> None:
    torch.manual_seed(1)
    make, expected = STILL[name]
    before, after, _ = record(tmp_path, make(), range(1, STEPS + 1))
    assert causes(after) == expected
    proven = {layer: cause for layer, cause in expected.items() if cause not in AT_END}
    assert causes(before) == proven


@pytest.mark.parametrize("every", [2, 5])
@pytest.mark.parametrize("name", ["no gradient", "decay, AdamW", "bfloat16, 1e-6", "restored"])
def test_causes_between_records(tmp_path: Path, name: str, every: int) -> None:
    make, expected = STILL[name]
    before, _, _ = record(tmp_path, make(), range(1, 25 * every + 1), every)
    assert causes(before) == expected


@pytest.mark.parametrize("name", ["no gradient", "not in the optimizer", "zero gradient"])
def test_the_cause_is_a_fact_from_the_second_record_on(tmp_path: Path, name: str) -> None:
    make, expected = STILL[name]
    before, after, _ = record(tmp_path, make(), range(1, 3))
    assert causes(before, "unchanged") == causes(after, "unchanged") == expected
    assert not causes(after)


def test_what_moves_again_has_no_cause(tmp_path: Path) -> None:
    module = net()
    plain = chain(module)
    training = loop(
        module,
        optim.SGD(module.parameters(), 0.1),
        lambda number: module["b"](inputs(number).repeat(1, 2)).sum() if number < 30 else plain(number),
    )  # fmt: skip
    before, after, _ = record(tmp_path, training, range(1, 34))
    assert causes(before) == causes(after) == {}


# What learns rarely, slowly, or later.


def routed(make: Any, choose: Callable[[int], int], *, weigh: bool = False) -> Training:
    """Experts, one of which gets the inputs of a step."""
    module = net(router=nn.Linear(4, 4), **{f"e{n}": nn.Linear(4, 3) for n in range(8)})

    def loss(number: int) -> Any:
        x = inputs(number)
        if weigh:  # all are computed, and all but one get a zero gradient
            parts = [float(n == choose(number)) * module[f"e{n}"](x) for n in range(8)]
            return (sum(parts) + module["router"](x).mean() - 1).pow(2).mean()
        chosen = module[f"e{choose(number)}"]
        return (chosen(x) + module["router"](x).mean() - 1).pow(2).mean()

    return loop(module, make(module), loss)


def in_turn(number: int) -> int:
    return number % 8


def by_zipf(number: int) -> int:
    return min(int(np.random.default_rng(number).zipf(1.4)) - 1, 7)


def rows(make: Any, *, sparse: bool = False) -> Training:
    """Rows of an embedding, most of which are rare."""
    module = net(table=nn.Embedding(60, 4, sparse=sparse), head=nn.Linear(4, 2))

    def loss(number: int) -> Any:
        ids = np.minimum(np.random.default_rng(number).zipf(1.5, 12) - 1, 59)
        return (module["head"](module["table"](torch.as_tensor(ids))) - 1).pow(2).mean()

    return loop(module, make(module), loss)


def sparse_adam(module: Any) -> list[Any]:
    own = [optim.SparseAdam(module["table"].parameters(), 1e-2)]
    return [*own, optim.Adam(module["head"].parameters(), 1e-2)]


def phases(length: int, *, several: bool = True) -> Training:
    """Two parts that are trained in turn."""
    module = net(a=nn.Linear(4, 3), b=nn.Linear(4, 3))
    each = {key: optim.AdamW(module[key].parameters(), 1e-2) for key in "ab"}
    one = optim.AdamW(module.parameters(), 1e-2)

    def step(number: int) -> None:
        key = "ab"[(number - 1) // length % 2]
        optimizer = each[key] if several else one
        optimizer.zero_grad()
        (module[key](inputs(number)) - 1).pow(2).mean().backward()
        optimizer.step()

    return module, list(each.values()) if several else one, step


def warmed_up(make: Any) -> Training:
    module = net()
    optimizer = make(module)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(epoch, 10) / 10)
    return loop(module, optimizer, chain(module), lambda _: schedule.step())


def accumulated() -> Training:
    module = net()
    optimizer, plain = optim.Adam(module.parameters(), 1e-2), chain(module)

    def step(number: int) -> None:
        plain(number).backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

    return module, optimizer, step


class Lora(torch.nn.Module):  # type: ignore[name-defined, misc]
    """A frozen kernel and an update of low rank, half of which is zero at the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 8)
        self.base.requires_grad_(False)
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 8, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(x))


def lora() -> Training:
    module = net(a=Lora(), b=nn.Linear(8, 3))
    own = [each for each in module.parameters() if each.requires_grad]
    return loop(module, optim.AdamW(own, 1e-3), chain(module))


def queue() -> Training:
    """A buffer of keys, as of MoCo, that no optimizer trains."""
    module = net()
    module["a"].register_buffer("queue", torch.randn(6, 4))
    return loop(module, sgd(module), chain(module))


def frozen() -> Training:
    module = net()
    module["a"].requires_grad_(False)
    return loop(module, optim.Adam(module["b"].parameters(), 1e-2), chain(module))


def unfrozen_late() -> Training:
    module = net()
    plain = chain(module)
    module["a"].requires_grad_(False)
    return loop(
        module,
        sgd(module),
        plain,
        lambda number: module["a"].requires_grad_(number > 10) and None,
    )


def batch_norm() -> Training:
    module = net(a=nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), b=nn.Linear(8, 3))
    module["a"][1].eval()
    return loop(module, sgd(module), chain(module))


SLOW: dict[str, tuple[Callable[[], Training], int, int]] = {
    "experts in turn, SGD": (lambda: routed(sgd, in_turn), 80, 1),
    "experts in turn, every 8": (lambda: routed(sgd, in_turn), 240, 8),
    "experts in turn, AdamW": (lambda: routed(adamw, in_turn), 80, 1),
    "experts in turn, weighed": (lambda: routed(adamw, in_turn, weigh=True), 80, 1),
    "experts in turn, weighed, every 8": (lambda: routed(adamw, in_turn, weigh=True), 240, 8),
    "experts by Zipf": (lambda: routed(sgd, by_zipf), 200, 1),
    "experts by Zipf, AdamW": (lambda: routed(adamw, by_zipf), 200, 1),
    "rare rows, SGD": (lambda: rows(sgd), 60, 1),
    "rare rows, every 10": (lambda: rows(sgd), 240, 10),
    "rare rows, SparseAdam": (lambda: rows(sparse_adam, sparse=True), 60, 1),
    "phases of two optimizers": (lambda: phases(100), 400, 5),
    "phases of one optimizer": (lambda: phases(100, several=False), 400, 5),
    "short phases": (lambda: phases(5), 60, 1),
    "warm-up, SGD": (lambda: warmed_up(sgd), STEPS, 1),
    "warm-up, AdamW": (lambda: warmed_up(adamw), STEPS, 1),
    "accumulation": (accumulated, 160, 1),
    "LoRA": (lora, STEPS, 1),
    "a queue": (queue, STEPS, 1),
    "frozen": (frozen, STEPS, 1),
    "unfrozen late": (unfrozen_late, STEPS, 1),
    "statistics that are idle": (batch_norm, STEPS, 1),
    "slow in 16 bits": (lambda: in_16_bits(3e-3, optim.Adam), STEPS, 1),
    "slow": (lambda: no_gradient(lambda m: optim.SGD(
        [*m["a"].parameters(), *m["b"].parameters()], 1e-5)), 10, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_what_learns_rarely_is_not_stalled(tmp_path: Path, name: str) -> None:
    torch.manual_seed(2)
    make, steps, every = SLOW[name]
    before, after, _ = record(tmp_path, make(), range(1, steps + 1), every)
    assert causes(before) == causes(after) == {}
